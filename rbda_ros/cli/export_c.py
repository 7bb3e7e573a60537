"""``rbda_ros export-c``: a robot's dynamics as C99 files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbda_ros.cli.robot_arguments import add_robot_arguments, load

if TYPE_CHECKING:
    from rbda_ros.kernels.program import Program
    from rbda_ros.robot.robot import Robot


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command ``export-c`` to a command line."""
    parser = subparsers.add_parser(
        "export-c",
        help="write a robot's dynamics as dependency-free C99",
        description="Writes NAME.c and NAME.h: the robot's dynamics as C99 functions that need "
        "<math.h> only and allocate nothing, for use inside a real-time loop.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action=_Help, help="show this help, and every function")
    add_robot_arguments(parser)
    parser.add_argument(
        "--functions",
        default="inverse_dynamics,forward_dynamics",
        metavar="NAMES",
        help="what to export, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--frames", default="", metavar="LINKS", help="links for functions that are about frames"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="NAME",
        help="path without ending of the files; its last part begins the functions' names",
    )


class _Help(argparse.Action):
    """Help that lists the functions: to know them takes a second of imports."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it and end."""
        from rbda_ros.kernels.registry import KERNELS

        about_frames = [name for name, kernel in KERNELS.items() if kernel.needs_frames]
        parser.epilog = (
            f"functions: {', '.join(name for name in KERNELS if name not in about_frames)}; "
            f"with --frames: {', '.join(about_frames)}"
        )
        parser.print_help()
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Write the files; returns the exit code."""
    from rbda_ros.errors import InputError, ModelError
    from rbda_ros.kernels.export import export_c
    from rbda_ros.kernels.program import UnsupportedOperationError

    output = Path(args.output)
    try:
        functions = _function_names(args.functions)
        robot = load(args)
        frames = [frame for frame in args.frames.split(",") if frame]
        programs = {name: _program(robot, name, frames) for name in functions}
        output.parent.mkdir(parents=True, exist_ok=True)
        written = export_c(
            programs,
            output.name,
            output.parent,
            about=[f"{robot.name}: dynamics, written by rbda_ros export-c."],
            meanings=_meanings(robot),
        )
    except (InputError, ModelError, OSError, UnsupportedOperationError) as error:
        print(f"rbda_ros export-c: {error}", file=sys.stderr)
        return 2
    print(f"wrote {written[0]} and {written[1]}: {', '.join(programs)}")
    return 0


def _function_names(text: str) -> list[str]:
    from rbda_ros.errors import InputError
    from rbda_ros.kernels.registry import KERNELS

    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in KERNELS]
    if unknown or not names:
        wrong = f"there is no function {', '.join(unknown)}" if unknown else "name a function"
        raise InputError(f"{wrong}; there are {', '.join(KERNELS)}")
    return names


def _program(robot: Robot, name: str, frames: list[str]) -> Program:
    from rbda_ros.errors import InputError
    from rbda_ros.kernels.registry import KERNELS

    about_frames = KERNELS[name].needs_frames
    if about_frames and not frames:
        raise InputError(f"{name} is about frames: name links with --frames")
    return robot.kernel(name, *(frames if about_frames else ())).program


def _meanings(robot: Robot) -> dict[str, list[str]]:
    """What the entries of inputs and outputs are, in the joints' own names."""
    from rbda_ros.kernels.quantities import QUANTITIES

    positions: list[str] = []
    for body in robot.tree.spanning.bodies:
        size = body.model.nq
        joint = body.joint.name
        if body.joint.type == "floating":
            positions += [f"{joint} {part}" for part in ("x", "y", "z", "qx", "qy", "qz", "qw")]
        elif size == 1:
            positions.append(joint)
        else:
            positions += [f"{joint} {i}" for i in range(size)]
    names = robot.coordinate_names
    entries = {
        "nq": _entries(positions),
        "nv": _entries(names),
        "ny": _entries([names[i] for i in robot.independent_coordinates]),
        "na": _entries(robot.actuated_joint_names),
    }
    meanings = {}
    for name, (shape, unit, meaning) in QUANTITIES.items():
        rows = ", row by row" if len(shape) > 1 else ""
        lines = [f"{meaning}{rows}{f' [{unit}]' if unit else ''}."]
        meanings[name] = lines + [entries[str(each)] for each in shape[:1] if each in entries]
    meanings["q"][0] = (
        "spanning position [rad, m]: it must satisfy the loops, with unit quaternions."
    )
    bodies = [body.joint.name for body in robot.tree.spanning.bodies]
    return meanings | {
        "wrenches": [
            "six numbers per body, moment then force that act on it [N m, N], in the frame of the",
            "body: at the joint, turned as the joint's child, with z along the joint's axis.",
            "Bodies by their joints: " + _entries(bodies),
        ],
    }


def _entries(names: Sequence[str]) -> str:
    return ", ".join(f"[{i}] {name}" for i, name in enumerate(names))
