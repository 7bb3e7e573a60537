"""LLVM IR to machine code in this process, for this processor, with nothing left on disk."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from rbda_ros.kernels.llvm_text import Lanes

OPTIMIZATION = 2
"""LLVM's code generator at its default level. CasADi has already simplified the program."""

stopping = threading.Event()
"""Set when the interpreter ends: compilation then stops after the function it is at."""


class CompilationStoppedError(Exception):
    """The interpreter ends."""


class Code:
    """Functions in machine code. They live as long as this object."""

    def __init__(self) -> None:
        _initialize()
        self._machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=_features(), opt=OPTIMIZATION, jit=True
        )
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._machine)

    def add(self, name: str, text: str) -> int:
        """Compile a module of IR; the address of its function `name`."""
        if stopping.is_set():
            raise CompilationStoppedError
        module = llvm.parse_assembly(text)
        object_code = self._machine.emit_object(module)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(name)
        assert address, name
        return int(address)


@cache
def vector_lanes() -> Lanes:
    """As many doubles as one register of this processor holds, two at least."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return Lanes(8)
    return Lanes(4 if features.get("avx") else 2)


@cache
def _initialize() -> None:
    if llvm.llvm_version_info[0] < 20:  # later versions do it on import
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())
