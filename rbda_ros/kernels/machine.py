"""Compiled kernels: one state at a time, and many at once."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from rbda_ros import _native
from rbda_ros.errors import InputError
from rbda_ros.kernels import disk_cache, emit, emit_batch
from rbda_ros.kernels.compile import Code, code_size, compile_modules, processor, vector_lanes
from rbda_ros.kernels.fingerprint import fingerprint, versions
from rbda_ros.kernels.joining import join
from rbda_ros.kernels.llvm_text import Lanes
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import Port, Program, UnsupportedOperationError, read_program
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
        address: of the C function ``void (double *const *ports)``: its inputs, then its outputs.
    """

    call: Callable[..., tuple[Array, ...]]
    into: Callable[..., None]
    address: int


class Compiled(NamedTuple):
    """A program as object code, as it can be stored.

    Attributes:
        name: of the program.
        inputs, outputs: its ports.
        objects: object code of its functions.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    objects: Sequence[bytes]


def compile_function(function: ca.Function) -> Machine:
    """Machine code of a CasADi function for one state. Threads may share it."""

    def make() -> tuple[dict[str, Any], list[bytes]]:
        program = read_program(function)
        lanes = vector_lanes()
        plan = make_plan(program, lanes=lanes.count)
        if plan.work > MOST_WORK:
            raise UnsupportedOperationError(f"{program.name} needs {plan.work} words of work")
        functions = emit.functions(plan, Lanes(1), lanes.count)
        objects = compile_modules(functions.values())
        sizes = dict(zip(functions, map(code_size, objects), strict=True))
        return _ports(program), [*objects, *compile_modules([emit.entry(plan, sizes)])]

    facts, objects = disk_cache.load_or_make(_key("one state", function), make)
    careful = _Careful(_compiled(facts, objects))
    address = careful.code.address("evaluate_ports")
    if _native.calls is None:
        return Machine(careful.call, careful.into, address)
    program = careful.program
    sizes = [tuple(port.size for port in ports) for ports in (program.inputs, program.outputs)]
    return Machine(
        _native.calls.Kernel(address, *sizes, careful.call, False),
        _native.calls.Kernel(address, *sizes, careful.into, True),
        address,
    )


def _key(form: str, *functions: ca.Function) -> str:
    return fingerprint(form, versions(), processor(), *(each.serialize() for each in functions))


def _ports(program: Program) -> dict[str, Any]:
    return {"name": program.name, "inputs": program.inputs, "outputs": program.outputs}


def _compiled(facts: dict[str, Any], objects: Sequence[bytes]) -> Compiled:
    ports = [tuple(Port(*port) for port in facts[which]) for which in ("inputs", "outputs")]
    return Compiled(facts["name"], ports[0], ports[1], objects)


class _Careful:
    """The slow way in: takes whatever converts to float vectors, and explains what does not."""

    def __init__(self, program: Compiled) -> None:
        self.program = program
        self.code = Code(program.objects)
        pointers = [ctypes.c_void_p] * (len(program.inputs) + len(program.outputs))
        self.evaluate: Any = ctypes.CFUNCTYPE(None, *pointers)(self.code.address("evaluate"))

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
    """A kernel in machine code for many states, one in each lane of the processor's vectors.

    Args:
        function: the kernel's.
        check: of its first input, with one output, for native calls to have it checked on the way;
            None where it need not be.
    """

    def __init__(self, function: ca.Function, check: ca.Function | None = None) -> None:
        lanes = vector_lanes()
        self._checks = check is not None

        def make() -> tuple[dict[str, Any], list[bytes]]:
            program = read_program(function)
            plan = make_plan(program if check is None else join(program, read_program(check)))
            tiling = emit_batch.make_tiling(plan, lanes)
            facts = _ports(program) | {"instructions": len(program.instructions)}
            facts |= {"vectors": tiling.vectors, "tiles": tiling.tiles}
            objects = compile_modules(emit_batch.modules(plan, lanes, tiling))
            return facts, [np.array(plan.program.constants, float).tobytes(), *objects]

        functions = [function] if check is None else [function, check]
        facts, (constants, *objects) = disk_cache.load_or_make(_key("batch", *functions), make)
        self._program = _compiled(facts, objects)
        values = np.frombuffer(constants)
        self._constants = _aligned(len(values) * lanes.count)
        self._constants[:] = np.repeat(values, lanes.count)  # one in every lane
        self._instructions: int = facts["instructions"]
        self._vectors: int = facts["vectors"]
        self._lanes = lanes.count
        self._together: int = facts["tiles"] * lanes.count
        self._local = threading.local()
        self._code = Code(objects)
        pointers = [ctypes.c_void_p] * (len(self._program.inputs) + len(self._program.outputs) + 2)
        # Through ctypes the GIL is released, and what the call costs is shared by many states.
        signature = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)
        self._batch: Any = signature(self._code.address("batch"))

    def serve(self, native: Any) -> None:
        """Let a `rbda_ros._native.calls.Kernel` of the same program evaluate batches by this."""
        native.use_rows(
            self._code.address("batch_ports"),
            self._code.address("checked_ports") if self._checks else 0,
            self._constants.ctypes.data,
            self._vectors * self._lanes,
            self._together,
            self._instructions,
            self,
        )

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array], states: int) -> None:
        """Evaluate contiguous (states, n) inputs into (states, m) outputs."""
        work = states * self._instructions
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
        here = []  # where the system allows no more threads
        for thread in others:
            try:
                thread.start()
            except RuntimeError:
                here.append(thread)
        if states:
            self._run(inputs, outputs, 0, min(share, states))
        for thread in others:
            if thread in here:
                thread.run()
            else:
                thread.join()

    def _run(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, states: int
    ) -> None:
        memory = getattr(self._local, "memory", None)
        if memory is None:
            memory = self._local.memory = _aligned(self._vectors * self._lanes)
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
