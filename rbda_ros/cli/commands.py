"""All commands except ``serve`` and ``simulate``: ``demo``, and a module for each other one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rbda_ros import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. Without a command it prints the help."""
    parser = _parser()
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    return _run(arguments)


MODULES = {
    "inspect": "inspection",
    "check": "check",
    "convert": "convert",
    "view": "viewing",
    "export-c": "export_c",
    "export-ros2-control": "export_ros2_control",
    "actuation": "actuation_grid",
    "label": "label",
    "identify": "identify",
    "excite": "excite",
}
"""The module of each command, with ``add_parser`` and ``run``; not imported by ``serve``."""


def _program(command: str) -> Any:
    return import_module(f"rbda_ros.cli.{MODULES[command]}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rbda_ros",
        description="Dynamics of robots whose actuation has kinematic loops.",
        epilog="`rbda_ros COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"rbda_ros {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="run the ROS node `dynamics`", add_help=False)
    commands.add_parser("simulate", help="simulate a robot as ROS hardware", add_help=False)
    demo = commands.add_parser(
        "demo",
        help="run the node on a bundled robot that moves",
        description="Run the node on the bundled demo leg, which moves, and print its efforts.",
    )
    demo.add_argument(
        "--seconds", type=_positive, metavar="N", help="end after N seconds (default: at Ctrl-C)"
    )
    demo.add_argument(
        "--once", action="store_true", help="show one set of torques and one answer, then end"
    )
    demo.add_argument(
        "--mujoco",
        action="store_true",
        help="simulate the leg in MuJoCo and print its tracking errors with three models",
    )
    demo.add_argument(
        "--picture", metavar="FILE", help="with --mujoco: draw the errors into this file"
    )
    for command in MODULES:
        _program(command).add_parser(commands)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command in MODULES:
        return int(_program(arguments.command).run(arguments))
    if arguments.mujoco:
        from rbda_ros.demo.closed_loop import SECONDS, report
        from rbda_ros.demo.closed_loop import run as run_mujoco

        code = run_mujoco(arguments.picture, arguments.seconds or SECONDS)
        if code == 0:
            print(report())
        return code
    from rbda_ros.demo.run import run as run_demo

    return run_demo(seconds=arguments.seconds, once=arguments.once)


def _positive(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value
