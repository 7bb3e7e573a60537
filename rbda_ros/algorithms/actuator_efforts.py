"""Actuator efforts from generalized forces (Chignoli 2024, footnotes 3 and 5)."""

from __future__ import annotations

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import minimum_norm_efforts
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


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
