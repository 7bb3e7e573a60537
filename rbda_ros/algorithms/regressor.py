"""Inverse dynamics as a linear map of inertia, friction and armature: the regressor.

The force that a body's motion takes is linear in its ten inertial parameters pi,
``f = A(v, a) pi`` (Atkeson 1986), and loops leave it so: ``tau = sum_i J_i' A_i pi_i`` with J_i
the body's Jacobian by y. Jacobians have fewer columns than A, so they are carried outward and
forces are not carried inward.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from rbda_ros.algorithms.friction import STICTION_SPEED
from rbda_ros.algorithms.motion import (
    accelerations,
    cluster_joints,
    gravity,
    turned_velocity,
    turning,
    velocities,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.spanning_tree import parameter_map
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant, skew

Jacobian = dict[int, Matrix]
"""Columns (6 x ny_l) of a body's Jacobian for each cluster l that moves it."""


def regressor(tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix) -> Matrix:
    """Y (ny x parameters), with ``tau = Y p``: inverse dynamics with friction.

    Columns: ten of each body, in the frame of the link that its joint moves; then damping, then
    Coulomb friction, of each coordinate of the joints; then armature of those that have some; then
    stiffness, and pretension where there is some, of each spring.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        ydd: (ny) independent acceleration [rad/s^2, m/s^2].
    """
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)  # (38)
    a = accelerations(tree, joints, v, ydd, gravity(tree))  # (39)
    J = body_jacobians(tree, joints)
    columns: list[Matrix] = [ca.DM(tree.ny, 0)]
    for number, body in enumerate(tree.spanning.bodies, start=1):
        k, i = tree.place_of(number)
        A = inertial_regressor(v[k][6 * i : 6 * i + 3], a[k][6 * i : 6 * i + 6])
        in_link = constant(parameter_map(tree.spanning.links[body.name].frame))
        columns.append(_rows(tree, {l: (part.T @ A) @ in_link for l, part in J[number].items()}))
    if tree.springs is not None:
        of_springs = tree.split_velocities(tree.springs.columns(q))
        G = (joint.G for joint in joints)
        springs = [ca.vertcat(*(G_k.T @ part for G_k, part in zip(G, of_springs, strict=True)))]
    else:
        springs = []
    return ca.horzcat(*columns, *_joint_columns(tree, joints, ydd), *springs)


def body_jacobians(tree: ClusterTree, joints: list[ClusterJoint]) -> dict[int, Jacobian]:
    """Jacobian of every body by its number, in the body's frame, angular first; 0 does not move."""
    J: dict[int, Jacobian] = {0: {}}
    for k in tree.outward():
        node, joint = tree.clusters[k], joints[k]
        own = ca.vertsplit(joint.SG, 6)
        for i, number in enumerate(node.numbers):
            X = joint.J.X_up[i]
            J[number] = {l: X @ part for l, part in J[node.bodies[i].parent].items()}
            J[number][k] = J[number].get(k, ca.DM(6, node.ny)) + own[i]
    return J


def inertial_regressor(w: Matrix, a: Matrix) -> Matrix:
    """A (6 x 10): the force that a body's motion takes is ``A pi``, in the terms of `motion`.

    ``n = mc x a_o + I alpha + w x I w`` and ``f = m a_o + Omega mc``.

    Args:
        w: (3) angular velocity in the body's frame [rad/s].
        a: (6) angular acceleration, and acceleration of the origin, gravity taken off.
    """
    alpha, a_o = a[:3], a[3:]
    of_inertia = _inertia_times(alpha) + skew(w) @ _inertia_times(w)
    return ca.vertcat(
        ca.horzcat(ca.DM(3, 1), -skew(a_o), of_inertia),
        ca.horzcat(a_o, turning(w, alpha), ca.DM(3, 6)),
    )


def _inertia_times(w: Matrix) -> Matrix:
    """L (3 x 6) with ``I w = L (I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``."""
    x, y, z = ca.vertsplit(w)
    return ca.vertcat(
        ca.horzcat(x, y, ca.DM(1, 1), z, ca.DM(1, 2)),
        ca.horzcat(ca.DM(1, 1), x, y, ca.DM(1, 1), z, ca.DM(1, 1)),
        ca.horzcat(ca.DM(1, 3), x, y, z),
    )


def _joint_columns(tree: ClusterTree, joints: list[ClusterJoint], ydd: Matrix) -> list[Matrix]:
    """Columns of damping, of Coulomb friction, and of what armature there is."""
    damping, friction, armature = [], [], []
    base = tree.coordinates.base_nv
    for k, ydd_k in enumerate(tree.split_independent(ydd)):
        node, joint = tree.clusters[k], joints[k]
        qdd = joint.G @ ydd_k + joint.g + turned_velocity(node, joint.qd)[0]
        has_armature = np.flatnonzero(node.joint_armature)
        of_joints = [j for j in range(node.nv) if tree.velocity_ranges[k][j] >= base]
        for j in of_joints:
            along = joint.G[j, :].T
            damping.append(_rows(tree, {k: along * joint.qd[j]}))
            friction.append(_rows(tree, {k: along * ca.tanh(joint.qd[j] / STICTION_SPEED)}))
        armature += [_rows(tree, {k: joint.G[j, :].T * qdd[j]}) for j in has_armature]
    return [*damping, *friction, *armature]


def _rows(tree: ClusterTree, parts: Jacobian) -> Matrix:
    """Rows of some clusters (ny_l x m) as rows of all (ny x m)."""
    m = next(iter(parts.values())).columns()
    every = [parts.get(l, ca.DM(node.ny, m)) for l, node in enumerate(tree.clusters)]
    return ca.vertcat(*every)
