"""Machine code of kernels: for one state, and for many at once."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from rbda_ros.kernels import disk_cache, emit, emit_batch
from rbda_ros.kernels.compile import Code, code_size, compile_modules, processor, vector_lanes
from rbda_ros.kernels.fingerprint import fingerprint, versions
from rbda_ros.kernels.joining import join
from rbda_ros.kernels.llvm_text import Lanes
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import UnsupportedOperationError, read_program
from rbda_ros.spatial import Array

MAX_WORK = 2**15
"""Longest work array, in doubles: it lives on the stack of the thread that calls."""


class MachineCode(NamedTuple):
    """A kernel in machine code, for one state.

    Attributes:
        code: keeps it alive.
        address: of the C function ``void (double *const *ports)``: its inputs, then its outputs.
    """

    code: Code
    address: int


class BatchCode(NamedTuple):
    """A kernel in machine code for many states, one in each lane of the processor's vectors.

    Attributes:
        code: keeps it alive.
        checks: whether it can also check its first input on the way.
        constants: one in every lane.
        memory: doubles that it works in.
        together: states that it takes at once.
        instructions: of one state.
    """

    code: Code
    checks: bool
    constants: Array
    memory: int
    together: int
    instructions: int

    def use_in(self, native: Any) -> None:
        """Let a `rbda_ros.engine.core.Kernel` of the same program evaluate batches by this."""
        native.use_batch(
            self.code.address("batch_ports"),
            self.code.address("checked_ports") if self.checks else 0,
            self.constants.ctypes.data,
            self.memory,
            self.together,
            self.instructions,
            self,
        )


def compile_function(function: ca.Function) -> MachineCode:
    """Machine code of a CasADi function for one state. Threads may share it."""

    def make() -> tuple[dict[str, Any], list[bytes]]:
        program = read_program(function)
        lanes = vector_lanes()
        plan = make_plan(program, lanes=lanes.count)
        if plan.work > MAX_WORK:
            raise UnsupportedOperationError(f"{program.name} needs {plan.work} words of work")
        functions = emit.functions(plan, Lanes(1), lanes.count)
        objects = compile_modules(functions.values())
        sizes = dict(zip(functions, map(code_size, objects), strict=True))
        return {}, [*objects, *compile_modules([emit.entry(plan, sizes)])]

    _, objects = disk_cache.load_or_make(_key("one state", function), make)
    code = Code(objects)
    return MachineCode(code, code.address("evaluate_ports"))


def compile_batch(function: ca.Function, check: ca.Function | None = None) -> BatchCode:
    """Machine code of a CasADi function for many states. Threads may share it.

    Args:
        function: the kernel's.
        check: of its first input, with one output, for it to be checked on the way; None where it
            need not be.
    """
    lanes = vector_lanes()

    def make() -> tuple[dict[str, Any], list[bytes]]:
        program = read_program(function)
        plan = make_plan(program if check is None else join(program, read_program(check)))
        tiling = emit_batch.make_tiling(plan, lanes)
        facts = {"instructions": len(program.instructions)}
        facts |= {"vectors": tiling.vectors, "tiles": tiling.tiles}
        objects = compile_modules(emit_batch.modules(plan, lanes, tiling))
        return facts, [np.array(plan.program.constants, float).tobytes(), *objects]

    functions = [function] if check is None else [function, check]
    facts, (constants, *objects) = disk_cache.load_or_make(_key("batch", *functions), make)
    return BatchCode(
        Code(objects),
        check is not None,
        _aligned(np.repeat(np.frombuffer(constants), lanes.count)),
        facts["vectors"] * lanes.count,
        facts["tiles"] * lanes.count,
        facts["instructions"],
    )


def _key(form: str, *functions: ca.Function) -> str:
    fused = os.environ.get("RBDA_ROS_FUSE", "1")
    programs = [each.serialize() for each in functions]
    return fingerprint(form, versions(), processor(), fused, *programs)


def _aligned(values: Array) -> Array:
    """A copy that begins at a multiple of 64 bytes, so that no vector lies across cache lines."""
    memory = np.empty(values.size + 7)
    start = -memory.ctypes.data % 64 // 8
    memory[start : start + values.size] = values
    return memory[start : start + values.size]
