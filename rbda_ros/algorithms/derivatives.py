"""Derivatives of inverse dynamics, exact on the manifold.

By recursions on trees without loops, else by algorithmic differentiation.

Along the constraint manifold the spanning position moves with ``qd = G yd``: a derivative with
respect to y is the derivative with respect to q along the columns of G. For a floating base the
direction is the base twist, linear then angular, in the base frame.
"""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.loop_motion import spanning_motion
from rbda_ros.algorithms.rnea import inverse_dynamics
from rbda_ros.algorithms.tree_derivatives import has_tree_derivatives, tree_derivatives
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def inverse_dynamics_derivatives(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix
) -> tuple[Matrix, Matrix]:
    """``d tau / d y`` and ``d tau / d yd`` (ny x ny each); ``d tau / d ydd`` is H.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position symbols, on the constraint manifold.
        yd: (ny) independent velocity symbols.
        ydd: (ny) independent acceleration.
    """
    if has_tree_derivatives(tree):
        return tree_derivatives(tree, q, yd, ydd)
    return differentiated(tree, q, yd, ydd)


def differentiated(tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix) -> tuple[Matrix, Matrix]:
    """The same by algorithmic differentiation of inverse dynamics, for any tree."""
    tau = inverse_dynamics(tree, q, yd, ydd)
    along = ca.SX.sym("along", tree.ny)
    qd, _ = spanning_motion(tree, q, along, ca.DM(tree.ny, 1))
    directions = ca.jacobian(tree.position_rate(q, qd), along)
    return ca.jacobian(tau, q) @ directions, ca.jacobian(tau, yd)


def inverse_dynamics_along(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, x: Matrix
) -> tuple[Matrix, Matrix]:
    """The derivatives (ny each) of inverse dynamics as y, or yd, moves along x (ny)."""
    tau = inverse_dynamics(tree, q, yd, ydd)
    qd, _ = spanning_motion(tree, q, x, ca.DM(tree.ny, 1))
    return ca.jtimes(tau, q, tree.position_rate(q, qd)), ca.jtimes(tau, yd, x)
