"""A kernel: one traced algorithm of one robot, called with numpy arrays."""

from __future__ import annotations

import threading
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray


class Kernel:
    """A straight-line program evaluated by CasADi's virtual machine through kept buffers.

    Threads may share a kernel: each gets buffers of its own.
    """

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        self._local = threading.local()

    @property
    def instructions(self) -> int:
        """Length of the program, in CasADi's count."""
        return int(self._function.n_instructions())

    @property
    def compiled(self) -> bool:
        """Whether machine code answers; False while the virtual machine does."""
        return False

    def call(self, *inputs: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Evaluate at one state: one array per input, in column order; new arrays returned."""
        buffers = self._buffers()
        for kept, given in zip(buffers.inputs, inputs, strict=True):
            np.copyto(kept, given)
        buffers.evaluate()
        return tuple(output.copy() for output in buffers.outputs)

    def batch(self, *inputs: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Evaluate at N states: each input (N, n); each output (N, m)."""
        arrays = [np.asarray(given, dtype=float) for given in inputs]
        results = [self.call(*row) for row in zip(*arrays, strict=True)]
        sizes = (self._function.numel_out(i) for i in range(self._function.n_out()))
        return tuple(
            np.array([result[i] for result in results]).reshape(len(results), size)
            for i, size in enumerate(sizes)
        )

    def _buffers(self) -> Any:
        if not hasattr(self._local, "buffers"):
            self._local.buffers = _Buffers(self._function)
        return self._local.buffers


class _Buffers:
    """Arrays bound to one evaluation context of a CasADi function."""

    def __init__(self, function: ca.Function) -> None:
        self.inputs = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
        self.outputs = [np.zeros(function.numel_out(i)) for i in range(function.n_out())]
        # CasADi keeps no reference to the buffer that `evaluate` works on: we do.
        self._buffer, self.evaluate = function.buffer()
        for i, array in enumerate(self.inputs):
            self._buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(self.outputs):
            self._buffer.set_res(i, memoryview(array))
