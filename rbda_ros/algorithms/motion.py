"""The outward passes that every algorithm begins with: cluster joints, velocities, accelerations.

Velocities and accelerations of a body are relative to a frame that coincides with the body's and
moves steadily with its origin. In it the linear velocity is zero, ``v = [w; 0]``, which makes
half of every velocity product vanish; the linear acceleration is that of the origin itself. On
the way from a parent to its child, whose origin lies at p, only the centripetal term
``w x (w x p)`` is new. Forces, and so torques, are the same as with the paper's velocities.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode, cluster_joint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant, cross_force, mirrored

Clustered = dict[int | None, Matrix]
"""A clustered vector or matrix for each cluster index; None is the fixed base."""


def cluster_joints(tree: ClusterTree, q: Matrix, yd: Matrix | None = None) -> list[ClusterJoint]:
    """Evaluate every cluster joint (Chignoli 2024, Algorithm 1, lines 3 to 13).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity; None for zero.
    """
    yd = ca.DM(tree.ny, 1) if yd is None else yd
    parts = zip(tree.clusters, tree.split_positions(q), tree.split_independent(yd), strict=True)
    return [
        cluster_joint(node, tree.rows(node.parent), q_k, yd_k)
        for node, q_k, yd_k in cancellable(parts)
    ]


def velocities(tree: ClusterTree, joints: list[ClusterJoint]) -> Clustered:
    """v_k (6n): ``[w; 0]`` of every body of a cluster, each in its own frame."""
    v: Clustered = {None: ca.DM(6, 1)}
    for k in tree.outward():
        joint = joints[k]
        moved = joint.J @ (joint.E @ v[tree.clusters[k].parent] + joint.S_qd)  # (38)
        parts = ca.vertsplit(moved, 6)
        v[k] = ca.vertcat(*(ca.vertcat(part[:3], ca.DM(3, 1)) for part in parts))
    return v


def spatial_velocities(tree: ClusterTree, joints: list[ClusterJoint]) -> Clustered:
    """[w; v] (6n) of every body of a cluster, v of its origin, each in its own frame (38)."""
    v: Clustered = {None: ca.DM(6, 1)}
    for k in tree.outward():
        v[k] = joints[k].J @ (joints[k].E @ v[tree.clusters[k].parent] + joints[k].S_qd)
    return v


def accelerations(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, ydd: Matrix, base: Matrix
) -> Clustered:
    """a_k (6n) of every cluster (39): angular, and of the origin, in body frames.

    Args:
        v: velocities.
        ydd: (ny) independent acceleration.
        base: (6) acceleration of the fixed base; -a_g stands for gravity.
    """
    a: Clustered = {None: base}
    ydd = tree.split_independent(ydd)
    for k in tree.outward():
        node, joint = tree.clusters[k], joints[k]
        own = ca.vertsplit(joint.SG @ ydd[k] + _across_joints(joints, v, k), 6)
        moved: list[Matrix] = []
        for i, X in enumerate(joint.J.X_up):
            v_before = vector_before(node, i, ca.vertsplit(v[k], 6), v[node.parent])
            a_before = vector_before(node, i, moved, a[node.parent])
            w, alpha, (_, p) = v_before[:3], a_before[:3], X.pose()
            origin = a_before[3:] + turning(w, alpha) @ p
            moved.append(X.rotation @ ca.vertcat(alpha, origin) + own[i])
        a[k] = ca.vertcat(*moved)
    return a


def turning(w: Matrix, alpha: Matrix) -> Matrix:
    """Omega (3x3): a point at r of a turning body accelerates by ``Omega r`` against its origin.

    ``Omega r = alpha x r + w x (w x r)``, with w the angular velocity and alpha its rate.
    """
    x, y, z = ca.vertsplit(w)
    Omega = ca.skew(alpha)
    Omega += mirrored(
        ca.vertcat(
            ca.horzcat(-(y * y + z * z), x * y, x * z),
            ca.horzcat(0, -(x * x + z * z), y * z),
            ca.horzcat(0, 0, -(x * x + y * y)),
        )
    )
    return Omega


def inertial_force(inertia: Matrix, v: Matrix, a: Matrix) -> Matrix:
    """``I a + v x* I v`` (6) of a body, in the velocities and accelerations of this module.

    From products of w that force, moment and the origins of children share: ``f = m a + Omega mc``
    and ``n = mc x a + I alpha + w x I w``, where an I_xy goes with entries of Omega, such as
    ``w_x w_z - alpha_y``. A rotor, which has a spin inertia alone, shares nothing.
    """
    if inertia.nnz() <= 1:
        return inertia @ a + cross_force(v, inertia @ v)
    I, mass = inertia[:3, :3], inertia[3, 3]
    mc = ca.vertcat(inertia[2, 4], inertia[0, 5], inertia[1, 3])
    w, alpha, a_o = v[:3], a[:3], a[3:]
    Omega = turning(w, alpha)
    n = []
    for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        n.append(
            I[x, x] * alpha[x]
            + (I[z, z] - I[y, y]) * (w[min(y, z)] * w[max(y, z)])  # in the order of Omega's
            + I[y, z] * (w[y] * w[y] - w[z] * w[z])
            + I[x, z] * Omega[y, x]
            - I[x, y] * Omega[z, x]
        )
    return ca.vertcat(ca.cross(mc, a_o) + ca.vertcat(*n), mass * a_o + Omega @ mc)


def bias_at_joints(tree: ClusterTree, joints: list[ClusterJoint], v: Clustered, k: int) -> Matrix:
    """c (6n) at the tree joints of cluster k: what they accelerate at ydd = 0 (19)."""
    node, carried = tree.clusters[k], []
    for i, X in enumerate(joints[k].J.X_up):
        w = vector_before(node, i, ca.vertsplit(v[k], 6), v[node.parent])[:3]
        _, p = X.pose()
        carried.append(X @ ca.vertcat(ca.DM(3, 1), ca.cross(w, ca.cross(w, p))))
    return _across_joints(joints, v, k) + ca.vertcat(*carried)


def _across_joints(joints: list[ClusterJoint], v: Clustered, k: int) -> Matrix:
    """S g, ring-S qd and the velocity products of the tree joints of cluster k."""
    joint = joints[k]
    products = []
    motions = ca.vertsplit(joint.S_qd, 6)
    for v_i, m in zip(ca.vertsplit(v[k], 6), motions, strict=True):
        w, turn, slide = v_i[:3], m[:3], m[3:]
        # Once w with the body, once w without the joint's own turn, with the body before it.
        products += [ca.cross(w, turn), ca.cross(w, slide) + ca.cross(w - turn, slide)]
    return joint.S @ joint.g + joint.ring_S_qd + ca.vertcat(*products)


def vector_before(node: ClusterNode, i: int, inside: Sequence[Matrix], outside: Matrix) -> Matrix:
    """The part (6) of the body before body i: of those in the cluster, or of the parent's."""
    if (parent := node.inside[i]) is not None:
        return inside[parent]
    position = node.output[i]
    assert position is not None  # a body's parent is in its cluster or in the parent cluster
    return outside[6 * position : 6 * position + 6]


