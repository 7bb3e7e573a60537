"""How contacts and loops change with the position, for derivatives through contacts.

The derivatives are along the manifold of closed positions, in the directions of y; for a floating
base that is the base twist, linear then angular, in the base frame (as in `derivatives`).
"""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.kinematics import BodyFrame, frame_bias_acceleration, jacobian
from rbda_ros.algorithms.loop_motion import generalized_force, spanning_motion
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def frame_changes(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, wrench: Matrix, at: BodyFrame
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Changes of a frame's acceleration and velocity, and of the force on y of a wrench on it.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
        wrench: (6) force then moment at the frame's origin, in world axes.
        at: the frame.

    Returns:
        ``J ydd + J-dot yd`` by y and by yd (6 x ny each); ``J yd`` by y (6 x ny); ``J' wrench`` by
        y (ny x ny).
    """
    J = jacobian(tree, q, at)
    a, v = J @ ydd + frame_bias_acceleration(tree, q, yd, at), J @ yd
    T = _tangents(tree, q)
    return (
        ca.jacobian(a, q) @ T,
        ca.jacobian(a, yd),
        ca.jacobian(v, q) @ T,
        ca.jacobian(J.T @ wrench, q) @ T,
    )


def spanning_changes(
    tree: ClusterTree, q: Matrix, yd: Matrix, spanning_tau: Matrix
) -> tuple[Matrix, Matrix]:
    """Changes by y of ``G yd`` (nv x ny), and of ``G' tau`` (ny x ny).

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        spanning_tau: (nv) forces on every joint.
    """
    T = _tangents(tree, q)
    qd, _ = spanning_motion(tree, q, yd, ca.DM(tree.ny, 1))
    force = generalized_force(tree, q, spanning_tau)
    return ca.jacobian(ca.SX(qd), q) @ T, ca.jacobian(ca.SX(force), q) @ T


def _tangents(tree: ClusterTree, q: Matrix) -> Matrix:
    """(nq x ny) rates of q for unit velocities of y."""
    columns = [ca.DM(tree.nq, 0)]
    for i in range(tree.ny):
        unit = ca.DM(ca.Sparsity.triplet(tree.ny, 1, [i], [0]), 1)
        qd, _ = spanning_motion(tree, q, unit, ca.DM(tree.ny, 1))
        columns.append(tree.position_rate(q, qd))
    return ca.horzcat(*columns)
