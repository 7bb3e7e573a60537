"""Compiled kernels: one state at a time, and many at once."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.kernels import emit, emit_batch, entry
from rbda_ros.kernels.compile import Code, vector_lanes
from rbda_ros.kernels.llvm_text import Lanes, at_address
from rbda_ros.kernels.plan import Plan, make_plan
from rbda_ros.kernels.program import Port, Program, UnsupportedOperationError
from rbda_ros.spatial import Array

MOST_WORK = 2**15
"""Longest work array, in doubles: it lives on the stack of the thread that calls."""
THREADS_PAY = 4_000_000
"""Instructions times states from which a batch is shared among threads (about a millisecond)."""


class Machine(NamedTuple):
    """A kernel in machine code, for one state.

    Attributes:
        call: ``call(*inputs) -> tuple of new arrays``.
        into: ``into(*inputs, *outputs)`` writes into arrays that exist, and allocates nothing.
        address: of the C function ``void (const double *input, ..., double *output, ...)``.
    """

    call: Callable[..., tuple[Array, ...]]
    into: Callable[..., None]
    address: int


def compile_program(program: Program) -> Machine:
    """Machine code of a program for one state. Threads may share it."""
    careful = _Careful(program)
    try:
        entry.check_layout()
    except entry.LayoutError:
        return Machine(careful.call, careful.into, careful.address)
    ports = program.inputs, program.outputs
    call, into = careful.code.add(
        {
            "call": entry.call_module(*ports, careful.address),
            "into": entry.into_module(*ports, careful.address),
        }
    )
    return Machine(
        entry.builtin(program.name, call, careful.call),
        entry.builtin(program.name, into, careful.into),
        careful.address,
    )


class _Careful:
    """The slow way in: takes whatever converts to float vectors, and explains what does not."""

    def __init__(self, program: Program) -> None:
        lanes = vector_lanes()
        plan = make_plan(program, lanes=lanes.count)
        if plan.work > MOST_WORK:
            raise UnsupportedOperationError(f"{program.name} needs {plan.work} words of work")
        self.program = program
        self.constants = np.array(plan.constants)
        self.code = Code()
        addresses = self.code.add(emit.functions(plan, Lanes(1), lanes.count))
        module = _evaluate_module(plan, addresses, self.constants.ctypes.data)
        (self.address,) = self.code.add({"evaluate": module})
        pointers = [ctypes.c_void_p] * (len(program.inputs) + len(program.outputs))
        self.evaluate: Any = ctypes.CFUNCTYPE(None, *pointers)(self.address)

    def call(self, *given: Any) -> tuple[Array, ...]:
        """``(*inputs) -> outputs``."""
        program = self.program
        inputs = vectors(program.name, program.inputs, given)
        outputs = tuple(np.empty(port.size) for port in program.outputs)
        self.evaluate(*(array.ctypes.data for array in (*inputs, *outputs)))
        return outputs

    def into(self, *given: Any) -> None:
        """``(*inputs, *outputs)``: write into arrays."""
        count = len(self.program.inputs)
        for array, output in zip(given[count:], self.call(*given[:count]), strict=True):
            np.copyto(array, output)


def _evaluate_module(plan: Plan, functions: Sequence[int], constants: int) -> str:
    """IR of ``void evaluate(inputs..., outputs...)``: every part in turn, work on the stack."""
    program = plan.program
    pointers = [f"ptr %i{i}" for i in range(len(program.inputs))]
    pointers += [f"ptr %o{i}" for i in range(len(program.outputs))]
    given = ", ".join([*pointers, f"ptr {at_address(constants)}", "ptr %w"])
    return "\n".join(
        [
            f"define void @evaluate({', '.join(pointers)}) nounwind {{",
            f"  %w = alloca [{max(plan.work, 1)} x double], align 64",
            *(f"  call void {at_address(address)}({given})" for address in functions),
            "  ret void",
            "}",
        ]
    )


def vectors(name: str, ports: Sequence[Port], given: Sequence[Any]) -> list[Array]:
    """Contiguous float vectors of the sizes that a kernel wants."""
    if len(given) != len(ports):
        wanted = ", ".join(port.name for port in ports)
        raise InputError(f"{name} takes {len(ports)} arrays ({wanted}), not {len(given)}")
    arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in given]
    for port, array, original in zip(ports, arrays, given, strict=True):
        if np.shape(original) != (port.size,):
            raise InputError(
                f"{name}: {port.name} has shape {np.shape(original)}, not ({port.size},)"
            )
        assert array.size == port.size
    return arrays


class BatchMachine:
    """A kernel in machine code for many states, one in each lane of the processor's vectors."""

    def __init__(self, program: Program) -> None:
        lanes = vector_lanes()
        plan = make_plan(program)
        self._program = program
        self._constants = _aligned(len(program.constants) * lanes.count)
        self._constants[:] = np.repeat(program.constants, lanes.count)  # one in every lane
        self._lanes = lanes.count
        self._local = threading.local()
        self._tiling = emit_batch.make_tiling(plan, lanes)
        self._code = Code()
        addresses = self._code.add(emit.functions(plan, lanes, 1))
        module = emit_batch.batch_module(plan, lanes, self._tiling, addresses)
        pointers = [ctypes.c_void_p] * (len(program.inputs) + len(program.outputs) + 2)
        (address,) = self._code.add({"batch": module})
        # Through ctypes the GIL is released, and what the call costs is shared by many states.
        self._batch: Any = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(address)

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array], states: int) -> None:
        """Evaluate contiguous (states, n) inputs into (states, m) outputs."""
        work = states * len(self._program.instructions)
        threads = min(processors(), work // THREADS_PAY + 1)
        share = -(-states // threads)
        share = -(-share // self._lanes) * self._lanes
        starts = range(0, states, max(share, 1))
        others = [
            threading.Thread(
                target=self._run, args=(inputs, outputs, start, min(share, states - start))
            )
            for start in starts[1:]
        ]
        for thread in others:
            thread.start()
        if states:
            self._run(inputs, outputs, 0, min(share, states))
        for thread in others:
            thread.join()

    def _run(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, states: int
    ) -> None:
        memory = getattr(self._local, "memory", None)
        if memory is None:
            memory = self._local.memory = _aligned(self._tiling.vectors * self._lanes)
        rows = [array.ctypes.data + start * array.strides[0] for array in (*inputs, *outputs)]
        self._batch(*rows, self._constants.ctypes.data, memory.ctypes.data, states)


def _aligned(size: int) -> Array:
    """Numbers that begin at a multiple of 64 bytes, so that no vector lies across cache lines."""
    memory = np.empty(size + 7)
    start = -memory.ctypes.data % 64 // 8
    return memory[start : start + size]


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
