"""Matrices of robots with many joints, column by column.

A matrix has an entry for every two joints of which one carries the other, and as one straight
line its program grows with the square of a chain's length, or the cube for a factorization. The
product of the matrix with a vector takes a program that grows linearly. Beyond some length that
program is compiled in its place and evaluated at all unit vectors, as a batch: SIMD lanes are
columns then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.crba import branch_entries
from rbda_ros.algorithms.derivatives import inverse_dynamics_along
from rbda_ros.algorithms.rnea import mass_matrix_times
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.kernels.kernel import Kernel, float_vectors
from rbda_ros.kernels.program import Program, UnsupportedOperationError
from rbda_ros.spatial import Array, Matrix

LONGEST = 80_000
"""Instructions, by the estimates below, from which a matrix is evaluated column by column. A
straight line of this length takes 4 to 6 s to compile."""


@dataclass(frozen=True)
class ByColumns:
    """How to have a matrix by its columns.

    Attributes:
        inputs: names of the kernel's inputs.
        times: ``(tree, *inputs, x) -> products`` (ny) of the matrices with x (ny).
        length: about how many instructions the matrices are as a straight line, from how many
            coordinates carry each coordinate, itself included.
        finish: what to make of the matrices (ny, ny).
        entries: rows and columns of the entries that are wanted; None for all.
    """

    inputs: tuple[str, ...]
    times: Callable[..., tuple[Matrix, ...]]
    length: Callable[[Array], float]
    finish: Callable[[Array], Array]
    entries: Callable[[ClusterTree], list[tuple[int, int]]] | None = None


def _symmetric(H: Array) -> Array:
    """The upper triangle, mirrored: both of a straight line's halves are one value."""
    return np.triu(H) + np.triu(H, 1).T


def _factor(H: Array) -> Array:
    """L with ``H = L' L``, lower triangular; NaN where H is singular.

    Cholesky's factor of H in reverse order fills in no zero of the branches.
    """
    try:
        factor = np.linalg.cholesky(_symmetric(H)[::-1, ::-1])
    except np.linalg.LinAlgError:
        return np.full_like(H, np.nan)
    return np.asarray(factor[::-1, ::-1].T, float)


def _inverse(H: Array) -> Array:
    """H^-1; NaN where H is singular."""
    try:
        return _symmetric(np.asarray(np.linalg.inv(_symmetric(H)), float))
    except np.linalg.LinAlgError:
        return np.full_like(H, np.nan)


MATRICES = {
    "mass_matrix": ByColumns(("q",), mass_matrix_times, lambda d: 18 * d.sum(), _symmetric),
    "mass_matrix_rows": ByColumns(
        ("q",), mass_matrix_times, lambda d: 18 * d.sum(), _symmetric, branch_entries
    ),
    "mass_matrix_factor": ByColumns(
        ("q",), mass_matrix_times, lambda d: (18 * d + d * d).sum(), _factor
    ),
    "mass_matrix_inverse": ByColumns(
        ("q",), mass_matrix_times, lambda d: (18 * d + 2 * d * d + d * len(d)).sum(), _inverse
    ),
    "inverse_dynamics_derivatives": ByColumns(
        ("q", "yd", "ydd"), inverse_dynamics_along, lambda d: 200 * d.sum(), np.asarray
    ),
}


def is_long(tree: ClusterTree, name: str) -> bool:
    """Whether a kernel is to be evaluated column by column."""
    return name in MATRICES and MATRICES[name].length(_carried_by(tree)) > LONGEST


def _carried_by(tree: ClusterTree) -> Array:
    """(ny,) for each coordinate, how many carry it, itself included."""
    last: dict[int | None, int] = {None: 0}
    counts: list[int] = []
    for k, node in enumerate(tree.clusters):
        first = last[node.parent] + 1
        last[k] = last[node.parent] + node.ny
        counts += range(first, last[k] + 1)
    return np.array(counts, float)


def trace_columns(tree: ClusterTree, name: str, names: Sequence[str]) -> ColumnKernel:
    """The kernel of a matrix of a long robot, its outputs named."""
    matrix = MATRICES[name]
    sizes = {"q": tree.nq}
    symbols = [ca.SX.sym(symbol, sizes.get(symbol, tree.ny)) for symbol in (*matrix.inputs, "x")]
    outputs = [ca.densify(ca.SX(output)) for output in matrix.times(tree, *symbols)]
    times = f"{name}_times", symbols, ca.cse(outputs), [*matrix.inputs, "x"], [*names]
    chosen = None
    if matrix.entries is not None:
        chosen = np.array([tree.ny * row + column for row, column in matrix.entries(tree)])
    return ColumnKernel(name, ca.Function(*times), chosen)


class ColumnKernel(Kernel):
    """A kernel whose outputs are square matrices, from one that multiplies them with a vector.

    Or chosen entries of these matrices, numbered row by row.
    """

    def __init__(self, name: str, times: ca.Function, chosen: Array | None = None) -> None:
        self._times, self._retrace = Kernel(times), None
        self._may_compile = self._times._may_compile
        self._machine = self._batch_machine = self._times._batch_machine
        self._chosen = chosen
        *given, (_, self._columns) = self._times.input_sizes.items()
        self.name, self.input_sizes = name, dict(given)
        entries = self._columns**2 if chosen is None else len(chosen)
        self.output_sizes = dict.fromkeys(self._times.output_sizes, entries)
        inputs = tuple(map(np.zeros, self.input_sizes.values()))
        outputs = tuple(map(np.zeros, self.output_sizes.values()))
        finish = MATRICES[name].finish
        evaluate = partial(_evaluate, self._times, finish, chosen, inputs, outputs)
        arguments = partial(float_vectors, name, self.input_sizes)
        self.native = self.call = core.Kernel(inputs, outputs, evaluate, _ignore, arguments)

    @property
    def instructions(self) -> int:
        """Instructions that an answer takes, in CasADi's count: those of all columns."""
        return self._times.instructions * self._columns

    @cached_property
    def program(self) -> Program:
        """There is none: not one straight line.

        Raises:
            UnsupportedOperationError: always.
        """
        raise UnsupportedOperationError(
            f"{self.name} would be too long a program for this robot: it is evaluated column by"
            " column"
        )

    @property
    def address(self) -> int | None:
        """There is no C function."""
        return None

    def interpret(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """As `call`, by the virtual machine."""
        times = Kernel(self._times.function, compiled=False)
        given = float_vectors(self.name, self.input_sizes, *inputs)
        outputs = tuple(map(np.zeros, self.output_sizes.values()))
        _evaluate(times, MATRICES[self.name].finish, self._chosen, given, outputs)
        return outputs

    def disable_machine_code(self, why: Exception) -> None:
        """Use the machine code no more."""
        self._may_compile = False
        self._times.disable_machine_code(why)


def _evaluate(
    times: Kernel,
    finish: Callable[[Array], Array],
    chosen: Array | None,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
) -> None:
    """Evaluate inputs into matrices (ny * ny), or chosen entries, by a batch of unit vectors."""
    unit_vectors = np.eye([*times.input_sizes.values()][-1])
    repeated = (np.broadcast_to(x, (len(unit_vectors), len(x))) for x in inputs)
    products = times.batch(*repeated, unit_vectors)
    for output, each in zip(outputs, products, strict=True):
        entries = finish(each.T).ravel()
        output[:] = entries if chosen is None else entries[chosen]


def _ignore(states: int) -> None:
    """Columns are a batch already."""
