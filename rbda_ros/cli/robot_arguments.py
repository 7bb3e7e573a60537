"""Arguments that several commands have, and how commands report errors."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from rbda_ros.description.source import add_xacro_argument

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

Run = Callable[[argparse.Namespace], int]


def add_robot_arguments(
    parser: argparse.ArgumentParser,
    *,
    optional: bool = False,
    named: bool = False,
    floating_base: bool = True,
) -> None:
    """Add the robot's file, its loop file, and whether its base floats.

    Args:
        parser: of a command.
        optional: whether the robot may be left out.
        named: whether its file follows ``--robot``.
        floating_base: whether there is the option ``--floating-base``.
    """
    formats = "URDF, URDF+, xacro, MJCF, SDF or USD file"
    if named:
        parser.add_argument("--robot", type=Path, required=True, metavar="FILE", help=formats)
    else:
        parser.add_argument("robot", type=Path, nargs="?" if optional else None, help=formats)
    parser.add_argument("--loops", type=Path, metavar="FILE", help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    if floating_base:
        parser.add_argument(
            "--floating-base", action="store_true", help="the root link moves freely"
        )


def load(args: argparse.Namespace) -> Robot:
    """Load the robot of the arguments.

    Raises:
        ModelError: it cannot be loaded.
    """
    from rbda_ros.robot.robot import load_robot  # a second of imports, which --help does not need

    return load_robot(
        args.robot,
        args.loops,
        floating_base=args.floating_base,
        xacro_arguments=dict(args.xacro or ()),
    )


def names(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def positions(given: Sequence[str]) -> dict[str, float]:
    """Positions of joints [rad, m], from texts JOINT=POSITION.

    Raises:
        ValueError: a text that is not of this form.
    """
    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = math.nan
        if not name or not math.isfinite(found[name]):
            raise ValueError(text)
    return found


def reports_errors(command: str, exit_code: int = 1) -> Callable[[Run], Run]:
    """Print what is wrong with the input of a command in one line, and return an exit code."""

    def decorate(run: Run) -> Run:
        @wraps(run)
        def reporting(args: argparse.Namespace) -> int:
            # Not above: it takes a second of imports, which --help does not need.
            from rbda_ros.control.settings import ParameterError
            from rbda_ros.errors import InputError, ModelError
            from rbda_ros.kernels.program import UnsupportedOperationError

            known = InputError, ModelError, ParameterError, UnsupportedOperationError, OSError
            try:
                return run(args)
            except known as error:
                print(f"rbda_ros {command}: {error}", file=sys.stderr)
                return exit_code

        return reporting

    return decorate
