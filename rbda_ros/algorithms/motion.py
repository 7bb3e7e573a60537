"""The outward pass that every algorithm begins with: cluster joints, and velocities of bodies."""

from __future__ import annotations

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, cluster_joint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

Clustered = dict[int | None, Matrix]
"""A clustered vector or matrix for each cluster index; None is the fixed base."""


def cluster_joints(tree: ClusterTree, q: Matrix, yd: Matrix | None = None) -> list[ClusterJoint]:
    """Evaluate every cluster joint (Chignoli 2024, Algorithm 1, lines 3 to 13).

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity; None for zero.
    """
    yd = ca.DM(tree.ny, 1) if yd is None else yd
    parts = zip(tree.clusters, tree.split_positions(q), tree.split_independent(yd), strict=True)
    return [cluster_joint(node, tree.rows(node.parent), q_k, yd_k) for node, q_k, yd_k in parts]


def velocities(tree: ClusterTree, joints: list[ClusterJoint]) -> Clustered:
    """v_k (6n): velocities of every cluster's bodies, each in its own frame."""
    v: Clustered = {None: ca.DM(6, 1)}
    for k in tree.outward():
        joint = joints[k]
        v[k] = joint.J @ (joint.E @ v[tree.clusters[k].parent] + joint.S @ joint.qd)  # (38)
    return v


def base_acceleration(tree: ClusterTree) -> Matrix:
    """a_0 = -a_g (6): the fixed base accelerates upward in place of gravity."""
    return ca.sparsify(-ca.DM([0, 0, 0, *tree.gravity]))


def external_forces(tree: ClusterTree, k: int, wrenches: Matrix | None) -> Matrix:
    """External forces (6n) on the bodies of cluster k, from all bodies' (6 x bodies)."""
    if wrenches is None:
        return ca.DM(tree.rows(k), 1)
    return ca.vertcat(*(wrenches[:, i - 1] for i in tree.clusters[k].numbers))
