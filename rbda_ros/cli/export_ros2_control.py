"""``rbda_ros export-ros2-control``: a robot as a package of ros2_control plugins."""

from __future__ import annotations

import argparse
from pathlib import Path

from rbda_ros.cli.robot_arguments import add_robot_arguments, load, names, reports_errors


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command ``export-ros2-control`` to a command line."""
    parser = subparsers.add_parser(
        "export-ros2-control",
        help="write a robot as a package of ros2_control plugins",
        description="Write a colcon package with the robot's exported C code, a transmission, a "
        "chainable controller and an inverse-dynamics solver. Its README has the YAML to paste.",
    )
    add_robot_arguments(parser)
    parser.add_argument("--name", help="the package is NAME_control (default: from the directory)")
    parser.add_argument(
        "--joints",
        metavar="JOINTS",
        help="joints that are commanded, separated by commas (default: joints without motors that "
        "determine the robot)",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="directory of the package"
    )


@reports_errors("export-ros2-control", exit_code=2)
def run(args: argparse.Namespace) -> int:
    """Write the package; returns the exit code."""
    from rbda_ros.exports import export_ros2_control

    joints = tuple(names(args.joints or "")) or None
    report = export_ros2_control(load(args), Path(args.output), name=args.name, joints=joints)
    print(f"wrote the package {report.name}_control to {report.folder}; read its README.md")
    print(f"motors: {', '.join(report.library.motors)}")
    print(f"joints: {', '.join(report.library.joints)}")
    return 0
