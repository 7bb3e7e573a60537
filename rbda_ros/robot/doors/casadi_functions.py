"""Operations as CasADi functions: for optimal control and for other users of CasADi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.trace import trace_check
from rbda_ros.robot.doors.loop_closure import closing_function
from rbda_ros.robot.doors.operation_program import Program, argument_sizes, operation_program
from rbda_ros.robot.inputs import FrameName
from rbda_ros.spatial import Matrix

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
            is at no dead point, else 0, and the other outputs mean nothing.

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
            f"{robot.name}: y has only part of some joint, so it has no position; use"
            " coordinates='spanning', or choose other independent joints"
        )
    start = robot.tree.home if near is None else robot._single_state(near).q
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
        outputs.append(_status(robot, read[0]))
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
    return argument_sizes(robot)[kind], 1


def _read(robot: Any, kind: str, x: Matrix, closing: ca.Function | None) -> Matrix:
    """An input as the program takes it."""
    if kind == "Wrenches":
        return ca.vec(x.T)
    if kind == "Position" and closing is not None:
        return closing(x)
    if kind == "Velocity" and closing is None:
        return x[list(robot.tree.independent)]
    return x


def _shaped(flat: Matrix, shape: tuple[int, ...]) -> Matrix:
    """A flat result as a matrix; of more than two axes, one below the other."""
    if len(shape) < 2:
        return flat
    columns = shape[-1]
    return ca.reshape(flat, columns, flat.numel() // columns if columns else 0).T


def _status(robot: Any, q: Matrix) -> Matrix:
    check = trace_check(robot.tree)
    rows = robot._kernels.function("loop_state")
    held = sum(rows.numel_out(i) for i in range(rows.n_out()))
    return check(q) == held


def _check_inertia(robot: Any, program: Program) -> None:
    """Reject an operation without a finite result at the assembly: H is singular."""
    function = program.function
    given = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
    given[0] = robot.tree.home
    results = function.call(given)
    if not all(np.isfinite(np.asarray(each)).all() for each in results):
        raise SingularityError(
            f"{robot.name}: {program.record.name} is not finite at the assembly; a movable link"
            " may have no inertia"
        )
