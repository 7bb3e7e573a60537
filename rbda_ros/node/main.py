"""The program: `ros2 run rbda_ros dynamics`, or `rbda_ros serve`."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import rclpy
from rclpy.parameter import Parameter
from rclpy.utilities import remove_ros_args

from rbda_ros.control import thread_priority
from rbda_ros.control.worker import lower_priority
from rbda_ros.errors import ModelError, one_line
from rbda_ros.kernels import background
from rbda_ros.node.dynamics_node import DynamicsNode
from rbda_ros.node.parameters import ParameterError
from rbda_ros.node.spin import init, join_xacro_arguments, spin

CANNOT_START, BAD_USAGE = 1, 2  # exit codes

PATIENCE = 1.0
"""How long the end waits for work to notice that it is cancelled [s]."""
HEAPS, M_ARENA_MAX = 2, -8  # the latter of malloc.h
SWITCH_INTERVAL = 1e-4
"""How long a thread may hold the interpreter while the stream waits for it [s]."""
GARBAGE_THRESHOLDS = (700, 1000, 1000)
"""Allocations, then collections, between two collections of each generation: what is young is
soon looked through, but the points of a long trajectory take 6 ms."""
MODELS = 20
"""Models after which the collector examines all objects."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; the exit code says whether it could start."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _share_heaps()
    _spare_generator()
    _find_log_folder()
    try:
        arguments = join_xacro_arguments(arguments)
        others = remove_ros_args(["dynamics", *arguments])[1:]
        given = _parameters_of(others) if others else []
        signals = init(arguments)
    except ModelError as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        return CANNOT_START
    except RuntimeError as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        return BAD_USAGE
    try:
        node = DynamicsNode(parameter_overrides=given)
    except (ParameterError, RuntimeError) as error:
        print(f"dynamics: {one_line(error)}", file=sys.stderr)
        rclpy.try_shutdown()
        return CANNOT_START
    tune_process(node)
    spin(node, node.given_up, signals, first=node.start, finish=partial(_finish, node))
    if why := node.given_up.result():
        print(f"dynamics: {why}", file=sys.stderr)
        return CANNOT_START
    return 0


def _share_heaps() -> None:
    """Have all threads of this process allocate from a few heaps.

    glibc gives a heap to each thread that waits for another, and a heap keeps what it has once
    grown to: traces of one model in many threads would hold on to hundreds of megabytes.
    """
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def _return_memory() -> None:
    """Give memory that was freed back to the system, in less than a millisecond.

    glibc does so by itself only at the end of a heap. Builds that overlapped would leave a heap as
    large as both needed together.
    """
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _spare_generator() -> None:
    """Import ROS's generator of messages without its parsers, which messages do not need.

    The parsers take 50 ms to import, and the generator works where they cannot be imported.
    """
    parsers = "rosidl_generator_py.generate_py_impl"
    if parsers in sys.modules:
        return
    sys.modules[parsers] = None  # type: ignore[assignment]  # Python's way to say: not here
    with suppress(ImportError):
        import_module("rosidl_generator_py")
    del sys.modules[parsers]


def _find_log_folder() -> None:
    """Have ROS write its log to a writable folder: it does not start without a home folder."""
    if os.environ.get("ROS_LOG_DIR"):
        return
    home = os.environ.get("HOME")
    folder = Path(os.environ.get("ROS_HOME") or f"{home}/.ros") / "log"
    writable = bool(home or os.environ.get("ROS_HOME"))
    if writable:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            writable = os.access(folder, os.W_OK)
        except OSError:
            writable = False
    if not writable:
        where = f"{folder} cannot be written" if home else "there is no home folder"
        instead = Path(tempfile.gettempdir(), f"rbda_ros_log_{os.getuid()}")
        os.environ["ROS_LOG_DIR"] = str(instead)
        print(f"dynamics: {where}; the log is in {instead}", file=sys.stderr)


def _finish(node: DynamicsNode) -> bool:
    """Whether all threads of this process have ended within the time for an orderly end."""
    began = time.monotonic()
    finished = node.finish_work(PATIENCE)
    return background.end_compiling(max(began + PATIENCE - time.monotonic(), 0.0)) and finished


def tune_process(node: DynamicsNode) -> None:
    """Change settings of the whole process, so that no message waits.

    A node in a process with others does not call this.
    """
    background.begin_thread = lower_priority
    thread_priority.own_process = True
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    node.on_model = _Collector().on_model


class _Collector:
    """Excludes the model from garbage collection, which would take 50 ms for it.

    A model that is replaced is freed by reference count. Other objects that were excluded, and are
    in a cycle, are collected when `MODELS` more models have come.
    """

    def __init__(self) -> None:
        self._models = 0

    def on_model(self) -> None:
        """Collect the garbage, so that it is not excluded too, and exclude all other objects."""
        self._models += 1
        if self._models % MODELS == 0:
            gc.unfreeze()
            gc.collect()
            _return_memory()
        else:
            gc.collect(1)
        gc.freeze()


def _parameters_of(arguments: Sequence[str]) -> list[Parameter]:
    from rbda_ros.node.robot_file import parameters_of  # argparse, which most starts do not need

    return parameters_of(arguments)


if __name__ == "__main__":
    sys.exit(main())
