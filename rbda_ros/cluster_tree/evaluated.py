"""Functions of a position in numbers, an eighth of the time that a call of CasADi's takes."""

from __future__ import annotations

import threading

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.spatial import Array


class Evaluated:
    """A CasADi function ``q -> matrices`` on numpy arrays: the same numbers. Threads may share it.

    Args:
        function: of one vector.
    """

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        self._local = threading.local()

    def __call__(self, q: Array) -> list[Array]:
        """Each output (rows, columns) at a vector (n,), in a new array."""
        if not hasattr(self._local, "buffers"):
            self._local.buffers = _Buffers(self._function)
        return self._local.buffers.evaluate(q)


class _Buffers:
    """Arrays that one evaluation context of a function reads and writes."""

    def __init__(self, function: ca.Function) -> None:
        outputs = range(function.n_out())
        self._q = np.zeros(function.numel_in(0))
        self._values = [np.zeros(function.nnz_out(i)) for i in outputs]
        self._shapes = [function.size_out(i) for i in outputs]
        self._places = [_row_by_row(function.sparsity_out(i)) for i in outputs]
        # CasADi keeps no reference to the buffer that `run` works on: we do.
        self._buffer, self._run = function.buffer()
        for i, array in enumerate(self._values):
            if array.size:
                self._buffer.set_res(i, memoryview(array))
        if self._q.size:
            self._buffer.set_arg(0, memoryview(self._q))

    def evaluate(self, q: Array) -> list[Array]:
        self._q[:] = q
        self._run()
        found = []
        for shape, places, values in zip(self._shapes, self._places, self._values, strict=True):
            output = np.zeros(shape)
            output.reshape(-1)[places] = values
            found.append(output)
        return found


def _row_by_row(sparsity: ca.Sparsity) -> NDArray[np.int64]:
    """Where entries are, in their order, in a matrix that lies in memory row by row."""
    rows, columns = np.array(sparsity.get_triplet(), np.int64)
    return rows * sparsity.columns() + columns
