"""``rbda_ros excite``: a motion to record, for `rbda_ros identify`."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

from rbda_ros.cli.label import add_model_arguments, read_model, read_settings
from rbda_ros.control.settings import ParameterError, joint_gains
from rbda_ros.errors import InputError, ModelError


def add_parser(subparsers: Any) -> None:
    """Add the command ``excite`` to a parser of commands."""
    parser = subparsers.add_parser(
        "excite",
        help="find a motion that determines a robot's parameters well",
        description="Search for a motion of the independent joints, from rest to rest, that "
        "determines inertia and friction well. It stays inside the limits of all joints and motors "
        "(those of the description, and effort_limits of --params). Write it as CSV: time, then "
        "position, velocity and acceleration of each joint.",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--what", default="inertia,friction", help="some of inertia, friction (default: both)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="duration (default: %(default)s)"
    )
    parser.add_argument("--rate", type=float, default=100.0, help="states per second (%(default)s)")
    parser.add_argument("--tries", type=int, default=60, help="motions to try (%(default)s)")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="CSV file to write"
    )


def run(args: argparse.Namespace) -> int:
    """Search, and write the motion; returns the exit code."""
    from rbda_ros.recordings.excitation import excite

    try:
        settings = read_settings(args.params)
        robot = read_model(args.robot, args.loops, dict(args.xacro or ())).load(settings)
        what = [part.strip() for part in args.what.split(",") if part.strip()]
        found = excite(
            robot, what, seconds=args.seconds, rate=args.rate, tries=args.tries,
            effort_limits=joint_gains("effort_limits", settings.effort_limits),
        )  # fmt: skip
        with args.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            kinds = ("position", "velocity", "acceleration")
            writer.writerow(
                ["time", *(f"{kind}.{name}" for kind in kinds for name in found.joints)]
            )
            rows = zip(found.times, found.position, found.velocity, found.acceleration, strict=True)
            for time, *numbers in rows:
                writer.writerow([time, *(x for part in numbers for x in part.tolist())])
    except (InputError, ModelError, ParameterError, OSError) as error:
        print(f"rbda_ros excite: {error}", file=sys.stderr)
        return 1
    print(f"{args.output}: {len(found.times)} states of {', '.join(found.joints)}")
    print(f"determines {len(found.told)} parameters: {', '.join(found.told) or 'none'}")
    if found.untold:
        print(f"does not determine {len(found.untold)}: {', '.join(found.untold)}")
    return 0
