"""The command line: ``rbda_ros serve``, ``demo``, ``inspect``, ``export-c``, ``actuation``.

Lives here: a module per command, and what commands draw and print.
Comes in: everything; rclpy only once a command needs it.
Used from outside: `main` and `serve`, the entry points.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``rbda_ros``; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with _ending_quietly():
        from rbda_ros.cli.commands import main as run

        if arguments[:1] == ["serve"]:
            with suppress(ImportError):  # which will be told of
                import_module("rbda_ros.node.main")
    return run(arguments)


def serve() -> int:
    """Run the program ``dynamics``, the node; returns the exit code."""
    return main(["serve", *sys.argv[1:]])


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
