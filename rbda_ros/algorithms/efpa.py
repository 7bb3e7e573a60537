"""The inverse operational-space inertia by cluster extended force propagators (C-EFPA).

Chignoli 2023, Sec. VI: a force on an end effector is carried inward through joints that are free
to move, not locked. Carried across cluster k, what the joint cannot resist is left there as
``T_k = S_k' F``, and ``Lambda^-1 = sum over k of T_k' D_k^-1 T_k`` (Sathya 2024, Sec. VI): the
sum runs only over the clusters that support both end effectors of a block.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.aba import articulated_inertias
from rbda_ros.algorithms.kinematics import BodyFrame, on_cluster, unit_wrenches
from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def inverse_operational_space_inertia(
    tree: ClusterTree, q: Matrix, frames: Sequence[BodyFrame], linear_only: bool = False
) -> Matrix:
    """Lambda^-1 = J H^-1 J' (m x m) of several frames, world-aligned, linear rows first.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold.
        frames: end effectors; six rows each, three where ``linear_only``.
        linear_only: leave out the angular rows.
    """
    joints = cluster_joints(tree, q)
    articulated = articulated_inertias(tree, joints)
    rows = 3 if linear_only else 6
    projected: list[dict[int, Matrix]] = [{} for _ in tree.clusters]
    for e, at in enumerate(frames):
        if not at.body:
            continue
        k: int | None
        k, F = on_cluster(tree, at.body, unit_wrenches(tree, joints, at, linear_only))
        while k is not None:
            joint, arti = joints[k], articulated[k]
            across = joint.J.T @ F
            T = joint.SG.T @ across
            projected[k][e] = arti.D.forward(T)
            F = joint.E.T @ (across - arti.U @ arti.D.solve(T))  # the extended force propagator
            k = tree.clusters[k].parent

    blocks = {}
    for i in range(len(frames)):
        for j in range(i, len(frames)):
            block = ca.DM(rows, rows)
            for k, of in enumerate(projected):
                if i in of and j in of:
                    d = ca.repmat(articulated[k].D.d, 1, rows)
                    block = block + of[i].T @ (of[j] / d)
            blocks[i, j] = mirrored(block) if i == j else block
    count = range(len(frames))
    upper = [ca.horzcat(*(blocks.get((i, j), ca.DM(rows, rows)) for j in count)) for i in count]
    return mirrored(ca.vertcat(*upper)) if upper else ca.DM(0, 0)
