"""Exported C compiled and called from Python: to measure it, and to test it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.exports.c_library import ExportReport
from rbda_ros.spatial import Array

FLAGS = ("-O2", "-ffp-contract=off")
"""Options that give the bits of Python; without the first it is slow."""


def compiler() -> str | None:
    """The system's C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class CompiledLibrary:
    """A library as functions of numpy arrays, with a workspace of its own.

    Args:
        report: of `export_robot`.
        float32: as it was exported.
        flags: further options of the compiler.

    Raises:
        InputError: there is no compiler.
    """

    def __init__(
        self, report: ExportReport, *, float32: bool = False, flags: Sequence[str] = ()
    ) -> None:
        found = compiler()
        if found is None:
            raise InputError("there is no C compiler; install gcc or clang")
        self.path = report.source.with_suffix(".so")
        self.name = report.source.stem
        self.type = np.float32 if float32 else np.float64
        command = [found, "-std=c99", *FLAGS, *flags, "-fPIC", "-shared", str(report.source)]
        subprocess.run([*command, "-o", str(self.path), "-lm"], check=True)
        self.library = ctypes.CDLL(str(Path(self.path).resolve()))
        self.workspace = np.zeros(report.workspace + 64, np.uint8)
        self.init()

    def init(self) -> None:
        """Begin from the assembly."""
        self._function("init")(_pointer(self.workspace))

    def position(self, nq: int) -> Array:
        """(nq,) the measured position that was closed last."""
        return self.workspace.view(self.type)[:nq].astype(float)

    def call(self, function: str, *arrays: Any, first: Sequence[Any] = ()) -> int:
        """Call a function with the workspace, other arguments, and arrays or None; its status.

        Outputs are arrays of the library's type, which are written to.
        """
        pointers = [None if each is None else _pointer(each) for each in arrays]
        status = self._function(function)(_pointer(self.workspace), *first, *pointers)
        return int(status)

    def kernel(self, function: str, *arrays: Any) -> None:
        """Call a function that has no workspace."""
        self._function(function)(*map(_pointer, arrays))

    def _function(self, name: str) -> Any:
        return getattr(self.library, f"{self.name}_{name}")


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
