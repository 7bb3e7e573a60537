"""The loop constraints of the whole robot: residual (2) and explicit form (3)."""

from __future__ import annotations

import casadi as ca

from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def loop_residual(tree: ClusterTree, q: Matrix) -> Matrix:
    """phi(q) of every loop, stacked (2) [m, or sine of an angle].

    Args:
        tree: the cluster tree.
        q: (nq) spanning position.
    """
    parts = zip(tree.clusters, tree.split_positions(q), strict=True)
    return ca.vertcat(ca.DM(0, 1), *(node.loop.phi(q_k) for node, q_k in parts if node.loop))


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
