"""``rbda_ros excite``: a motion to record, for `rbda_ros identify`."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros.cli.label import add_model_arguments, given_model, read_settings
from rbda_ros.cli.robot_arguments import names, reports_errors
from rbda_ros.control.settings import joint_gains


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


@reports_errors("excite")
def run(args: argparse.Namespace) -> int:
    """Search, and write the motion; returns the exit code."""
    from rbda_ros.recordings.excitation import excite

    settings = read_settings(args.params)
    found = excite(
        given_model(args).load(settings), names(args.what),
        seconds=args.seconds, rate=args.rate, tries=args.tries,
        effort_limits=joint_gains("effort_limits", settings.effort_limits),
    )  # fmt: skip
    with args.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        kinds = ("position", "velocity", "acceleration")
        writer.writerow(["time", *(f"{kind}.{name}" for kind in kinds for name in found.joints)])
        rows = np.column_stack([found.times, found.position, found.velocity, found.acceleration])
        writer.writerows(rows.tolist())
    print(f"{args.output}: {len(found.times)} states of {', '.join(found.joints)}")
    print(f"determines {len(found.told)} parameters: {', '.join(found.told) or 'none'}")
    if found.untold:
        print(f"does not determine {len(found.untold)}: {', '.join(found.untold)}")
    return 0
