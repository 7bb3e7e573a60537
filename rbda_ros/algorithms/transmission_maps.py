"""Velocities and efforts from some joints to others (Chignoli 2024, Eq. 3); power is the same."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from rbda_ros.algorithms.loop_motion import by_cluster, independent_velocity, spanning_motion
from rbda_ros.cluster_tree.cluster_joint import driven_coordinates, minimum_norm_efforts
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def velocity_map(tree: ClusterTree, q: Matrix) -> Matrix:
    """G (nv x ny), with ``qd = G yd`` (3).

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
    """
    parts = zip(tree.clusters, tree.split_positions(q), strict=True)
    return ca.diagcat(ca.DM(0, 0), *(node.velocity_map(q_k) for node, q_k in parts))


def completed_velocity(
    tree: ClusterTree, q: Matrix, known: Matrix, coordinates: Sequence[int]
) -> Matrix:
    """The velocity (nv) of every joint from some that determine it: ``qd = G_x xd`` (3).

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        known: (ny) velocity of x.
        coordinates: which spanning velocities are x, ascending; in each cluster as many as y.
    """
    yd, _ = independent_velocity(tree, q, known, coordinates)
    return spanning_motion(tree, q, yd, ca.DM(tree.ny, 1))[0]


def converted_efforts(
    tree: ClusterTree, q: Matrix, tau: Matrix, coordinates: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """Efforts on chosen coordinates that give the generalized force tau, and what they miss of it.

    As `actuator_efforts` with other joints in the place of the actuated ones: the smallest efforts
    with ``W' efforts = tau``, where W are the rows of G of these coordinates.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        tau: (ny) generalized force [N m, N].
        coordinates: spanning velocity coordinates that efforts act on, ascending.

    Returns:
        (coordinates) efforts; (ny) ``tau - W' efforts``, zero where they can give tau.
    """
    efforts, missed = [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, q_k, tau_k, acting in by_cluster(tree, q, tau, coordinates):
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
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        tau: (ny) generalized force [N m, N].
    """
    efforts = []
    parts = zip(tree.clusters, tree.split_positions(q), tree.split_independent(tau), strict=True)
    for node, q_k, tau_k in parts:
        if node.actuated:
            W = node.velocity_map(q_k)[list(node.actuated), :]
            efforts.append(minimum_norm_efforts(W, node.driven, tau_k))
    return ca.vertcat(ca.DM(0, 1), *efforts)
