"""LLVM IR to machine code in this process, for this processor, with nothing left on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.kernels.llvm_text import Lanes

OPTIMIZATION = 1
"""Level of LLVM's code generator: the next one takes half as long again for the same speed."""


class Code:
    """Functions in machine code. They live as long as this object."""

    def __init__(self) -> None:
        _initialize()
        self._machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=_features(), opt=OPTIMIZATION, jit=True
        )
        self._engine: Any = llvm.create_mcjit_compiler(_parse(""), self._machine)

    def add(self, functions: Mapping[str, str]) -> list[int]:
        """Compile functions, each given by name and a module of IR; their addresses."""
        for text in functions.values():
            check_cancelled()
            object_code = self._machine.emit_object(_parse(text))
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()
        addresses = [int(self._engine.get_function_address(name)) for name in functions]
        assert all(addresses)
        return addresses


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
def _initialize() -> None:
    if llvm.llvm_version_info[0] < 20:  # later versions do it on import
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())
