"""``rbda_ros convert``: writes a robot as a URDF and a loop file, or as MJCF."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from rbda_ros.cli.robot_arguments import load
from rbda_ros.description import read_description
from rbda_ros.description.report import Report
from rbda_ros.description.source import add_xacro_argument, urdf_text
from rbda_ros.description.visuals import drawn_elements, mjcf_visuals
from rbda_ros.description.writers import write_loop_file, write_urdf
from rbda_ros.description.xml_text import LARGEST_TEXT, parse_xml
from rbda_ros.errors import ModelError, counted

MJCF_ENDINGS = (".xml", ".mjcf")
"""Of files that are written as MJCF."""


def add_parser(subparsers: Any) -> None:
    """Add the command ``convert`` to a parser of commands."""
    parser = subparsers.add_parser(
        "convert",
        help="write a robot as a URDF and a loop file, or as MJCF",
        description="Write a robot as a URDF and a loop file, or as MJCF for MuJoCo with its "
        "loops as equality constraints. The dynamics are the same.",
    )
    parser.add_argument("robot", type=Path, help="URDF, URDF+, xacro, MJCF, SDF or USD file")
    add_xacro_argument(parser)
    parser.add_argument("--loops", type=Path, metavar="FILE", help="loop-constraint file (YAML)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="file to write: MJCF if it ends in .xml or .mjcf, else a URDF",
    )
    parser.add_argument(
        "--output-loops",
        type=Path,
        metavar="FILE",
        help="the loop file to write (default: beside the URDF, as NAME_loops.yaml)",
    )
    parser.add_argument(
        "--serial",
        action="store_true",
        help="write a tree of the independent joints, for programs that know no loops: inertia of "
        "the loops as armature, limits from the motors, and W over the range of motion in "
        "NAME_actuation.npz",
    )
    mjcf = parser.add_argument_group("with MJCF")
    mjcf.add_argument("--floating-base", action="store_true", help="the root link moves freely")
    mjcf.add_argument(
        "--poses",
        type=int,
        metavar="N",
        help="also write N random closed positions, as NAME_poses.npz",
    )
    mjcf.add_argument(
        "--seed", type=int, default=0, help="seed of the random positions (default: %(default)s)"
    )
    mjcf.add_argument(
        "--balance-inertia",
        action="store_true",
        help="enlarge inertias that no body can have, which MuJoCo rejects",
    )


def run(args: argparse.Namespace) -> int:
    """Write the files; returns the exit code."""
    if args.serial:
        return _write_serial(args)
    if args.output.suffix in MJCF_ENDINGS:
        return _write_mjcf(args)
    if args.floating_base or args.poses is not None or args.balance_inertia:
        print(
            "--floating-base, --poses and --balance-inertia are for MJCF: name an output that"
            " ends in .xml",
            file=sys.stderr,
        )
        return 1
    loops = args.output_loops or args.output.with_name(f"{args.output.stem}_loops.yaml")
    try:
        given = dict(args.xacro or ())
        description = read_description(args.robot, args.loops, xacro_arguments=given)
        drawn = _drawn(args.robot, given)
        args.output.write_text(write_urdf(description, drawn), encoding="utf-8")
        loops.write_text(write_loop_file(description), encoding="utf-8")
    except (ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for warning in description.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    links = counted(len(description.links), "link")
    print(f"{args.output}: {links}, {counted(len(description.joints), 'joint')}")
    print(f"{loops}: {counted(len(description.constraints), 'constraint')}")
    return 0


def _write_serial(args: argparse.Namespace) -> int:
    """Write the serial tree, as URDF or MJCF, and its table; returns the exit code."""
    import numpy as np

    from rbda_ros.exports import serial_tree, write_mjcf

    if args.poses is not None:
        print("--poses: a tree has no loops to close; leave it out", file=sys.stderr)
        return 1
    table = args.output.with_name(f"{args.output.stem}_actuation.npz")
    try:
        serial = serial_tree(load(args))
        description = serial.robot.description
        notes = list(serial.notes)
        if args.output.suffix in MJCF_ENDINGS:
            export = write_mjcf(serial.robot, balance_inertia=args.balance_inertia)
            notes += export.notes
            args.output.write_text(export.text, encoding="utf-8")
        else:
            loops = args.output_loops or args.output.with_name(f"{args.output.stem}_loops.yaml")
            drawn = _drawn(args.robot, dict(args.xacro or ()))
            args.output.write_text(write_urdf(description, drawn), encoding="utf-8")
            loops.write_text(write_loop_file(description), encoding="utf-8")
        np.savez(table, allow_pickle=False, **serial.table)
    except (ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)
    print("joint, armature, position limits, effort limit, velocity limit")
    for joint in description.joints:
        if joint.type != "fixed":
            limits = joint.limits
            print(
                f"{joint.name}, {joint.armature:.4g}, {limits.lower:.4g} to {limits.upper:.4g},"
                f" {limits.effort:.4g}, {limits.velocity:.4g}"
            )
    print(f"{args.output}: {len(description.links)} links; {table}: W over the range of motion")
    return 0


def _write_mjcf(args: argparse.Namespace) -> int:
    """Write MJCF, and closed positions where they are asked for; returns the exit code."""
    import numpy as np

    from rbda_ros.exports import closed_poses, write_mjcf

    if args.poses is not None and args.poses < 1:
        print("--poses: give how many, 1 or more", file=sys.stderr)
        return 1
    try:
        robot = load(args)
        export = write_mjcf(robot, balance_inertia=args.balance_inertia)
        poses = None if args.poses is None else closed_poses(robot, export, args.poses, args.seed)
        args.output.write_text(export.text, encoding="utf-8")
        for note in (*robot.warnings, *export.notes):
            print(f"warning: {note}", file=sys.stderr)
        counts = (
            counted(len(robot.links), "link"),
            counted(len(export.joints), "joint"),
            counted(len(robot.description.constraints), "constraint"),
            counted(len(robot.actuated_coordinates), "motor"),
        )
        print(f"{args.output}: {', '.join(counts)}")
        if poses is not None:
            path = args.output.with_name(f"{args.output.stem}_poses.npz")
            np.savez(path, allow_pickle=False, **poses)
            print(f"{path}: {args.poses} closed positions")
    except (ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _drawn(
    path: Path, xacro_arguments: Mapping[str, str]
) -> Mapping[str, Sequence[etree._Element]]:
    """Visuals of the file, by link."""
    text = urdf_text(path, LARGEST_TEXT, Report(), xacro_arguments) or ""
    root = parse_xml(text, Report())
    if root is None:
        return {}
    if root.tag == "mujoco":
        from rbda_ros.description.mjcf_compiler import compile_mjcf

        model = compile_mjcf(path, text, Report())
        return {} if model is None else mjcf_visuals(model)
    return drawn_elements(root)
