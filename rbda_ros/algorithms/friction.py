"""Joint friction and damping, as the URDF's ``<dynamics>`` gives them."""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

STICTION_SPEED = 0.01
"""Coulomb friction is ``friction * tanh(qd / STICTION_SPEED)``, smooth at zero [rad/s, m/s]."""


def friction_force(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """The generalized force (ny) on y that overcomes friction at velocity yd.

    ``G' (damping qd + friction tanh(qd / v0))``, over every joint of the spanning tree: a
    rotor's friction counts on its own side of the gear.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity [rad/s, m/s].
    """
    forces = [ca.DM(0, 1)]
    for node, joint in zip(tree.clusters, cluster_joints(tree, q, yd), strict=True):
        described = [body.joint for body in node.bodies for _ in range(body.model.nv)]
        damping = ca.sparsify(ca.DM([j.damping for j in described]))
        friction = ca.sparsify(ca.DM([j.friction for j in described]))
        spanning = damping * joint.qd + friction * ca.tanh(joint.qd / STICTION_SPEED)
        forces.append(joint.G.T @ spanning)
    return ca.vertcat(*forces)
