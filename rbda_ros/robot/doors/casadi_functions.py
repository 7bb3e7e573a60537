"""Operations as CasADi functions: for optimal control and for other users of CasADi.

Loops are closed inside: of each loop that is not linear, CasADi's own root finder solves ``phi(q) =
0`` (2) for the dependent joints, with the implicit function theorem for derivatives of any order.
It goes from a known position to the one asked for on a straight line, in `PARTS` parts, so that it
stays on its branch; derivatives are taken at the end of that line alone. Nothing of this package is
needed to evaluate or load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.closing.newton import newton_steps
from rbda_ros.cluster_tree.closing.tolerances import CLOSED
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.trace import trace_check
from rbda_ros.robot.doors.operation_program import Program, argument_sizes, operation_program
from rbda_ros.robot.inputs import FrameName
from rbda_ros.spatial import Array, Matrix

Coordinates = Literal["independent", "spanning"]
COORDINATES = ("independent", "spanning")


def casadi(
    robot: Any,
    name: str,
    coordinates: Coordinates = "independent",
    *,
    frame: FrameName | None = None,
    external_wrenches: Sequence[str] = (),
    friction: bool = False,
    near: ArrayLike | None = None,
    status: bool = False,
) -> ca.Function:
    """An operation as a ``casadi.Function``, to be differentiated, embedded or saved.

    Inputs have the names of the method's arguments, outputs those of its results. The function
    consists of CasADi's own operations: ``save`` writes a file that ``casadi.Function.load`` reads
    where this package is not installed, and ``generate`` writes C.

    With independent coordinates, ``q`` is the independent position and ``qd`` (ny,). Loops are
    closed inside, from ``near`` on a straight line to ``q``, and derivatives of any order are exact
    by the implicit function theorem. Where a loop does not close, evaluation raises
    ``RuntimeError`` with a message that names it; generated C returns a status other than 0.

    With spanning coordinates, ``q`` is (nq,) and ``qd`` (nv,), of which the independent entries
    are read. Nothing is solved and nothing is checked: the function is defined off the loops too,
    where its values mean nothing, and partial derivatives are those of its program. That is the
    form for problems with loop constraints of their own.

    Args:
        robot: the robot.
        name: of the operation, e.g. ``"forward_dynamics"``; one of
            ``rbda_ros.robot.operations.OPERATIONS``. Also ``"close"``, the spanning position of an
            independent one: where several operations are needed at one position, close it once
            and give it to functions of spanning coordinates.
        coordinates: ``"independent"`` or ``"spanning"``.
        frame: for operations about a frame: a link, (link, xyz) or (link, xyz, rpy).
        external_wrenches: links that wrenches act on. The function has one more input of this name
            then, (links, 6): force then moment on each, in the link's frame [N, N m].
        friction: whether the URDF's joint friction and damping act.
        near: (nq,) closed position to begin from, which picks the branch of the loops; None for
            the assembly.
        status: add an output ``status`` at the end: 1 where the position satisfies the loops and
            is at no dead point, and all inputs are finite; else 0, and the other outputs mean
            nothing.

    Returns:
        A function with one output for each result; matrices as they are, stacks of matrices one
        below the other.

    Raises:
        InputError: there is no such operation or frame, or y has only part of some joint, so that
            it has no position.
    """
    if coordinates not in COORDINATES:
        raise InputError(f"coordinates: {coordinates!r}; give 'independent' or 'spanning'")
    if name == "close":
        return _closing(robot, near)
    program = operation_program(robot, name, frame, tuple(external_wrenches), friction)
    _check_inertia(robot, program)
    closing = None if coordinates == "spanning" else _closing(robot, near)
    return _assembled(robot, program, closing, status)


def _closing(robot: Any, near: ArrayLike | None) -> ca.Function:
    """``y -> q``, from a position that picks the branch."""
    positions = robot._inputs.choices.independent_positions
    if positions is None:
        raise InputError(
            f"{robot.name}: y has only some coordinates of a joint, so it has no position; use"
            " coordinates='spanning', or choose other independent joints"
        )
    start = robot.neutral() if near is None else robot._single_state(near).q
    return closing_function(robot.tree, positions, start)


def _assembled(
    robot: Any, program: Program, closing: ca.Function | None, status: bool
) -> ca.Function:
    """The function with inputs as users have them and outputs in their shapes."""
    symbol = ca.SX.sym if closing is None or closing.is_a("SXFunction") else ca.MX.sym
    given, read = [], []
    for name, kind in zip(program.names, program.kinds, strict=True):
        rows, columns = _shape(robot, program, kind, closing)
        x = symbol(name, rows, columns)
        given.append(x)
        read.append(_read(robot, kind, x, closing))
    flat = (
        program.function.call(read, True, False)
        if isinstance(given[0], ca.SX)
        else (program.function.call(read))
    )
    outputs = [_shaped(out, shape) for out, shape in zip(flat, program.shapes, strict=True)]
    names = list(program.record.results)
    if status:
        outputs.append(_status(robot, read[0], given))
        names.append("status")
    name = program.record.name
    return ca.Function(name, given, outputs, list(program.names), names)


def _shape(robot: Any, program: Program, kind: str, closing: ca.Function | None) -> tuple[int, int]:
    if kind == "Wrenches":
        return len(program.links), 6
    if kind == "Position" and closing is not None:
        return closing.numel_in(0), 1
    if kind == "Velocity" and closing is None:
        return robot.nv, 1
    return argument_sizes(robot)[kind][0], 1


def _read(robot: Any, kind: str, x: Matrix, closing: ca.Function | None) -> Matrix:
    """An input as the program takes it."""
    if kind == "Wrenches":
        return ca.vec(x.T)
    if kind == "Position" and closing is not None:
        return closing(x)
    if kind == "Velocity" and closing is None:
        return x[list(robot.independent_coordinates)]
    return x


def _shaped(flat: Matrix, shape: tuple[int, ...]) -> Matrix:
    """A flat result as a matrix; of more than two axes, one below the other."""
    if len(shape) < 2:
        return flat
    columns = shape[-1]
    return ca.reshape(flat, columns, flat.numel() // columns if columns else 0).T


def _status(robot: Any, q: Matrix, given: Sequence[Matrix]) -> Matrix:
    check = trace_check(robot.tree)
    rows = robot._kernels.function("loop_state")
    held = sum(rows.numel_out(i) for i in range(rows.n_out()))
    numbers = ca.vertcat(*map(ca.vec, given))
    finite = ca.sum1(ca.fabs(numbers) <= np.finfo(float).max)
    return ca.logic_and(check(q) == held, finite == numbers.numel())


def _check_inertia(robot: Any, program: Program) -> None:
    """Reject an operation without a finite result at the assembly: H is singular."""
    function = program.function
    given = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
    given[0] = robot.neutral()
    results = function.call(given)
    if not all(np.isfinite(np.asarray(each)).all() for each in results):
        raise SingularityError(
            f"{robot.name}: {program.record.name} is not finite at the assembly; a movable link"
            " may have no inertia"
        )


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
