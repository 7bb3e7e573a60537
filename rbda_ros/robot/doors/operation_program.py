"""An operation as one CasADi function of flat vectors, made from its record.

Its inputs are the arguments as kernels read them: a spanning position, an independent velocity,
vectors, and wrenches on chosen links. Matrices are flat, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.kernels.quantities import QUANTITIES, shape_of
from rbda_ros.kernels.registry import robot_sizes
from rbda_ros.robot.inputs import FrameName
from rbda_ros.robot.operations import KINDS, OPERATIONS, SIGNS, Operation
from rbda_ros.spatial import Array, Matrix

WRENCHES = "external_wrenches"


@dataclass(frozen=True, eq=False)
class Program:
    """An operation with its options chosen.

    Attributes:
        record: the operation, with steps for its options.
        function: ``q, arguments -> results`` of flat vectors, in SX.
        names: of its inputs, as the method has them.
        kinds: of its inputs: the annotations of operations, and ``"Wrenches"``.
        shapes: of its results.
        links: that external wrenches act on.
    """

    record: Operation
    function: ca.Function
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    links: tuple[str, ...]


def operation_program(
    robot: Any,
    name: str,
    frame: FrameName | None = None,
    links: Sequence[str] = (),
    friction: bool = False,
) -> Program:
    """The program of an operation.

    Args:
        robot: whose operation it is.
        name: of the operation.
        frame: for operations about a frame.
        links: where external wrenches act, for operations that take wrenches.
        friction: whether the URDF's joint friction and damping act, for the same operations.

    Raises:
        InputError: there is no such operation, frame or link, or it does not take the option.
    """
    record = _checked(name, frame, links, friction)
    options = (robot._inputs.frame(frame),) if frame is not None else ()
    if record.wrenches:
        record = record.with_options(bool(links), friction)
    tree = robot.tree
    sizes = argument_sizes(robot) | {"Wrenches": (6 * len(links),)}
    symbols = [ca.SX.sym(a.name, sizes[a.kind][0]) for a in record.arguments]
    known: dict[str, Matrix] = {
        argument.read_as: symbol for argument, symbol in zip(record.arguments, symbols, strict=True)
    }
    if links:
        known["wrenches"] = ca.DM(_onto_bodies(robot, links)) @ known["wrenches"]
    for step in record.steps:
        if step.kernel in SIGNS:
            left, right = (known[each] for each in step.inputs)
            known[step.outputs[0]] = left + SIGNS[step.kernel] * right
            continue
        function = robot._kernels.function(step.kernel, *options)
        given = [
            known.get(each, ca.DM(function.numel_in(i), 1)) for i, each in enumerate(step.inputs)
        ]
        known |= dict(zip(step.outputs, function.call(given, True, False), strict=False))
    if record.solves:
        factor = robot._kernels.function("mass_matrix_factor")(known["q"])
        known |= _solved(record, tree.ny, _matrix(factor, tree.ny), known)
    results = [known[each] for each in record.results]
    shapes = [
        shape_of(QUANTITIES[each].shape, result.numel(), robot_sizes(tree))
        for each, result in zip(record.results, results, strict=True)
    ]
    flat = ca.cse([ca.densify(ca.SX(result)) for result in results])
    names = tuple(argument.name for argument in record.arguments)
    function = ca.Function(name, symbols, flat, list(names), list(record.results))
    kinds = tuple(argument.kind for argument in record.arguments)
    return Program(record, function, names, kinds, tuple(shapes), tuple(links))


def argument_sizes(robot: Any) -> dict[str, tuple[int, ...]]:
    """How many numbers arguments of each kind may have; kernels read as many as the first says."""
    return {
        kind: tuple(getattr(robot, size) for size in each.sizes) or (1,)
        for kind, each in KINDS.items()
    }


def _checked(name: str, frame: FrameName | None, links: Sequence[str], friction: bool) -> Operation:
    record = OPERATIONS.get(name)
    if record is None:
        raise InputError(f"there is no operation {name!r}; there are {', '.join(OPERATIONS)}")
    if record.of_frame != (frame is not None):
        about = "is about a frame" if record.of_frame else "is about no frame"
        raise InputError(f"{name} {about}; give frame only to those about one")
    if (links or friction) and not record.wrenches:
        raise InputError(f"{name} takes no wrenches and no friction; leave these options out")
    return record


def _onto_bodies(robot: Any, links: Sequence[str]) -> Array:
    """(6 bodies, 6 links) wrenches on links as kernels take them."""
    columns = [robot.body_wrenches({link: axis}) for link in links for axis in np.eye(6)]
    return np.array(columns).T


def _solved(record: Operation, ny: int, L: Matrix, known: dict[str, Matrix]) -> dict[str, Matrix]:
    """``-H^-1`` times the results, and ``H^-1`` itself, with ``H = L' L``; flat."""
    solved = {}
    for each in record.results:
        right = ca.DM.eye(ny) if each == "inverse" else -_matrix(known[each], ny)
        inner = _substituted(L.T, ca.SX(right), range(ny)[::-1])
        solved[each] = ca.vec(_substituted(L, inner, range(ny)).T)
    return solved


def _substituted(T: Matrix, right: Matrix, order: Sequence[int]) -> Matrix:
    """x with ``T x = right``, for a T that is triangular if its rows are in this order."""
    rows: dict[int, Matrix] = {}
    for i in order:
        known = (T[i, j] * rows[j] for j in rows if not T[i, j].is_zero())
        rows[i] = (right[i, :] - sum(known, ca.SX(0))) / T[i, i]
    return ca.vertcat(*(rows[i] for i in range(T.rows())))


def _matrix(flat: Matrix, rows: int) -> Matrix:
    """A matrix of so many rows, from its entries row by row."""
    return ca.reshape(flat, flat.numel() // rows if rows else 0, rows).T
