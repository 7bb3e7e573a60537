"""LLVM IR to machine code in this process, for this processor."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.kernels.llvm_text import LIBRARY, Lanes, library_address, library_name

OPTIMIZATION = 1
"""Level of LLVM's code generator: the next one takes half as long again for the same speed."""


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
