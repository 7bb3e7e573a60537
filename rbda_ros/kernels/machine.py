"""Machine code of kernels, made by LLVM in this process: for one state, and for many at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import llvmlite.binding as llvm
import numpy as np

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.kernels import disk_cache, emit, emit_batch
from rbda_ros.kernels.fingerprint import fingerprint, versions
from rbda_ros.kernels.llvm_text import Lanes, library_address, library_name
from rbda_ros.kernels.plan import CHUNK_OF_ONE_STATE, make_plan
from rbda_ros.kernels.program import (
    LIBRARY,
    UnsupportedOperationError,
    fuse_check,
    read_program,
)
from rbda_ros.spatial import Array

MAX_WORK = 2**15
"""Longest work array, in doubles: it lives on the stack of the thread that calls."""
OPTIMIZATION = 1
"""Level of LLVM's code generator: the next one takes half as long again for the same speed."""


class Code:
    """Functions in machine code, from object code. They live as long as this object."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        machine = _target_machine()
        self._engine: Any = llvm.create_mcjit_compiler(_parse(""), machine)
        for object_code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Where a function is."""
        address = int(self._engine.get_function_address(function))
        assert address
        return address


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
        plan = make_plan(program, CHUNK_OF_ONE_STATE, lanes.count)
        if plan.work > MAX_WORK:
            raise UnsupportedOperationError(f"{program.name} needs {plan.work} words of work")
        functions = emit.functions(plan, Lanes(1), lanes.count)
        objects = compile_modules(functions.values())
        sizes = dict(zip(functions, map(code_size, objects), strict=True))
        return {}, [*objects, *compile_modules([emit.entry(plan, sizes, has_cycle_counter())])]

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
        plan = make_plan(program if check is None else fuse_check(program, read_program(check)))
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
    programs = [each.serialize() for each in functions]
    return fingerprint(form, versions(), processor(), *programs)


def _aligned(values: Array) -> Array:
    """A copy that begins at a multiple of 64 bytes, so that no vector lies across cache lines."""
    memory = np.empty(values.size + 7)
    start = -memory.ctypes.data % 64 // 8
    memory[start : start + values.size] = values
    return memory[start : start + values.size]


def compile_modules(modules: Iterable[str]) -> list[bytes]:
    """Object code of modules of IR, which can be stored, for this processor.

    They call each other's functions by name, and those of <math.h> as `library_call` does.
    """
    machine, objects = _target_machine(), []
    for text in modules:
        check_cancelled()
        objects.append(bytes(machine.emit_object(_parse(text))))
    return objects


def code_size(object_code: bytes) -> int:
    """Bytes of machine code in object code."""
    sections = llvm.ObjectFileRef.from_data(object_code).sections()
    return sum(section.size() for section in sections if section.is_text())


@cache
def vector_lanes() -> Lanes:
    """As many doubles as one register of this processor holds, two at least."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return Lanes(8)
    return Lanes(4 if features.get("avx") else 2)


def _parse(text: str) -> Any:
    return llvm.parse_assembly(text, _context())


@cache
def _context() -> Any:
    """Where IR lives: with opaque pointers, which llvmlite before 0.45 has to be asked for."""
    version = llvm.llvm_version_info[0]
    if version < 15:
        llvm.set_option("rbda_ros", "-opaque-pointers")
    elif version < 20:
        llvm.context.opaque_pointers_enabled = True  # asked when a context is made, and only then
        try:
            return llvm.create_context()
        finally:
            llvm.context.opaque_pointers_enabled = False
    return llvm.create_context()


@cache
def processor() -> str:
    """Inputs that machine code depends on: this processor, and how code is made for it."""
    triple = llvm.get_default_triple()
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return f"{triple} {llvm.get_host_cpu_name()} {_features()} {llvm_version} {OPTIMIZATION}"


def has_cycle_counter() -> bool:
    """Whether programs may read the counter of cycles; on ARM that is for the system alone."""
    return llvm.get_default_triple().startswith("x86_64")


def _target_machine() -> Any:
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=OPTIMIZATION, jit=True
    )


@cache
def _initialize() -> None:
    if llvm.llvm_version_info[0] < 20:  # later versions do it on import
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for function in LIBRARY:
        llvm.add_symbol(library_name(function), library_address(function))


@cache
def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())
