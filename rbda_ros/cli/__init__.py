"""The command line: ``rbda_ros serve``, ``simulate``, ``demo``, ``inspect``, ``export-c`` and more.

Lives here: a module per command, and what commands draw and print.
Comes in: everything; rclpy only once a command needs it.
Used from outside: `main` and `serve`, the entry points.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from rbda_ros.node.stop_signals import StopSignals, end_at_signals, end_process

UNTIL_STOPPED = {"serve", "simulate", "demo", "view"}
"""Commands for which Ctrl-C is the usual end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``rbda_ros``; returns the exit code.

    Args:
        argv: arguments. If they are given, most commands leave the signals of the process alone.
    """
    if argv is None:
        return _run_as_program(sys.argv[1:])
    return _run(argv)


def serve() -> int:
    """Run the program ``dynamics``, the node; returns the exit code."""
    return _run_as_program(["serve", *sys.argv[1:]])


def _run_as_program(arguments: Sequence[str]) -> int:
    """Run a command in a process of its own, which a signal ends quietly at any time."""
    # Before numpy comes: its matrices here are small, and BLAS's threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if UNTIL_STOPPED.intersection(arguments[:1]) and "--mujoco" not in arguments:
        end_at_signals(0)  # while modules are imported; then the command has signals of its own
        return _run(arguments)
    signals = StopSignals(interrupt=True)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        # Python would end by SIGINT if the exception has passed through an exec().
        end_process(signals.exit_code)


def _run(arguments: Sequence[str]) -> int:
    try:
        return _program(arguments)()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "rbda_ros":
            raise
        print(
            f"rbda_ros: the module {error.name} is missing; source a ROS 2 installation, or use "
            "the virtual environment that `make install` creates",
            file=sys.stderr,
        )
        return 1


def _program(arguments: Sequence[str]) -> Callable[[], int]:
    """Command of these arguments, imported; the node starts sooner without the commands."""
    if arguments[:1] == ["serve"]:
        gc.disable()  # what imports make stays: the collector need not look through it
        # Everything that follows is ROS's: argparse must not look at it.
        from rbda_ros.node.main import main as serve_node

        gc.freeze()
        gc.enable()
        return partial(serve_node, arguments[1:])
    if arguments[:1] == ["simulate"]:
        from rbda_ros.node.simulated_robot import main as simulate

        return partial(simulate, arguments[1:])
    from rbda_ros.cli.commands import main as run_command

    return partial(run_command, arguments)
