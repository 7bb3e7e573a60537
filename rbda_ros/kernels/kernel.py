"""A kernel: a straight-line program, evaluated by CasADi until its machine code is there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.engine import core
from rbda_ros.errors import InputError
from rbda_ros.kernels.background import Lazy
from rbda_ros.kernels.program import Program, read_program
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.kernels.machine import BatchCode, MachineCode

COMPILE_PAYS = 16384
"""States from which a batch waits for machine code: interpreting them takes longer."""


class Kernel:
    """A straight-line program, for one state or many. Threads may share it.

    The first use has the program compiled in a background thread. CasADi's virtual machine
    evaluates it until then, and machine code from then on, which is stored on disk for the next
    time (`disk_cache`). With ``RBDA_ROS_COMPILE=0`` in the environment, or ``compiled=False``, it
    is never compiled.

    Args:
        function: what it evaluates.
        compiled: whether it may be compiled.
        check: gives what machine code for batches checks the first input by.
        retrace: makes the function again, where it was read from disk; None where it was traced by
            this process.

    Attributes:
        native: the kernel as the engine has it, `rbda_ros.engine.core.Kernel`.
        call: ``call(*inputs) -> outputs`` at one state: a vector per input; new arrays returned.
    """

    native: Any
    call: Callable[..., tuple[Array, ...]]

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
        self._may_compile = compiled and os.environ.get("RBDA_ROS_COMPILE", "1") != "0"
        buffers = _Buffers(function)
        interpret, want_batch = _Interpret(buffers), _WantBatch()
        self._interpret = interpret
        arguments = _Arguments(function.name(), tuple(self.input_sizes.items()))
        native = core.Kernel(buffers.inputs, buffers.outputs, interpret, want_batch, arguments)
        self.native = self.call = native
        self._machine: Lazy[MachineCode] = Lazy(function.name(), lambda: _compile(function, native))
        self._batch_machine: Lazy[BatchCode] = Lazy(
            f"{function.name()} for batches",
            lambda: _compile_batch(function, None if check is None else check(), native),
        )
        if self._may_compile:
            interpret.machine = weakref.ref(self._machine)
            want_batch.machine = weakref.ref(self._batch_machine)

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return str(self._function.name())

    @property
    def function(self) -> ca.Function:
        """The program as a CasADi function of flat vectors."""
        return self._function

    @cached_property
    def input_sizes(self) -> dict[str, int]:
        """Names of the inputs, and how many numbers each has."""
        function = self._function
        return {function.name_in(i): int(function.numel_in(i)) for i in range(function.n_in())}

    @cached_property
    def output_sizes(self) -> dict[str, int]:
        """Names of the outputs, and how many numbers each has."""
        function = self._function
        return {function.name_out(i): int(function.numel_out(i)) for i in range(function.n_out())}

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
        """Whether machine code evaluates it; False while the virtual machine does."""
        return self._machine.value is not None

    @property
    def error(self) -> Exception | None:
        """Why there will be no machine code; None if there is, or may be."""
        return self._machine.error

    def compile(self, *, batch: bool = False) -> bool:
        """Wait for machine code, with `batch` also for that of `batch`; whether it is there."""
        if not self._may_compile:
            return False
        ready = self._machine.wait() is not None
        return (self._batch_machine.wait() is not None and ready) if batch else ready

    def request(self, *, batch: bool = False) -> None:
        """Have it compiled in the background, as its first use would."""
        if self._may_compile:
            self._machine.request()
            if batch:
                self._batch_machine.request()

    def interpret(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """As `call`, by the virtual machine."""
        arguments = _Arguments(self.name, tuple(self.input_sizes.items()))
        buffers = _Buffers(self._function)
        for buffer, given in zip(buffers.inputs, arguments(*inputs), strict=True):
            buffer[:] = given
        buffers.evaluate()
        return buffers.outputs

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
        self._interpret.use(self._function)
        self._retrace = None
        return bool(stored.serialize() == self._function.serialize())

    def disable_machine_code(self, why: Exception) -> None:
        """Use the machine code no more: from here on the virtual machine evaluates."""
        self._may_compile = False
        for code in (self._machine, self._batch_machine):
            code.withdraw(why)
        self.native.withdraw()

    @property
    def address(self) -> int | None:
        """Where its C function is, ``void (double *const *ports)``: its inputs, then its outputs.

        It lives as long as the kernel. None before `compile`, and where there is no machine code.
        """
        machine = self._machine.value
        return None if machine is None else machine.address

    def bind(self) -> BoundCall:
        """A call with arrays of its own, for loops that must not allocate. One per thread."""
        return BoundCall(self)

    def batch(self, *inputs: ArrayLike) -> tuple[Array, ...]:
        """Evaluate at N states: each input (N, n); each output (N, m)."""
        sizes = self.input_sizes
        _check_count(self.name, sizes, inputs)
        rows = [np.ascontiguousarray(given, np.float64) for given in inputs]
        rows = [row if row.flags.aligned else row.copy() for row in rows]
        states = len(rows[0]) if rows and rows[0].ndim else 0
        for (name, size), array in zip(sizes.items(), rows, strict=True):
            if array.shape != (states, size):
                raise InputError(
                    f"{self.name}: {name} has shape {array.shape}, not ({states}, {size})"
                )
        return self.finite_batch(states, rows)[0]

    def finite_batch(self, states: int, rows: Sequence[Array]) -> tuple[tuple[Array, ...], bool]:
        """As `batch` of checked rows, and whether all numbers of all outputs are finite.

        Args:
            states: N.
            rows: (N, n) of each input: contiguous, aligned, of float64.
        """
        outputs = tuple([np.empty((states, size)) for size in self.output_sizes.values()])
        return outputs, self.native.batch(*rows, *outputs)


class BoundCall:
    """A call of a kernel with arrays of its own: fill `inputs`, call, read `outputs`.

    Calling allocates nothing. The arrays stay the same ones; copy what must stay.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._call = kernel.native
        self.inputs: tuple[Array, ...] = tuple(map(np.zeros, kernel.input_sizes.values()))
        self.outputs: tuple[Array, ...] = tuple(map(np.zeros, kernel.output_sizes.values()))
        self._arrays = (*self.inputs, *self.outputs)

    def __call__(self) -> None:
        """Evaluate `inputs` into `outputs`."""
        self._call(*self._arrays)


