"""Centre of mass, centroidal momentum and energy of the whole robot.

Momentum is summed over composites, as by Orin, Goswami and Lee, "Centroidal dynamics of a humanoid
robot" (2013), with clusters in place of bodies: a motion across a joint moves all that the joint
carries. Linear rows come first, axes are those of the world, and moments are about the centre of
mass. Bodies that are fixed to the world do not count.
"""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.composites import bodies_inward, composites
from rbda_ros.algorithms.kinematics import world_poses
from rbda_ros.algorithms.loop_motion import spanning_velocity
from rbda_ros.algorithms.motion import (
    Clustered,
    accelerations,
    cluster_joints,
    spatial_velocities,
    velocities,
)
from rbda_ros.algorithms.rnea import bias_force, body_forces, inverse_dynamics, on_base
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant


def center_of_mass(tree: ClusterTree, q: Matrix) -> Matrix:
    """c (3), the centre of mass of all that moves, in the world [m].

    Args:
        q: (nq) spanning position, on the constraint manifold.
    """
    return _center(tree, cluster_joints(tree, q))


def center_of_mass_jacobian(tree: ClusterTree, q: Matrix) -> Matrix:
    """J_c (3 x ny) with ``dc/dt = J_c yd``.

    Args:
        q: (nq) spanning position, on the constraint manifold.
    """
    return ca.densify(centroidal_momentum_matrix(tree, q)[:3, :]) / _mass(tree)


def center_of_mass_bias_acceleration(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """``J_c-dot yd`` (3): acceleration of the centre of mass at ydd = 0 [m/s^2].

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
    """
    return ca.densify(centroidal_momentum_rate(tree, q, yd, ca.DM(tree.ny, 1))[:3]) / _mass(tree)


def centroidal_momentum_matrix(tree: ClusterTree, q: Matrix) -> Matrix:
    """A (6 x ny) with momentum ``[l; k] = A yd``, k about the centre of mass (Orin 2013, Eq. 1).

    Args:
        q: (nq) spanning position, on the constraint manifold.
    """
    joints = cluster_joints(tree, q)
    found, total = composites(tree, joints)
    c = ca.densify(total.h) / _mass(tree)
    R, p = world_poses(tree, joints)
    columns: list[Matrix] = [ca.DM(6, 0)]
    for k, node in enumerate(tree.clusters):
        of_cluster: Matrix = ca.DM(6, node.ny)
        for i, _, SG, _ in bodies_inward(tree, joints, k):
            # Momentum that unit velocities give to the composite, whose origin is at a lever.
            taken = found[k, i].forces(ca.vertcat(ca.DM(3, node.ny), SG))
            R_i, lever = R[node.numbers[i]], p[node.numbers[i]] - c
            n, l = R_i @ taken[:3, :], R_i @ taken[3:, :]
            of_cluster += ca.vertcat(l, n + ca.skew(lever) @ l)
        columns.append(of_cluster)
    return ca.horzcat(*columns)


def centroidal_momentum(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """[l; k] (6): linear momentum, and angular momentum about the centre of mass.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
    """
    joints = cluster_joints(tree, q, yd)
    v = spatial_velocities(tree, joints)
    h: Clustered = {k: tree.clusters[k].inertia @ v[k] for k in tree.outward()}
    return _about_center(on_base(tree, joints, h), _center(tree, joints))


def centroidal_momentum_rate(tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix) -> Matrix:
    """``A ydd + A-dot yd`` (6): the force and the moment that the motion takes in all.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
    """
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    a = accelerations(tree, joints, v, ydd, ca.DM(6, 1))
    f = on_base(tree, joints, body_forces(tree, v, a))
    return _about_center(f, _center(tree, joints))


def total_first_moment(tree: ClusterTree, joints: list[ClusterJoint]) -> Matrix:
    """``m c`` (3) of all that moves, in the world [kg m]."""
    return composites(tree, joints)[1].h


def _center(tree: ClusterTree, joints: list[ClusterJoint]) -> Matrix:
    return ca.densify(total_first_moment(tree, joints)) / _mass(tree)


def _mass(tree: ClusterTree) -> float:
    """Of all that moves [kg]; not a number where there is none, and so is what is divided by it."""
    mass = sum(body.mass for body in tree.spanning.bodies)
    return mass if isinstance(mass, ca.SX) else float(mass) or float("nan")


def _about_center(wrench: Matrix, c: Matrix) -> Matrix:
    """A wrench or momentum (6, angular first) about the world's origin: linear, and about c."""
    n, f = wrench[:3], wrench[3:]
    return ca.vertcat(f, n - ca.cross(c, f))


def energy(tree: ClusterTree, q: Matrix, yd: Matrix) -> tuple[Matrix, Matrix]:
    """Kinetic energy ``yd' H yd / 2``, and potential energy of gravity and of springs [J].

    Kinetic energy is summed over the bodies, and has that of armatures. Potential energy of
    gravity is zero where the centre of mass of all that moves is at the world's origin.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
    """
    joints = cluster_joints(tree, q, yd)
    v = spatial_velocities(tree, joints)
    twice = ca.DM(1, 1)
    for k, yd_k in enumerate(tree.split_independent(yd)):
        node = tree.clusters[k]
        for body, v_i in zip(node.bodies, ca.vertsplit(v[k], 6), strict=True):
            twice += _square(body.inertia, v_i)
        twice += _square(ca.diag(constant(node.joint_armature)), joints[k].qd)
        if node.rotor_armature is not None:
            twice += _square(node.rotor_armature, yd_k)
    potential = -ca.dot(ca.DM(list(tree.gravity)), total_first_moment(tree, joints))
    if tree.springs is not None:
        potential += tree.springs.energy(q)
    return twice / 2, potential


def _square(A: Matrix, x: Matrix) -> Matrix:
    """``x' A x`` of a symmetric A, from one triangle of it."""
    A = constant(A) if not isinstance(A, ca.DM) else A
    return ca.dot(x, (2 * ca.triu(A, False) + ca.diag(ca.diag(A))) @ x)


def momentum(tree: ClusterTree, q: Matrix, yd: Matrix) -> tuple[Matrix, Matrix]:
    """``p = H(y) yd`` (ny), and its rate ``Hdot yd - C(y, yd)`` (ny) where no force acts on y.

    From ``H ydd + C = tau + tau_external``: ``dp/dt = tau + tau_external + Hdot yd - C``. It holds
    for the twist of a floating base as for coordinates. Hdot is along the motion, ``qd = G yd``.

    Args:
        q: (nq) spanning position symbols, on the constraint manifold.
        yd: (ny) independent velocity [rad/s, m/s].
    """
    none = ca.DM(tree.ny, 1)
    fixed = ca.SX.sym("fixed", tree.ny)  # a velocity that does not change with q
    p = inverse_dynamics(tree.without_potential, q, none, fixed)
    along = ca.jtimes(p, q, tree.position_rate(q, spanning_velocity(tree, q, yd)))
    p, Hdot_yd = ca.substitute([p, along], [fixed], [yd])
    return p, Hdot_yd - bias_force(tree, q, yd)
