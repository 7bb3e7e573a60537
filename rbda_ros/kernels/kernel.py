"""A kernel: a straight-line program, evaluated by CasADi until its machine code is there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property, partial
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
        name: of the algorithm.
        function: the program as a CasADi function of flat vectors.
        input_sizes, output_sizes: names of inputs and outputs, and how many numbers each has.
        native: the kernel as the engine has it, `rbda_ros.engine.core.Kernel`.
        call: ``call(*inputs) -> outputs`` at one state: a vector per input; new arrays returned.
    """

    native: Any
    call: Callable[..., tuple[Array, ...]]
    _machine: Lazy[Any]
    _batch_machine: Lazy[BatchCode]

    def __init__(
        self,
        function: ca.Function,
        *,
        compiled: bool = True,
        check: Callable[[], ca.Function] | None = None,
        retrace: Callable[[], ca.Function] | None = None,
    ) -> None:
        self.name, self.function = str(function.name()), function
        self.input_sizes = {
            function.name_in(i): int(function.numel_in(i)) for i in range(function.n_in())
        }
        self.output_sizes = {
            function.name_out(i): int(function.numel_out(i)) for i in range(function.n_out())
        }
        self._retrace = retrace
        self._may_compile = compiled and os.environ.get("RBDA_ROS_COMPILE", "1") != "0"
        self._machine = Lazy(self.name, lambda: _compile(function, native))
        self._batch_machine = Lazy(
            f"{self.name} for batches",
            lambda: _compile_batch(function, None if check is None else check(), native),
        )
        self._buffers = _Buffers(function)
        interpret = partial(_interpret, self._buffers, self._requested(self._machine))
        want_batch = partial(_want_batch, self._requested(self._batch_machine))
        arguments = partial(float_vectors, self.name, self.input_sizes)
        inputs, outputs = self._buffers.inputs, self._buffers.outputs
        native = core.Kernel(inputs, outputs, interpret, want_batch, arguments)
        self.native = self.call = native

    def _requested(self, machine: Lazy[Any]) -> Requested:
        return weakref.ref(machine) if self._may_compile else _nothing

    @property
    def instructions(self) -> int:
        """Length of the program, in CasADi's count."""
        return int(self.function.n_instructions())

    @cached_property
    def program(self) -> Program:
        """The program itself, e.g. to write it in another language."""
        return read_program(self.function)

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
        buffers, given = (
            _Buffers(self.function),
            float_vectors(self.name, self.input_sizes, *inputs),
        )
        for buffer, array in zip(buffers.inputs, given, strict=True):
            buffer[:] = array
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
        stored, self.function = self.function, self._retrace()
        self._buffers.use(self.function)
        self._retrace = None
        return bool(stored.serialize() == self.function.serialize())

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
    """Arrays that a CasADi function reads and writes in an evaluation context of its own."""

    def __init__(self, function: ca.Function) -> None:
        self.inputs = tuple(np.zeros(function.numel_in(i)) for i in range(function.n_in()))
        self.outputs = tuple(np.zeros(function.numel_out(i)) for i in range(function.n_out()))
        self.use(function)

    def use(self, function: ca.Function) -> None:
        """Evaluate by this function from here on."""
        # CasADi keeps no reference to the buffer that `evaluate` works on: we do.
        buffer, evaluate = function.buffer()
        for i, array in enumerate(self.inputs):
            buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(self.outputs):
            buffer.set_res(i, memoryview(array))

        def evaluate_kept(kept: object = (buffer, function)) -> None:
            evaluate()

        self.evaluate: Callable[[], None] = evaluate_kept


# What the engine's kernel calls. It must not refer to that kernel, nor to a `Kernel`: it is not
# collected.

Requested = Callable[[], Lazy[Any] | None]
"""Gives machine code as long as its kernel lives; None afterwards, or if it may not be compiled."""


def _interpret(buffers: _Buffers, machine: Requested) -> None:
    """Evaluate by CasADi, and ask for machine code."""
    wanted = machine()
    if wanted is not None:
        wanted.request()
    buffers.evaluate()


def _want_batch(machine: Requested, states: int) -> None:
    """Ask for machine code for a batch of so many states; for many of them, wait for it."""
    wanted = machine()
    if wanted is not None:
        (wanted.wait if states >= COMPILE_PAYS else wanted.request)()


def float_vectors(name: str, sizes: dict[str, int], *given: Any) -> tuple[Array, ...]:
    """Whatever converts to float vectors of the inputs' sizes as these, contiguous.

    Raises:
        InputError: something does not.
    """
    _check_count(name, sizes, given)
    arrays = tuple(np.require(array, np.float64, ["C", "A", "E"]) for array in given)
    for (each, size), original in zip(sizes.items(), given, strict=True):
        if np.shape(original) != (size,):
            raise InputError(f"{name}: {each} has shape {np.shape(original)}, not ({size},)")
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
