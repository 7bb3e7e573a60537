"""The outward passes that every algorithm begins with: cluster joints, velocities, accelerations.

Velocities and accelerations of a body are relative to a frame that coincides with the body's and
moves steadily with its origin. In it the linear velocity is zero, ``v = [w; 0]``, which makes
half of every velocity product vanish; the linear acceleration is that of the origin itself. On
the way from a parent to its child, whose origin lies at p, only the centripetal term
``w x (w x p)`` is new. Forces, and so torques, are the same as with the paper's velocities.
"""

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
    """v_k (6n): ``[w; 0]`` of every body of a cluster, each in its own frame."""
    v: Clustered = {None: ca.DM(6, 1)}
    for k in tree.outward():
        joint = joints[k]
        moved = joint.J @ (joint.E @ v[tree.clusters[k].parent] + joint.S @ joint.qd)  # (38)
        v[k] = ca.vertcat(*(_angular(part) for part in ca.vertsplit(moved, 6)))
    return v


def accelerations(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, ydd: Matrix, base: Matrix
) -> Clustered:
    """a_k (6n) of every cluster (39): angular, and of the origin, in body frames.

    Args:
        tree: the cluster tree.
        joints: its cluster joints.
        v: velocities.
        ydd: (ny) independent acceleration.
        base: (6) acceleration of the fixed base; -a_g stands for gravity.
    """
    a: Clustered = {None: base}
    ydd = tree.split_independent(ydd)
    for k in tree.outward():
        node, joint = tree.clusters[k], joints[k]
        own = ca.vertsplit(joint.SG @ ydd[k] + _across_joints(tree, joints, v, k), 6)
        turning = _centripetal(tree, joints, v, k)
        moved: list[Matrix] = []
        for i, (inside, output) in enumerate(zip(node.inside, node.output, strict=True)):
            before = moved[inside] if inside is not None else _part(a[node.parent], output)
            moved.append(joint.J.X_up[i] @ (before + turning[i]) + own[i])
        a[k] = ca.vertcat(*moved)
    return a


def bias_at_joints(tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, k: int) -> Matrix:
    """c (6n) at the tree joints of cluster k: what they accelerate at ydd = 0 (19)."""
    turning = _centripetal(tree, joints, v, k)
    carried = (X @ part for X, part in zip(joints[k].J.X_up, turning, strict=True))
    return _across_joints(tree, joints, v, k) + ca.vertcat(*carried)


def _across_joints(tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, k: int) -> Matrix:
    """S g, ring-S qd and the velocity products of the tree joints of cluster k."""
    joint = joints[k]
    products = []
    motions = ca.vertsplit(joint.S @ joint.qd, 6)
    for v_i, m in zip(ca.vertsplit(v[k], 6), motions, strict=True):
        w, turn, slide = v_i[:3], m[:3], m[3:]
        # Once w with the body, once w without the joint's own turn, with the body before it.
        products += [ca.cross(w, turn), ca.cross(w, slide) + ca.cross(w - turn, slide)]
    return joint.S @ joint.g + joint.ring_S_qd + ca.vertcat(*products)


def _centripetal(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, k: int
) -> list[Matrix]:
    """``[0; w x (w x p)]`` for each body, of the body before it and in that body's frame."""
    node = tree.clusters[k]
    terms = []
    for i, (inside, output) in enumerate(zip(node.inside, node.output, strict=True)):
        before = _part(v[k], inside) if inside is not None else _part(v[node.parent], output)
        w, (_, p) = before[:3], joints[k].J.X_up[i].pose()
        terms.append(ca.vertcat(ca.DM(3, 1), ca.cross(w, ca.cross(w, p))))
    return terms


def _part(clustered: Matrix, position: int | None) -> Matrix:
    assert position is not None  # a body's parent is in its cluster or in the parent cluster
    return clustered[6 * position : 6 * position + 6]


def _angular(v: Matrix) -> Matrix:
    return ca.vertcat(v[:3], ca.DM(3, 1))


def gravity(tree: ClusterTree) -> Matrix:
    """a_0 = -a_g (6): the fixed base accelerates upward in place of gravity."""
    return ca.sparsify(-ca.DM([0, 0, 0, *tree.gravity]))


def external_forces(tree: ClusterTree, k: int, wrenches: Matrix | None) -> Matrix:
    """External forces (6n) on the bodies of cluster k, from all bodies' (6 x bodies)."""
    if wrenches is None:
        return ca.DM(tree.rows(k), 1)
    return ca.vertcat(*(wrenches[:, i - 1] for i in tree.clusters[k].numbers))
