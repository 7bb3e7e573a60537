"""The generalized momentum and what changes it, for observers of outside forces."""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.loop_motion import spanning_motion
from rbda_ros.algorithms.rnea import bias_force, inverse_dynamics
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


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
    held = ca.SX.sym("held", tree.ny)  # H times a velocity that does not change with q
    p = inverse_dynamics(tree.without_potential, q, none, held)
    qd, _ = spanning_motion(tree, q, yd, none)
    along = ca.jtimes(p, q, tree.position_rate(q, qd))
    p, Hdot_yd = ca.substitute([p, along], [held], [yd])
    return p, Hdot_yd - bias_force(tree, q, yd)
