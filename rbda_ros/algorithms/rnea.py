"""Inverse dynamics by the constraint-embedding RNEA (Chignoli 2024, Sec. V)."""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import (
    Clustered,
    accelerations,
    armature_forces,
    cluster_joints,
    external_forces,
    gravity,
    inertial_force,
    velocities,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant


def inverse_dynamics(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, wrenches: Matrix | None = None
) -> Matrix:
    """The generalized force tau (ny) on y that gives acceleration ydd.

    ``tau = H(y) ydd + C(y, yd)``: gravity, springs, Coriolis and centrifugal forces and every rotor
    and linkage included; no friction.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        ydd: (ny) independent acceleration [rad/s^2, m/s^2].
        wrenches: (6 x bodies) external force on each body in its frame, angular first
            [N m, N]; None for none.
    """
    # Outward pass: motion of every body, and the force it takes.
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)  # (38)
    a = accelerations(tree, joints, v, ydd, gravity(tree))  # (39)
    f = body_forces(tree, v, a)
    for k in tree.outward():
        f[k] = f[k] - external_forces(tree, k, wrenches)

    # Inward pass: force across every tree joint, and its part along y.
    tau = along_y(tree, joints, f) + armature_forces(tree, joints, ydd)
    return tau + spring_force(tree, q)


def body_forces(tree: ClusterTree, v: Clustered, a: Clustered) -> Clustered:
    """f_k (6n): the force that the motion of the bodies of each cluster takes (63)."""
    f: Clustered = {}
    for k in tree.outward():
        parts = zip(
            tree.clusters[k].bodies, ca.vertsplit(v[k], 6), ca.vertsplit(a[k], 6), strict=True
        )
        forces = (inertial_force(constant(body.inertia), v_i, a_i) for body, v_i, a_i in parts)
        f[k] = ca.vertcat(*forces)
    return f


def at_constant_velocity(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered
) -> tuple[Clustered, Matrix]:
    """Accelerations (6n) of the bodies at ydd = 0, and the force on y (ny) that this takes.

    Springs are left out.
    """
    still = ca.DM(tree.ny, 1)
    a = accelerations(tree, joints, v, still, gravity(tree))
    f = along_y(tree, joints, body_forces(tree, v, a))
    return a, f + armature_forces(tree, joints, still)


def along_y(tree: ClusterTree, joints: list[ClusterJoint], forces: Clustered, m: int = 1) -> Matrix:
    """Generalized forces (ny x m) that balance forces (6n x m) on clusters; missing ones are zero.

    Carried inward, each is the force across the tree joints, and its part along y.
    """
    f: Clustered = {k: forces.get(k, ca.DM(tree.rows(k), m)) for k in (None, *tree.outward())}
    tau: list[Matrix] = [None] * len(tree.clusters)
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        across = joint.J.T @ f[k]  # (26), (29)
        tau[k] = joint.SG.T @ across  # (23)
        f[l] = f[l] + joint.E.T @ across  # (65)
    return ca.vertcat(ca.DM(0, m), *tau)


def on_base(tree: ClusterTree, joints: list[ClusterJoint], forces: Clustered) -> Matrix:
    """The sum (6) of forces (6n) on all clusters, about the origin of the world, in its axes."""
    f: Clustered = {None: ca.DM(6, 1), **forces}
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        f[l] = f[l] + joint.E.T @ (joint.J.T @ f[k])  # (65)
    return f[None]


def bias_force(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """C(y, yd) (ny): the force that holds yd constant, gravity and springs included."""
    return inverse_dynamics(tree, q, yd, ca.DM(tree.ny, 1))


def gravity_force(tree: ClusterTree, q: Matrix) -> Matrix:
    """The force (ny) that holds the robot still against gravity and its springs."""
    return inverse_dynamics(tree, q, ca.DM(tree.ny, 1), ca.DM(tree.ny, 1))


def mass_matrix_times(tree: ClusterTree, q: Matrix, x: Matrix) -> tuple[Matrix]:
    """H x (ny): what the acceleration x (ny) takes at rest and without gravity."""
    return (inverse_dynamics(tree.without_potential, q, ca.DM(tree.ny, 1), x),)
