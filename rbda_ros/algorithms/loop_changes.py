"""How a cluster's loops change its joints' motion when its independent coordinates change.

``qd = G yd`` and ``qdd = G ydd + g`` follow from ``K qd = 0`` and ``K qdd = k`` (2), (3). With y_j
the position moves along G_j, column j of G; what this changes of G, qd and qdd solves the same
equations for another right-hand side:

    K dG = -dK G,        K d(qdd) = dk - dK qdd,        dy = 0                              (a)

so that K is never differentiated through its factorization. As y moves with yd, ``g = dG/dt yd``
is the sum of what each coordinate changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.spatial import Matrix


@dataclass(frozen=True, eq=False)
class LoopChange:
    """Changes of a cluster's spanning motion by unit changes of y and yd.

    Attributes:
        G: (nv x ny) independent to spanning velocities.
        g: (nv) spanning acceleration at ydd = 0.
        G_by_y: dG (nv x ny) for each coordinate; empty where G is constant.
        qd_by_y, qdd_by_y, qdd_by_yd: (nv x ny).
    """

    G: Matrix
    g: Matrix
    G_by_y: tuple[Matrix, ...]
    qd_by_y: Matrix
    qdd_by_y: Matrix
    qdd_by_yd: Matrix


def loop_change(node: ClusterNode, q: Matrix, yd: Matrix, ydd: Matrix) -> LoopChange:
    """Of one cluster, at its spanning position q (nq), yd and ydd (ny)."""
    G, nothing = node.velocity_map(q), ca.DM(node.nv, node.ny)
    if node.loop is None or node.loop.constant:
        return LoopChange(G, ca.DM(node.nv, 1), (), nothing, nothing, nothing)
    curvature, residual_change = _derivatives(node.loop)
    directions = ca.horzsplit(G)

    dG: dict[tuple[int, int], Matrix] = {}
    symmetric = all(body.model.nq == body.model.nv for body in node.bodies)
    for j, along in enumerate(directions):
        for i, column in enumerate(directions):
            if symmetric and i < j:  # second derivatives of phi commute
                dG[i, j] = dG[j, i]
            else:
                dG[i, j] = node.loop.dependent(q, -curvature(q, column, along), node.independent)
    columns = range(node.ny)
    G_by_y = tuple(ca.horzcat(*(dG[i, j] for i in columns)) for j in columns)
    qd_by_y = ca.horzcat(*(changed @ yd for changed in G_by_y))
    qd, g = G @ yd, qd_by_y @ yd
    qdd = G @ ydd + g
    qdd_by_y = ca.horzcat(
        *(
            node.loop.dependent(
                q, residual_change(q, qd, qdd, directions[j], qd_by_y[:, j]), node.independent
            )
            for j in columns
        )
    )
    qdd_by_yd = qd_by_y + sum((G_by_y[j] * yd[j] for j in columns), ca.DM(node.nv, node.ny))
    return LoopChange(G, g, G_by_y, qd_by_y, qdd_by_y, qdd_by_yd)


def _derivatives(loop: Loop) -> tuple[ca.Function, ca.Function]:
    """The right-hand sides of (a), by algorithmic differentiation of K and k alone.

    Returns:
        ``q, u, along -> dK u``; and ``q, qd, qdd, along, dqd -> dk - dK qdd``.
    """
    q, qd = loop.k.sx_in()
    qdd, along, dqd = (ca.SX.sym(name, loop.nv) for name in ("qdd", "along", "dqd"))
    direction = loop.position_rate(q, along)
    K, k = loop.K(q), loop.k(q, qd)
    curvature = ca.jtimes(K @ qd, q, direction)
    change = ca.jtimes(k - K @ qdd, q, direction) + ca.jtimes(k, qd, dqd)
    return (
        ca.Function("curvature", [q, qd, along], [curvature]),
        ca.Function("residual_change", [q, qd, qdd, along, dqd], [change]),
    )
