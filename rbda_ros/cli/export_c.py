"""``rbda_ros export-c``: a robot as a C99 library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbda_ros.cli.robot_arguments import add_robot_arguments, load, names, reports_errors


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command ``export-c`` to a command line."""
    parser = subparsers.add_parser(
        "export-c",
        help="write a robot as a dependency-free C99 library",
        description="Write NAME.h, NAME.c, example.c and CMakeLists.txt for use in a real-time "
        "loop. The functions close the loops, check and compute as in Python. They allocate "
        "nothing and need only <math.h>.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action=_Help, help="show this help, and every function")
    add_robot_arguments(parser)
    parser.add_argument(
        "--functions",
        default="inverse_dynamics,forward_dynamics",
        metavar="NAMES",
        help="functions to export, separated by commas (default: %(default)s)",
    )
    parser.add_argument("--name", help="prefix of all C names (default: the name of the directory)")
    parser.add_argument(
        "--measured",
        metavar="JOINTS",
        help="joints that are measured, separated by commas (default: the motors, if they "
        "determine the robot)",
    )
    parser.add_argument(
        "--joints",
        metavar="JOINTS",
        help="joints of convert and motor_command (default: joints without motors that determine "
        "the robot)",
    )
    parser.add_argument(
        "--terms",
        default="gravity,coriolis,inertial",
        help="parts of feedforward; friction is possible too (default: %(default)s)",
    )
    parser.add_argument(
        "--frames", default="", metavar="LINKS", help="links for functions of frames"
    )
    parser.add_argument(
        "--payload",
        metavar="LINK",
        help="a link whose payload set_payload changes at run time",
    )
    parser.add_argument(
        "--float32", action="store_true", help="single precision; the error is measured and printed"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="directory of the files"
    )


class _Help(argparse.Action):
    """Help that lists the functions: to know them takes a second of imports."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it and end."""
        from rbda_ros.exports.c_library import function_names

        parser.epilog = f"functions: {', '.join(function_names())}"
        parser.print_help()
        parser.exit()


@reports_errors("export-c", exit_code=2)
def run(args: argparse.Namespace) -> int:
    """Write the files; returns the exit code."""
    from rbda_ros.exports import export_robot

    robot = load(args)
    report = export_robot(
        robot,
        Path(args.output),
        name=args.name,
        functions=names(args.functions),
        measured=names(args.measured) if args.measured else None,
        joints=names(args.joints) if args.joints else None,
        terms=names(args.terms),
        frames=names(args.frames),
        payload=args.payload,
        float32=args.float32,
    )
    print(f"wrote {', '.join(str(path) for path in report.files)}")
    print(f"functions: {', '.join(report.functions)}")
    closed = f"loops are closed by at most {report.evaluations} evaluations of a kernel"
    print(
        f"workspace {report.workspace} bytes; work arrays on the stack {report.stack} at most;"
        f" {closed if robot.has_loops else 'there are no loops to close'}"
    )
    if args.float32:
        _print_error(robot, report)
    return 0


def _print_error(robot: Any, report: Any) -> None:
    """The error of single precision, over random states."""
    from rbda_ros.exports.compiled import feedforward_error

    error = feedforward_error(robot, report)
    if error is None:
        print("error of single precision: not measured; it needs a C compiler, and feedforward")
    else:
        print(f"error of single precision, feedforward at 100 random states: {error:.1e} of the")
        print("largest effort")