class _Buffers:
    """Arrays, new or given, bound to one evaluation context of a CasADi function."""

    def __init__(self, function: ca.Function, arrays: Sequence[Array] = ()) -> None:
        inputs, outputs = function.n_in(), function.n_out()
        if not arrays:
            sizes = [function.numel_in(i) for i in range(inputs)]
            arrays = [np.zeros(n) for n in sizes + [function.numel_out(i) for i in range(outputs)]]
        self.inputs, self.outputs = tuple(arrays[:inputs]), tuple(arrays[inputs:])
        # CasADi keeps no reference to the buffer that `evaluate` works on: we do.
        buffer, evaluate = function.buffer()
        for i, array in enumerate(self.inputs):
            buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(self.outputs):
            buffer.set_res(i, memoryview(array))
        self._kept = buffer, function

        def evaluate_kept(kept: object = self._kept) -> None:
            evaluate()

        self.evaluate: Callable[[], None] = evaluate_kept


# The engine's kernel has these. They must not refer to it, nor to a kernel: it is not collected.


class _Interpret:
    """Evaluates by CasADi, and asks for machine code."""

    def __init__(self, buffers: _Buffers) -> None:
        self._arrays = *buffers.inputs, *buffers.outputs
        self._evaluate = buffers.evaluate
        self.machine: Callable[[], Lazy[Any] | None] = _nothing

    def use(self, function: ca.Function) -> None:
        """Evaluate the same arrays by another function from here on."""
        self._evaluate = _Buffers(function, self._arrays).evaluate

    def __call__(self) -> None:
        """Evaluate the buffers."""
        machine = self.machine()
        if machine is not None:
            machine.request()
        self._evaluate()


class _WantBatch:
    """Asks for machine code for batches; of many states, waits for it."""

    def __init__(self) -> None:
        self.machine: Callable[[], Lazy[Any] | None] = _nothing

    def __call__(self, states: int) -> None:
        """A batch of so many states is about to be evaluated."""
        machine = self.machine()
        if machine is None:
            return
        if states >= COMPILE_PAYS:
            machine.wait()
        else:
            machine.request()


class _Arguments:
    """Turns whatever converts to float vectors into these, and explains what does not."""

    def __init__(self, name: str, sizes: Sequence[tuple[str, int]]) -> None:
        self._name, self._sizes = name, dict(sizes)

    def __call__(self, *given: Any) -> tuple[Array, ...]:
        """Contiguous float vectors of the inputs' sizes."""
        _check_count(self._name, self._sizes, given)
        arrays = tuple(np.require(array, np.float64, ["C", "A", "E"]) for array in given)
        for (name, size), original in zip(self._sizes.items(), given, strict=True):
            if np.shape(original) != (size,):
                raise InputError(
                    f"{self._name}: {name} has shape {np.shape(original)}, not ({size},)"
                )
        return arrays


def _nothing() -> None:
    return None


def _check_count(name: str, sizes: dict[str, int], inputs: tuple[ArrayLike, ...]) -> None:
    if len(inputs) != len(sizes):
        wanted = ", ".join(sizes)
        raise InputError(f"{name} takes {len(sizes)} arrays ({wanted}), not {len(inputs)}")


def _compile(function: ca.Function, native: Any) -> MachineCode:
    from rbda_ros.kernels.machine import compile_function

    machine = compile_function(function)
    native.use(machine.address, machine)
    return machine


def _compile_batch(function: ca.Function, check: ca.Function | None, native: Any) -> BatchCode:
    from rbda_ros.kernels.machine import compile_batch

    machine = compile_batch(function, check)
    machine.use_in(native)
    return machine
