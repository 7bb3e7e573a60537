"""Arguments of all commands that load a robot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rbda_ros.description.source import add_xacro_argument

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


def add_robot_arguments(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the robot's file, its loop file and whether its base floats."""
    parser.add_argument(
        "robot",
        type=Path,
        nargs="?" if optional else None,
        help="URDF, URDF+, xacro, MJCF, SDF or USD file",
    )
    parser.add_argument("--loops", type=Path, metavar="FILE", help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    parser.add_argument("--floating-base", action="store_true", help="the root link moves freely")


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