def gravity(tree: ClusterTree) -> Matrix:
    """a_0 = -a_g (6): the fixed base accelerates upward in place of gravity."""
    return ca.sparsify(-ca.DM([0, 0, 0, *tree.gravity]))


def external_forces(tree: ClusterTree, k: int, wrenches: Matrix | None) -> Matrix:
    """External forces (6n) on the bodies of cluster k, from all bodies' (6 x bodies)."""
    if wrenches is None:
        return ca.DM(tree.rows(k), 1)
    return ca.vertcat(*(wrenches[:, i - 1] for i in tree.clusters[k].numbers))


def armature_inertia(tree: ClusterTree, joints: list[ClusterJoint], k: int) -> Matrix:
    """A_k (ny x ny): inertia of cluster k's joints beside that of its bodies.

    ``G' a G`` of the joints' own armatures a and drag, and that of rotors that are armatures.
    """
    node, drag = tree.clusters[k], joints[k].drag
    A: Matrix = ca.DM(node.ny, node.ny)
    if node.joint_armature.any():
        G = joints[k].G
        A = mirrored(G.T @ (constant(np.diag(node.joint_armature)) @ G))
    if drag is not None and drag.nnz():
        A = A + mirrored(joints[k].G.T @ (ca.diag(drag) @ joints[k].G))
    return A if node.rotor_armature is None else A + constant(node.rotor_armature)


def armature_bias(tree: ClusterTree, joints: list[ClusterJoint], k: int) -> Matrix:
    """``G' a (g + r)`` (ny): the force on y that armature takes at ydd = 0."""
    node = tree.clusters[k]
    if not node.joint_armature.any():
        return ca.DM(node.ny, 1)
    r, _ = turned_velocity(node, joints[k].qd)
    return joints[k].G.T @ (constant(node.joint_armature) * (joints[k].g + r))


def turned_velocity(node: ClusterNode, qd: Matrix) -> tuple[Matrix, Matrix]:
    """r (nv), ``w x v`` of floating joints, and its derivative by qd (nv x nv).

    The velocity of a floating joint is in axes that turn with its body: the linear velocity
    changes by ``vd + w x v``, which its armature feels as a mass at the body's origin would. What
    turns with w alone needs nothing: ``w x a w = 0``.

    Args:
        node: the cluster.
        qd: (nv) its spanning velocity.
    """
    r, by_qd = type(qd)(node.nv, 1), type(qd)(node.nv, node.nv)
    for body, place in zip(node.bodies, node.velocity_ranges, strict=True):
        if body.joint.type == "floating" and body.joint.armature:
            linear, angular = (slice(place.start + i, place.start + i + 3) for i in (0, 3))
            v, w = qd[linear], qd[angular]
            r[linear] = ca.cross(w, v)
            by_qd[linear, linear], by_qd[linear, angular] = ca.skew(w), -ca.skew(v)
    return r, by_qd


def armature_forces(tree: ClusterTree, joints: list[ClusterJoint], ydd: Matrix) -> Matrix:
    """``A ydd + G' a (g + r)`` (ny): the force on y that armature takes."""
    forces: list[Matrix] = [ca.DM(0, 1)]
    for k, ydd_k in enumerate(tree.split_independent(ydd)):
        forces.append(armature_inertia(tree, joints, k) @ ydd_k + armature_bias(tree, joints, k))
    return ca.vertcat(*forces)
