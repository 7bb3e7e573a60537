"""Exported C compiled and called from Python: to test it, and to measure single precision."""

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
from rbda_ros.robot.feedforward_call import feedforward
from rbda_ros.robot.robot import Robot
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


STATES = 100


def feedforward_error(robot: Robot, report: ExportReport) -> float | None:
    """Largest error of efforts beside the largest effort, at random states near the assembly.

    None without a compiler, without feedforward, or with a floating base.
    """
    if compiler() is None or "feedforward" not in report.functions or robot.coordinates.base_nq:
        return None
    call = feedforward(robot, report.measured)
    entries = [robot.coordinates.scalar_positions[name] for name in report.measured]
    library = CompiledLibrary(report, float32=True)
    library.path.unlink()
    rng, errors = np.random.default_rng(0), []
    for _ in range(STATES):
        call.forget()
        library.init()
        position = robot.neutral()[entries] + rng.uniform(-0.1, 0.1, len(entries))
        velocity, acceleration = rng.normal(size=(2, len(entries)))
        call.position[:] = [position[report.measured.index(name)] for name in call.joints]
        call.velocity[:] = [velocity[report.measured.index(name)] for name in call.joints]
        call.acceleration[:] = acceleration
        call()
        efforts = np.zeros(len(report.motors), np.float32)
        given = [each.astype(np.float32) for each in (position, velocity, acceleration)]
        if library.call("feedforward", *given, None, efforts) == 0:
            scale = np.abs(call.efforts).max(initial=1e-9)
            errors.append(np.abs(efforts - call.efforts).max(initial=0.0) / scale)
    return float(max(errors)) if errors else None
