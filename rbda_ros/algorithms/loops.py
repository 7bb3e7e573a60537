"""The loop constraints of the whole robot: residual (2) and explicit form (3)."""

from __future__ import annotations

import itertools

import casadi as ca

from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def loop_state(tree: ClusterTree, q: Matrix) -> tuple[Matrix, Matrix]:
    """How far q is off the constraint manifold, and how near to a singularity.

    Args:
        tree: the cluster tree.
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
                conditionings.append(node.loop.conditioning(q_k, node.independent))
    return ca.vertcat(*residuals), ca.vertcat(*conditionings)


def generalized_force(tree: ClusterTree, q: Matrix, spanning_tau: Matrix) -> Matrix:
    """The force ``G' tau`` (ny) on y that forces tau (nv) on all joints amount to (line 2).

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        spanning_tau: (nv) forces on the tree joints [N m, N].
    """
    nv = itertools.accumulate((node.nv for node in tree.clusters), initial=0)
    parts = zip(
        tree.clusters, tree.split_positions(q), ca.vertsplit(spanning_tau, list(nv)), strict=True
    )
    return ca.vertcat(ca.DM(0, 1), *(node.velocity_map(q_k).T @ t for node, q_k, t in parts))


def spanning_motion(tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix) -> tuple[Matrix, Matrix]:
    """Spanning velocity ``G yd`` and acceleration ``G ydd + g`` (3), both (nv).

    Args:
        tree: the cluster tree.
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
