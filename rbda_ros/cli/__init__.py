"""The command line: ``rbda_ros serve``, ``demo``, ``inspect``, ``export-c``, ``actuation``.

Lives here: a module per command, and what commands draw and print.
Comes in: everything; rclpy only once a command needs it.
Used from outside: `main` and `serve`, the entry points.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``rbda_ros``; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _ending_quietly():
            run = _program(arguments)
        return run()
    except KeyboardInterrupt:
        return 0
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "rbda_ros":
            raise
        print(
            f"rbda_ros: the module {error.name} is missing; source a ROS 2 installation, or use "
            "the virtual environment that `make install` creates",
            file=sys.stderr,
        )
        return 1


def serve() -> int:
    """Run the program ``dynamics``, the node; returns the exit code."""
    return main(["serve", *sys.argv[1:]])


def _program(arguments: Sequence[str]) -> Callable[[], int]:
    """Command of these arguments, imported; the node starts sooner without the commands."""
    if arguments[:1] == ["serve"]:
        gc.disable()  # what imports make stays: the collector need not look through it
        # Everything that follows is ROS's: argparse must not look at it.
        from rbda_ros.node.main import main as serve_node

        gc.freeze()
        gc.enable()
        return partial(serve_node, arguments[1:])
    from rbda_ros.cli.commands import main as run_command

    return partial(run_command, arguments)


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """End at once when told to, while modules are imported: there is nothing to tidy up yet.

    Python would end in a traceback, from wherever among the imports it happens to be.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what signals do
        return
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(number, lambda *_: os._exit(0)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
