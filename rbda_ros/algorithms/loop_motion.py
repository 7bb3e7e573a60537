"""The loop constraints of the whole robot: residual (2) and explicit form (3).

Velocities and efforts follow by G from some joints to others; power is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.closing.tolerances import SINGULAR
from rbda_ros.cluster_tree.cluster_joint import (
    ClusterNode,
    driven_coordinates,
    minimum_norm_efforts,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def loop_state(tree: ClusterTree, q: Matrix) -> tuple[Matrix, Matrix]:
    """How far q is off the constraint manifold, and how near to a singularity.

    Args:
        q: (nq) spanning position.

    Returns:
        phi(q) of every loop, stacked (2) [m, or sine of an angle]; and for each cluster whose
        Jacobian varies a number in [0, 1], near 0 at a dead point.
    """
    residuals, conditionings = [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, q_k in zip(tree.clusters, tree.split_positions(q), strict=True):
        if node.loop is not None:
            residuals.append(node.loop.phi(q_k))
            if not node.loop.constant:
                conditionings.append(node.loop.conditioning(q_k, node.independent, node.home))
    return ca.vertcat(*residuals), ca.vertcat(*conditionings)


def loops_hold(tree: ClusterTree, q: Matrix) -> Matrix:
    """How many of the numbers of `loop_state` are as they must be for q to be used.

    Less than all where q is off the constraint manifold, or at a dead point; or not a number.
    """
    phi, conditioning = loop_state(tree, q)
    return ca.sum1(ca.fabs(phi) <= tree.on_loops) + ca.sum1(conditioning >= SINGULAR)


def loop_health(tree: ClusterTree, q: Matrix, guess: Matrix) -> Matrix:
    """How far a position that was found by closing loops can be trusted.

    Args:
        q: (nq) spanning position.
        guess: (nq) where the search for it began.

    Returns:
        (3) the longest way of a coordinate from its guess, in loops that have more than one
        position to be in [rad, m]; |phi(q)| of all loops (2) [m, or sine of an angle]; how well y
        determines the worst loop, 0 to 1.
    """
    curved = np.flatnonzero(tree.curved).tolist()
    phi, conditioning = loop_state(tree, q)
    return ca.vertcat(
        reduce(ca.fmax, ca.vertsplit(ca.vertcat(0.0, ca.fabs(q[curved] - guess[curved])))),
        ca.sqrt(ca.sumsqr(phi)),
        reduce(ca.fmin, ca.vertsplit(ca.vertcat(1.0, conditioning))),
    )


def generalized_force(tree: ClusterTree, q: Matrix, spanning_tau: Matrix) -> Matrix:
    """The force ``G' tau`` (ny) on y that forces tau (nv) on all joints amount to (line 2).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        spanning_tau: (nv) forces on the tree joints [N m, N].
    """
    parts = zip(
        tree.clusters, tree.split_positions(q), tree.split_velocities(spanning_tau), strict=True
    )
    return ca.vertcat(ca.DM(0, 1), *(node.velocity_map(q_k).T @ t for node, q_k, t in parts))


def spring_force(tree: ClusterTree, q: Matrix) -> Matrix:
    """The force ``G' dV/dq`` (ny) on y that holds the springs at a position q (nq)."""
    if tree.springs is None:
        return ca.DM(tree.ny, 1)
    return generalized_force(tree, q, tree.springs.force(q))


