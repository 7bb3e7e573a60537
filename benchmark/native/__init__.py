"""Programs in C that the node is measured beside, compiled when they are needed.

They run inside a process of Python, which loads what the wheels of ROS have, and then does nothing
but wait for them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.type_support import check_for_type_support
from sensor_msgs.msg import JointState

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "benchmark"
MOST = 1 << 16  # answers of one turn


@cache
def library() -> Any:
    """The programs."""
    check_for_type_support(JointState)  # loads it
    BUILD.mkdir(parents=True, exist_ok=True)
    target = BUILD / f"programs_{os.getpid()}.so"
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    headers = [f"-I{folder}" for folder in Path(sys.prefix, "include").iterdir()]
    sources = [str(HERE / name) for name in ("echo.c", "client.c")]
    options = ["-std=gnu11", "-O2", "-shared", "-fPIC", f"-L{sys.prefix}/lib"]
    command = [compiler, *options, *headers, *sources, "-lrcl", "-lrcutils", "-lm"]
    subprocess.run([*command, "-o", str(target)], check=True)
    try:
        return ctypes.CDLL(str(target))
    finally:
        target.unlink()


def run_echo() -> None:
    """Send joint states back, until the parent ends."""
    library().run_echo(_type())


def run_listener(topic: str) -> None:
    """Take joint states and do nothing with them, until the parent ends."""
    library().run_listener(_type(), topic.encode())


def round_trips(
    to: str, answers: str, message: bytes, position_at: int, joints: int, count: int, warm_up: int
) -> np.ndarray:
    """Round trips of messages at 1 kHz [s]; of those that were answered."""
    trips = np.zeros(MOST)
    run = library().run_client
    run.restype = ctypes.c_int
    numbers = map(ctypes.c_int, (len(message), position_at, joints, count, warm_up))
    size, *rest = numbers
    answered = run(
        _type(),
        to.encode(),
        answers.encode(),
        message,
        size,
        *rest,
        ctypes.c_void_p(trips.ctypes.data),
    )
    return trips[:answered] * 1e-9


def _type() -> ctypes.c_void_p:
    """The type support of JointState."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    capsule = type(JointState)._TYPE_SUPPORT
    return ctypes.c_void_p(get(capsule, name(capsule)))
