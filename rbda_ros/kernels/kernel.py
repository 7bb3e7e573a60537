"""A kernel: one traced algorithm of one robot, called with numpy arrays."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros import _native
from rbda_ros.errors import InputError
from rbda_ros.kernels.background import Lazy
from rbda_ros.kernels.program import Program, read_program
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.kernels.machine import BatchMachine, Machine

COMPILE_PAYS = 16384
"""States from which a batch waits for machine code: interpreting them takes longer."""


class Kernel:
    """A straight-line program. CasADi's virtual machine answers until machine code is there.

    The first use has the program compiled in a background thread; from then on the same calls
    are answered by machine code, which is stored on disk for the next time (`disk_cache`). With
    ``RBDA_ROS_COMPILE=0`` in the environment, or ``compiled=False``, the virtual machine answers
    always. Threads may share a kernel.

    Args:
        function: what it evaluates.
        compiled: whether it may be compiled.
        check: gives what `BatchMachine` checks the first input by.
        retrace: makes the function again, where it was read from disk; None where it was traced by
            this process.
    """

    def __init__(
        self,
        function: ca.Function,
        *,
        compiled: bool = True,
        check: Callable[[], ca.Function] | None = None,
        retrace: Callable[[], ca.Function] | None = None,
    ) -> None:
        self._function = function
        self._retrace = retrace
        self._local = threading.local()
        self._may_compile = compiled and os.environ.get("RBDA_ROS_COMPILE", "1") != "0"
        self._machine: Lazy[Machine] = Lazy(function.name(), lambda: _compile(function))
        self._batch_machine: Lazy[BatchMachine] = Lazy(
            f"{function.name()} for batches",
            lambda: _compile_batch(function, None if check is None else check()),
        )

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return str(self._function.name())

    @property
    def input_sizes(self) -> dict[str, int]:
        """Names of the inputs, and how many numbers each has."""
        function = self._function
        return {function.name_in(i): int(function.numel_in(i)) for i in range(function.n_in())}

    @property
    def instructions(self) -> int:
        """Length of the program, in CasADi's count."""
        return int(self._function.n_instructions())

    @cached_property
    def program(self) -> Program:
        """The program itself, e.g. to write it in another language."""
        return read_program(self._function)

    @property
    def compiled(self) -> bool:
        """Whether machine code answers; False while the virtual machine does."""
        return self._machine.value is not None

    @property
    def error(self) -> Exception | None:
        """Why there will be no machine code; None if there is, or may be."""
        return self._machine.error

    def compile(self, *, batch: bool = False) -> bool:
        """Wait for machine code, with `batch` also for that of `batch`; whether it is there."""
        if not self._may_compile:
            return False
        machine = self._machine.wait()
        if machine is not None:
            self.__dict__["call"] = machine.call  # in place of the method
        ready = machine is not None
        return (self._batch_machine.wait() is not None and ready) if batch else ready

    def request(self) -> None:
        """Have it compiled in the background, as its first use would."""
        if self._may_compile:
            self._machine.request()

    def interpret(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """As `call`, by the virtual machine."""
        buffers = self._buffers()
        buffers.fill(self.name, inputs)
        buffers.evaluate()
        return tuple(output.copy() for output in buffers.outputs)

    @property
    def stored(self) -> bool:
        """Whether the program was read from disk, and was not compared with its trace yet."""
        return self._retrace is not None

    def retrace(self) -> bool:
        """Have the virtual machine run a program that this process traced, not one from disk.

        Returns:
            Whether the program from disk was the same; also where there is none.
        """
        if self._retrace is None:
            return True
        stored, self._function = self._function, self._retrace()
        self._local = threading.local()
        self._retrace = None
        return bool(stored.serialize() == self._function.serialize())

    def distrust(self, why: Exception) -> None:
        """Use the machine code no more: from here on the virtual machine answers."""
        self._may_compile = False
        self.__dict__.pop("call", None)
        machine: Any = self._machine.value
        if self.native is not None:  # other native calls have it, and whoever was given `call`
            interpreted = _Interpreted(self._function)
            machine.call.withdraw(interpreted.call)
            machine.into.withdraw(interpreted.into)
        for code in (self._machine, self._batch_machine):
            code.withdraw(why)

    @property
    def address(self) -> int | None:
        """Where its C function is, ``void (double *const *ports)``: its inputs, then its outputs.

        It lives as long as the kernel. None before `compile`, and where there is no machine code.
        """
        machine = self._machine.value
        return None if machine is None else machine.address

    @property
    def native(self) -> Any:
        """The `rbda_ros._native.calls.Kernel` that answers `call`; None where none does yet."""
        machine = self._machine.value
        found = None if machine is None else machine.call
        return found if _native.calls is not None and type(found) is _native.calls.Kernel else None

    def call(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """Evaluate at one state: a vector per input, in column order; new arrays returned."""
        machine = self._machine.value
        if machine is not None:
            self.__dict__["call"] = machine.call  # from here on in the place of this method
            return machine.call(*inputs)
        self.request()
        return self.interpret(*inputs)

    def bind(self) -> BoundCall:
        """A call with arrays of its own, for loops that must not allocate. One per thread."""
        return BoundCall(self)

    def batch(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """Evaluate at N states: each input (N, n); each output (N, m)."""
        rows, states = self._rows(inputs)
        outputs = tuple(
            np.empty((states, self._function.numel_out(i))) for i in range(self._function.n_out())
        )
        machine = self._batch_machine.value
        if machine is None and self._may_compile:
            if states >= COMPILE_PAYS:
                machine = self._batch_machine.wait()
            else:
                self._batch_machine.request()
        if machine is not None:
            native = self.native
            if native is not None and not native.takes_rows:
                machine.serve(native)
            machine(rows, outputs, states)
        else:
            self._one_by_one(rows, outputs, states)
        return outputs

    def _rows(self, inputs: tuple[ArrayLike, ...]) -> tuple[list[Array], int]:
        """Contiguous (N, n) inputs, and N."""
        function = self._function
        _check_count(function, inputs)
        rows = [np.ascontiguousarray(given, dtype=np.float64) for given in inputs]
        states = len(rows[0]) if rows and rows[0].ndim else 0
        for i, array in enumerate(rows):
            if array.shape != (states, function.numel_in(i)):
                raise InputError(
                    f"{self.name}: {function.name_in(i)} has shape {array.shape},"
                    f" not ({states}, {function.numel_in(i)})"
                )
        return rows, states

    def _one_by_one(self, rows: list[Array], outputs: tuple[Array, ...], states: int) -> None:
        machine = self._machine.value
        if machine is not None:
            for k in range(states):
                machine.into(*(array[k] for array in (*rows, *outputs)))
            return
        buffers = self._buffers()
        for k in range(states):
            for buffer, array in zip(buffers.inputs, rows, strict=True):
                buffer[:] = array[k]
            buffers.evaluate()
            for array, result in zip(outputs, buffers.outputs, strict=True):
                array[k] = result

    def _buffers(self) -> _Buffers:
        if not hasattr(self._local, "buffers"):
            self._local.buffers = _Buffers(self._function)
        return self._local.buffers


class BoundCall:
    """A call of a kernel with arrays of its own: fill `inputs`, call, read `outputs`.

    Calling allocates nothing. The arrays stay the same ones; copy what must stay.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._buffers = _Buffers(kernel._function)
        self.inputs: tuple[Array, ...] = tuple(self._buffers.inputs)
        self.outputs: tuple[Array, ...] = tuple(self._buffers.outputs)
        self._arrays = (*self.inputs, *self.outputs)

    def __call__(self) -> None:
        """Evaluate `inputs` into `outputs`."""
        machine = self._kernel._machine.value
        if machine is not None:
            machine.into(*self._arrays)
        else:
            self._kernel.request()
            if self._buffers.function is not self._kernel._function:  # it was traced again
                self._buffers = _Buffers(self._kernel._function, self._arrays)
            self._buffers.evaluate()


class _Buffers:
    """Arrays, new or given, bound to one evaluation context of a CasADi function."""

    def __init__(self, function: ca.Function, arrays: Sequence[Array] = ()) -> None:
        self.function = function
        inputs, outputs = function.n_in(), function.n_out()
        if not arrays:
            sizes = [function.numel_in(i) for i in range(inputs)]
            arrays = [np.zeros(n) for n in sizes + [function.numel_out(i) for i in range(outputs)]]
        self.inputs, self.outputs = list(arrays[:inputs]), list(arrays[inputs:])
        # CasADi keeps no reference to the buffer that `evaluate` works on: we do.
        self._buffer, self.evaluate = function.buffer()
        for i, array in enumerate(self.inputs):
            self._buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(self.outputs):
            self._buffer.set_res(i, memoryview(array))

    def fill(self, name: str, inputs: tuple[ArrayLike, ...]) -> None:
        """Copy one vector into each input."""
        _check_count(self.function, inputs)
        for i, (buffer, given) in enumerate(zip(self.inputs, inputs, strict=True)):
            if np.shape(given) != buffer.shape:
                raise InputError(
                    f"{name}: {self.function.name_in(i)} has shape {np.shape(given)},"
                    f" not {buffer.shape}"
                )
            buffer[:] = given


class _Interpreted:
    """A function by the virtual machine, in the place of machine code that was given out."""

    def __init__(self, function: ca.Function) -> None:
        self._function = function

    def call(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """``(*inputs) -> outputs``."""
        buffers = _Buffers(self._function)
        buffers.fill(self._function.name(), inputs)
        buffers.evaluate()
        return tuple(buffers.outputs)

    def into(self, *arrays: Array) -> None:
        """``(*inputs, *outputs)``: write into arrays."""
        count = self._function.n_in()
        for array, output in zip(arrays[count:], self.call(*arrays[:count]), strict=True):
            np.copyto(array, output)


def _check_count(function: ca.Function, inputs: tuple[ArrayLike, ...]) -> None:
    if len(inputs) != function.n_in():
        wanted = ", ".join(function.name_in())
        raise InputError(
            f"{function.name()} takes {function.n_in()} arrays ({wanted}), not {len(inputs)}"
        )


def _compile(function: ca.Function) -> Machine:
    from rbda_ros.kernels.machine import compile_function

    return compile_function(function)


def _compile_batch(function: ca.Function, check: ca.Function | None) -> BatchMachine:
    from rbda_ros.kernels.machine import BatchMachine

    return BatchMachine(function, check)