def spanning_velocity(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """Spanning velocity ``G yd`` (nv) (3)."""
    parts = zip(tree.clusters, tree.split_positions(q), tree.split_independent(yd), strict=True)
    return ca.vertcat(ca.DM(0, 1), *(node.velocity_map(q_k) @ yd_k for node, q_k, yd_k in parts))


def spanning_motion(tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix) -> tuple[Matrix, Matrix]:
    """Spanning velocity ``G yd`` and acceleration ``G ydd + g`` (3), both (nv).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
    """
    velocity, acceleration = [ca.DM(0, 1)], [ca.DM(0, 1)]
    parts = zip(
        tree.clusters,
        tree.split_positions(q),
        tree.split_independent(yd),
        tree.split_independent(ydd),
        strict=True,
    )
    for node, q_k, yd_k, ydd_k in parts:
        G = node.velocity_map(q_k)
        qd_k = G @ yd_k
        velocity.append(qd_k)
        acceleration.append(G @ ydd_k + node.bias(q_k, qd_k))
    return ca.vertcat(*velocity), ca.vertcat(*acceleration)


def independent_velocity(
    tree: ClusterTree, q: Matrix, known: Matrix, coordinates: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """Independent velocity yd (ny), from velocities of others that determine it.

    Coordinates x that determine the others may take the place of y: ``qd = G_x xd`` (3), and yd
    is part of that.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        known: (ny) velocity of x.
        coordinates: which spanning velocities are x, ascending; in each cluster as many as y.

    Returns:
        yd; and for each cluster whose Jacobian varies how well x determines the others there,
        in [0, 1], near 0 at a dead point of x.
    """
    velocity, conditioning = [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, q_k, xd_k, chosen in _by_cluster(tree, q, known, coordinates):
        velocity.append((node.velocity_map(q_k, chosen) @ xd_k)[list(node.independent)])
        if node.loop is not None and not node.loop.constant:
            conditioning.append(node.loop.conditioning(q_k, chosen, node.home))
    return ca.vertcat(*velocity), ca.vertcat(*conditioning)


def independent_acceleration(
    tree: ClusterTree, q: Matrix, yd: Matrix, known: Matrix, coordinates: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """Independent acceleration ydd (ny), from accelerations of others that determine it.

    As `independent_velocity`, with ``qdd = G_x xdd + g_x`` (3).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        known: (ny) acceleration of x.
        coordinates: which spanning velocities are x, ascending; in each cluster as many as y.

    Returns:
        ydd; and how well x determines the others, as for `independent_velocity`.
    """
    accelerated, conditioning = independent_velocity(tree, q, known, coordinates)  # G_x xdd
    bias = [ca.DM(0, 1)]
    parts = zip(_by_cluster(tree, q, known, coordinates), tree.split_independent(yd), strict=True)
    for (node, q_k, _, chosen), yd_k in parts:
        g_x = node.bias(q_k, node.velocity_map(q_k) @ yd_k, chosen)
        bias.append(g_x[list(node.independent)])
    return accelerated + ca.vertcat(*bias), conditioning


def _by_cluster(
    tree: ClusterTree, q: Matrix, known: Matrix, coordinates: Sequence[int]
) -> Iterator[tuple[ClusterNode, Matrix, Matrix, list[int]]]:
    """For each cluster: its position, its part of what is known, and which coordinates that is."""
    parts = zip(
        tree.clusters,
        tree.split_positions(q),
        tree.split_independent(known),
        tree.velocity_ranges,
        strict=True,
    )
    for node, q_k, known_k, place in parts:
        yield node, q_k, known_k, [j - place.start for j in coordinates if j in place]


def velocity_map(tree: ClusterTree, q: Matrix) -> Matrix:
    """G (nv x ny), with ``qd = G yd`` (3).

    Args:
        q: (nq) spanning position, on the constraint manifold.
    """
    parts = zip(tree.clusters, tree.split_positions(q), strict=True)
    return ca.diagcat(ca.DM(0, 0), *(node.velocity_map(q_k) for node, q_k in parts))


def completed_velocity(
    tree: ClusterTree, q: Matrix, known: Matrix, coordinates: Sequence[int]
) -> Matrix:
    """The velocity (nv) of every joint from some that determine it: ``qd = G_x xd`` (3).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        known: (ny) velocity of x.
        coordinates: which spanning velocities are x, ascending; in each cluster as many as y.
    """
    yd, _ = independent_velocity(tree, q, known, coordinates)
    return spanning_velocity(tree, q, yd)


def converted_efforts(
    tree: ClusterTree, q: Matrix, tau: Matrix, coordinates: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """Efforts on chosen coordinates that give the generalized force tau, and what they miss of it.

    As `actuator_efforts` with other joints in the place of the actuated ones: the smallest efforts
    with ``W' efforts = tau``, where W are the rows of G of these coordinates.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        tau: (ny) generalized force [N m, N].
        coordinates: spanning velocity coordinates that efforts act on, ascending.

    Returns:
        (coordinates) efforts; (ny) ``tau - W' efforts``, zero where they can give tau.
    """
    efforts, missed = [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, q_k, tau_k, acting in _by_cluster(tree, q, tau, coordinates):
        if not acting:
            missed.append(tau_k)
            continue
        W = node.velocity_map(q_k)[acting, :]
        at_home = np.array(ca.evalf(ca.DM(node.velocity_map(ca.DM(node.home)))))
        efforts.append(minimum_norm_efforts(W, driven_coordinates(at_home, acting), tau_k))
        missed.append(tau_k - W.T @ efforts[-1])
    return ca.vertcat(*efforts), ca.vertcat(*missed)


def actuator_efforts(tree: ClusterTree, q: Matrix, tau: Matrix) -> Matrix:
    """Efforts (actuated) on the actuated joints that give the generalized force tau (ny) on y.

    The power of the efforts is ``yd' W' efforts``, with W the actuated rows of G; so
    ``W' efforts = tau``. Where actuators are redundant the smallest efforts are returned.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        tau: (ny) generalized force [N m, N].
    """
    efforts = [ca.DM(0, 1)]
    parts = zip(tree.clusters, tree.split_positions(q), tree.split_independent(tau), strict=True)
    for node, q_k, tau_k in parts:
        if node.actuated:
            W = node.velocity_map(q_k)[list(node.actuated), :]
            efforts.append(minimum_norm_efforts(W, node.driven, tau_k))
    return ca.vertcat(*efforts)
