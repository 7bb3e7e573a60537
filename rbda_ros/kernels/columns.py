"""Matrices of robots with many joints, column by column.

A matrix has an entry for every two joints of which one carries the other, and as one straight
line its program grows with the square of a chain's length, or the cube for a factorization. The
product of the matrix with a vector takes a program that grows linearly. Beyond some length that
program is compiled in its place and evaluated at all unit vectors, as a batch: SIMD lanes are
columns then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.derivatives import inverse_dynamics_along
from rbda_ros.algorithms.rnea import mass_matrix_times
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError
from rbda_ros.kernels.kernel import BoundCall, Kernel
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
    """

    inputs: tuple[str, ...]
    times: Callable[..., tuple[Matrix, ...]]
    length: Callable[[Array], float]
    finish: Callable[[Array], Array]


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


def _as_it_is(A: Array) -> Array:
    return A


MATRICES = {
    "mass_matrix": ByColumns(("q",), mass_matrix_times, lambda d: 18 * d.sum(), _symmetric),
    "mass_matrix_factor": ByColumns(
        ("q",), mass_matrix_times, lambda d: (18 * d + d * d).sum(), _factor
    ),
    "inverse_dynamics_derivatives": ByColumns(
        ("q", "yd", "ydd"), inverse_dynamics_along, lambda d: 200 * d.sum(), _as_it_is
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


def trace_columns(tree: ClusterTree, name: str) -> ColumnKernel:
    """The kernel of a matrix of a long robot."""
    matrix = MATRICES[name]
    sizes = {"q": tree.nq}
    symbols = [ca.SX.sym(symbol, sizes.get(symbol, tree.ny)) for symbol in (*matrix.inputs, "x")]
    outputs = [ca.densify(ca.SX(output)) for output in matrix.times(tree, *symbols)]
    names = [*matrix.inputs, "x"], [f"o{i}" for i in range(len(outputs))]
    return ColumnKernel(name, ca.Function(f"{name}_times", symbols, ca.cse(outputs), *names))


class ColumnKernel(Kernel):
    """A kernel whose outputs are square matrices, from one that multiplies them with a vector."""

    def __init__(self, name: str, times: ca.Function) -> None:
        super().__init__(times)
        self._name = name
        self._finish = MATRICES[name].finish
        self._unit_vectors = np.eye(times.numel_in(times.n_in() - 1))

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self._name

    @property
    def instructions(self) -> int:
        """Instructions that an answer takes, in CasADi's count: those of all columns."""
        return super().instructions * len(self._unit_vectors)

    @property
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
    def compiled(self) -> bool:
        """Whether machine code answers."""
        return self._batch_machine.value is not None

    @property
    def error(self) -> Exception | None:
        """Why there will be no machine code; None if there is, or may be."""
        return self._batch_machine.error

    @property
    def address(self) -> int | None:
        """There is no C function."""
        return None

    def compile(self, *, batch: bool = False) -> bool:
        """Wait for machine code; whether it is there."""
        return self._may_compile and self._batch_machine.wait() is not None

    def request(self) -> None:
        """Have it compiled in the background."""
        if self._may_compile:
            self._batch_machine.request()

    def call(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """Evaluate at one state: a vector per input; each matrix flat, row by row."""
        return tuple(A.ravel() for A in self._matrices(self._checked(inputs)))

    def bind(self) -> BoundCall:
        """A call with arrays of its own."""
        return _BoundColumns(self)

    def batch(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """Evaluate at N states: each input (N, n); each output (N, ny * ny)."""
        rows = [np.asarray(given, float) for given in inputs]
        states = len(rows[0]) if rows and rows[0].ndim == 2 else 0
        if any(array.ndim != 2 or len(array) != states for array in rows):
            shapes = ", ".join(str(array.shape) for array in rows)
            raise InputError(f"{self.name}: inputs of a batch have as many rows, not {shapes}")
        count, size = self._function.n_out(), self._unit_vectors.size
        outputs = tuple(np.empty((states, size)) for _ in range(count))
        for i in range(states):
            for output, A in zip(outputs, self.call(*(array[i] for array in rows)), strict=True):
                output[i] = A
        return outputs

    def _checked(self, inputs: tuple[ArrayLike, ...]) -> list[Array]:
        function = self._function
        count = function.n_in() - 1
        if len(inputs) != count:
            wanted = ", ".join(function.name_in()[:count])
            raise InputError(f"{self.name} takes {count} arrays ({wanted}), not {len(inputs)}")
        arrays = [np.asarray(given, float) for given in inputs]
        for i, array in enumerate(arrays):
            if array.shape != (function.numel_in(i),):
                raise InputError(
                    f"{self.name}: {function.name_in(i)} has shape {array.shape},"
                    f" not ({function.numel_in(i)},)"
                )
        return arrays

    def _matrices(self, state: list[Array]) -> Iterator[Array]:
        columns = len(self._unit_vectors)
        repeated = (np.broadcast_to(x, (columns, len(x))) for x in state)
        for products in super().batch(*repeated, self._unit_vectors):
            yield np.ascontiguousarray(self._finish(products.T))


class _BoundColumns(BoundCall):
    """Arrays of its own, but calling allocates: columns are many."""

    def __init__(self, kernel: ColumnKernel) -> None:
        self._columns, function = kernel, kernel._function
        size = kernel._unit_vectors.size
        self.inputs = tuple(np.zeros(function.numel_in(i)) for i in range(function.n_in() - 1))
        self.outputs = tuple(np.zeros(size) for _ in range(function.n_out()))

    def __call__(self) -> None:
        """Evaluate `inputs` into `outputs`."""
        for output, A in zip(self.outputs, self._columns.call(*self.inputs), strict=True):
            output[:] = A
