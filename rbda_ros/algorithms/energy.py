"""Kinetic and potential energy, and the generalized momentum with what changes it."""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.centroidal import total_first_moment
from rbda_ros.algorithms.loop_motion import spanning_motion
from rbda_ros.algorithms.motion import cluster_joints, spatial_velocities
from rbda_ros.algorithms.rnea import bias_force, inverse_dynamics
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant


def energy(tree: ClusterTree, q: Matrix, yd: Matrix) -> tuple[Matrix, Matrix]:
    """Kinetic energy ``yd' H yd / 2``, and potential energy of gravity and of springs [J].

    Kinetic energy is summed over the bodies, and has that of armatures. Potential energy of
    gravity is zero where the centre of mass of all that moves is at the world's origin.

    Args:
        tree: the cluster tree.
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
        tree: the cluster tree.
        q: (nq) spanning position symbols, on the constraint manifold.
        yd: (ny) independent velocity [rad/s, m/s].
    """
    none = ca.DM(tree.ny, 1)
    fixed = ca.SX.sym("fixed", tree.ny)  # a velocity that does not change with q
    p = inverse_dynamics(tree.without_potential, q, none, fixed)
    qd, _ = spanning_motion(tree, q, yd, none)
    along = ca.jtimes(p, q, tree.position_rate(q, qd))
    p, Hdot_yd = ca.substitute([p, along], [fixed], [yd])
    return p, Hdot_yd - bias_force(tree, q, yd)
