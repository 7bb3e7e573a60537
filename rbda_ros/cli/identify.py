"""``rbda_ros identify``: a better model of a robot from its recordings."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rbda_ros.cli.label import add_model_arguments, read_model, read_settings
from rbda_ros.errors import InputError, ModelError
from rbda_ros.node.settings import ParameterError


def add_parser(subparsers: Any) -> None:
    """Add the command ``identify`` to a parser of commands."""
    parser = subparsers.add_parser(
        "identify",
        help="identify inertia, friction, offsets or a payload from bags",
        description="Fits a robot, loops and all, to measured efforts: physically consistent, "
        "close to the description where the motion tells nothing, robust to outliers, with "
        "intervals. Fits the first 70 %% of the time, and judges by the rest.",
    )
    parser.add_argument("bags", nargs="+", metavar="BAG", help="bags, folders of bags, globs")
    add_model_arguments(parser)
    parser.add_argument(
        "--what",
        default="inertia,friction",
        help="some of inertia, friction, offset, payload (default: %(default)s)",
    )
    parser.add_argument("--payload", metavar="LINK", help="the link that carries the payload")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the URDF to write"
    )
    parser.add_argument("--cutoff", type=float, default=10.0, help="of the averages [Hz]")
    parser.add_argument(
        "--joint-states", default="/joint_states", metavar="TOPIC", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    """Identify, and write the files; returns the exit code."""
    try:
        written = _identify(args)
    except (InputError, ModelError, ParameterError, OSError) as error:
        print(f"rbda_ros identify: {error}", file=sys.stderr)
        return 1
    for line in written:
        print(line)
    return 0


def _identify(args: argparse.Namespace) -> list[str]:
    from rbda_ros.recordings.identification import identify
    from rbda_ros.recordings.identification_report import html_report
    from rbda_ros.recordings.motions import read_motions
    from rbda_ros.recordings.patched_files import (
        patched_loops,
        patched_urdf,
        payload_call,
        payload_of,
    )
    from rbda_ros.recordings.sources import find_recordings, local_copy
    from rbda_ros.robot.effort_evidence import gather

    if not 0.0 < args.cutoff < float("inf"):
        raise InputError(f"--cutoff {args.cutoff}: give a frequency above zero [Hz]")
    settings = replace(read_settings(args.params), publish_external_effort=False)
    model = read_model(args.robot, args.loops)
    robot = model.load(settings)
    motions = []
    for recording in find_recordings(args.bags):
        with local_copy(recording.source) as bag:
            motions += read_motions(robot, [bag], settings, args.joint_states)
    evidence = gather(robot, motions, args.payload, args.cutoff)
    what = [part.strip() for part in args.what.split(",") if part.strip()]
    found = identify(robot, evidence, what, payload=args.payload)

    output, loops = args.output, args.output.with_name(f"{args.output.stem}_loops.yaml")
    report = args.output.with_suffix(".html")
    command = payload_call(payload_of(found), "/dynamics") if args.payload else ""
    output.write_text(patched_urdf(model.urdf, robot, found), encoding="utf-8")
    lines = [f"{output}: the URDF"]
    if model.loops:
        loops.write_text(patched_loops(model.loops, robot, found), encoding="utf-8")
        lines.append(f"{loops}: the loop file")
    report.write_text(html_report(robot, found, command), encoding="utf-8")
    lines.append(f"{report}: how well it fits")
    rows = zip(
        robot.actuated_joint_names, found.nominal_rms, found.identified_rms, found.fit.noise,
        strict=True,
    )  # fmt: skip
    for name, nominal, identified, noise in rows:
        lines.append(
            f"{name}: measured minus model {nominal:.4g} before, {identified:.4g} now, noise "
            f"{noise:.4g} (root of the mean square, in the time that was not fitted)"
        )
    if found.unknown:
        lines.append(f"the motion told nothing of {len(found.unknown)} parameters: see the report")
    return [*lines, command] if command else lines
