"""The spanning position as a CasADi function of the independent one: loops closed inside.

Of each loop that is not linear, CasADi's own root finder solves ``phi(q) = 0`` (2) for the
dependent joints, with the implicit function theorem for derivatives of any order. It goes from a
known position to the one asked for on a straight line, in `PARTS` parts, so that it stays on its
branch; derivatives are taken at the end of that line alone. Nothing of this package is needed to
evaluate or load it.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.cluster_tree.closing.newton import newton_steps
from rbda_ros.cluster_tree.closing.tolerances import CLOSED
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array, Matrix

PARTS = 8
"""In how many parts the independent joints go to where they are: a radian in steps of an eighth
does not lead to another branch, but near a dead point."""
ON_THE_WAY = {"abstol": 1e-3, "abstolStep": 1e-3, "max_iter": 4, "error_on_fail": False}
AT_THE_END = {"abstol": 1e-15, "abstolStep": 1e-14, "max_iter": 12, "error_on_fail": False}
"""Newton steps converge quadratically: those at the end reach rounding, which `CLOSED` then asks
for, in four or five."""


def closing_function(tree: ClusterTree, positions: Sequence[int], near: Array) -> ca.Function:
    """``y -> q``: the spanning position (nq) that closes every loop.

    Without loops that are not linear it is in SX, else in MX. Where a loop does not close,
    evaluation fails with a message that names it.

    Args:
        tree: the cluster tree.
        positions: which entries of q are the position of y.
        near: (nq,) closed position from where to go to y; it picks the branch.
    """
    if any(node.loop is not None and not node.loop.constant for node in tree.clusters):
        y: Matrix = ca.MX.sym("y", len(positions))
    else:
        y = ca.SX.sym("y", len(positions))
    place_in_y = {entry: i for i, entry in enumerate(positions)}
    parts = [ca.DM(0, 1)]
    for node, place in zip(tree.clusters, tree.position_ranges, strict=True):
        known = {i: place_in_y[entry] for i, entry in enumerate(place) if entry in place_in_y}
        given = y[list(known.values())]
        start = near[place.start : place.stop]
        if node.loop is None:
            parts.append(given)
        elif node.loop.constant:
            parts.append(_linear(node, list(known), start)(given))
        else:
            parts.append(_closed(node, list(known), start, given))
    return ca.Function("close", [y], [ca.vertcat(*parts)], ["y"], ["q"])


def _linear(node: ClusterNode, known: Sequence[int], start: Array) -> ca.Function:
    """``y_k -> q_k`` of gears and belts: one step is the answer."""
    assert node.loop is not None
    y, q = ca.SX.sym("y", len(known)), ca.SX(ca.DM(start))
    q[list(known)] = y
    free = _free(node, known)
    closed, _ = newton_steps(node.loop, ca.DM(start), q, free, 2)
    return ca.Function("linear", [y], [ca.densify(closed)])


def _free(node: ClusterNode, known: Sequence[int]) -> list[int]:
    """Velocity coordinates of joints of which no position is known."""
    parts = zip(node.position_ranges, node.velocity_ranges, strict=True)
    return [j for in_q, in_qd in parts for j in in_qd if in_q.start not in known]


def _closed(node: ClusterNode, known: Sequence[int], start: Array, y: ca.MX) -> ca.MX:
    """q_k of a linkage whose known positions are y."""
    loop = node.loop
    assert loop is not None
    entries = [i for i in range(node.nq) if i not in known]
    x, p = ca.SX.sym("x", len(entries)), ca.SX.sym("p", len(known))
    q = ca.SX(node.nq, 1)
    q[entries], q[list(known)] = x, p
    rows = [loop.phi(q)]
    for body, place in zip(node.bodies, node.position_ranges, strict=True):
        if body.model.nq != body.model.nv and place.start not in known:
            rows.append(ca.sumsqr(q[place.stop - 4 : place.stop]) - 1.0)
    g = ca.vertcat(*rows)
    if g.rows() > x.rows():  # redundant rows: least squares, zero at the same positions
        g = ca.jacobian(g, x).T @ g
    problem = {"x": x, "p": p, "g": ca.densify(ca.cse(g))}
    solve = ca.rootfinder(f"close_{node.name}", "fast_newton", problem, AT_THE_END)
    approach = ca.rootfinder(f"approach_{node.name}", "fast_newton", problem, ON_THE_WAY)
    first, wanted = ca.DM(start[list(known)]), ca.MX.sym("p", len(known))
    at: Matrix = ca.DM(start[entries])
    for part in range(1, PARTS):
        at = approach(at, first + (part / PARTS) * (wanted - first))
    at = solve(at, wanted)
    # The implicit function theorem: dg/dx dx/dp = -dg/dp, at the position that was found.
    slope = -ca.solve(ca.densify(ca.jacobian(g, x)), ca.densify(ca.jacobian(g, p)))
    name = f"follow_{node.name}"
    slope = ca.densify(ca.cse(slope))
    by_p = ca.Function(f"jac_{name}", [p, x], [slope], ["p", "out_x"], ["jac_x_p"])
    options = {"custom_jacobian": by_p, "enable_forward": False, "enable_reverse": False}
    follow = ca.Function(name, [wanted], [at], ["p"], ["x"], options | {"never_inline": True})
    at = follow(y)
    whole = ca.MX(node.nq, 1)
    whole[entries], whole[list(known)] = at, y
    names = ", ".join(constraint.name for constraint in loop.constraints)
    closed = ca.norm_inf(loop.phi(whole)) <= CLOSED
    return whole.attachAssert(
        closed,
        f"the loops {names} do not close at this independent position, or are at a dead point of"
        " it; bound the position, or begin from a nearer one (near=...)",
    )
