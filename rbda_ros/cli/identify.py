"""``rbda_ros identify``: parameters of a robot fitted to its recordings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbda_ros.cli.label import (
    add_model_arguments,
    add_recording_arguments,
    given_model,
    held_positions,
    read_settings,
)
from rbda_ros.cli.robot_arguments import names, reports_errors
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, one_line
from rbda_ros.robot import Robot

if TYPE_CHECKING:
    from rbda_ros.recordings.identification import Identified
    from rbda_ros.recordings.label_file import Model
    from rbda_ros.robot.effort_evidence import Motion


def add_parser(subparsers: Any) -> None:
    """Add the command ``identify`` to a parser of commands."""
    parser = subparsers.add_parser(
        "identify",
        help="identify inertia, friction, offsets or a payload from bags",
        description="Fit the parameters of a robot, including its loops, to measured efforts. "
        "Bodies stay physically consistent, parameters that the motion does not excite stay as "
        "described, outliers count less, and every parameter has a confidence interval. The "
        "first 70 % of the recorded time is fitted, the rest validates the result.",
    )
    parser.add_argument("bags", nargs="+", metavar="BAG", help="bags, folders of bags, globs")
    add_model_arguments(parser)
    add_recording_arguments(parser)
    parser.add_argument(
        "--what",
        default="inertia,friction",
        help="some of inertia, friction, offset (of positions), effort_offset (of measured "
        "efforts), payload (default: %(default)s)",
    )
    parser.add_argument("--payload", metavar="LINK", help="the link that carries the payload")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the URDF to write"
    )
    parser.add_argument(
        "--cutoff",
        type=float,
        default=10.0,
        help="cutoff frequency of the averages that are fitted [Hz] (default: %(default)s)",
    )


@reports_errors("identify")
def run(args: argparse.Namespace) -> int:
    """Identify, and write the files; returns the exit code."""
    from rbda_ros.recordings.identification import identify_motions
    from rbda_ros.recordings.identified_files import payload_call, payload_of

    if not 0.0 < args.cutoff < float("inf"):
        raise InputError(f"--cutoff {args.cutoff}: give a frequency above zero [Hz]")
    settings = read_settings(args.params)
    model = given_model(args)
    robot, notes = _with_recorded_joints(args, model, settings)
    found = identify_motions(
        robot, _motions(args, robot, settings, notes), names(args.what),
        payload=args.payload, cutoff=args.cutoff,
    )  # fmt: skip
    commands = {}
    if found.payload:
        commands["Payload"] = payload_call(payload_of(found), args.node)
    lines = _write(args.output, model, robot, settings, found, commands)
    rows = zip(found.rows, found.nominal_rms, found.identified_rms, found.fit.noise, strict=True)
    for name, nominal, identified, noise in rows:
        lines.append(
            f"{name}: residual {nominal:.4g} before, {identified:.4g} after the fit, noise "
            f"{noise:.4g} (root mean square over the recorded time that was not fitted)"
        )
    if found.unknown:
        lines.append(
            f"the motion does not determine {len(found.unknown)} parameters: see the report"
        )
    print(*notes, *lines, *commands.values(), sep="\n")
    return 0


def _with_recorded_joints(
    args: argparse.Namespace, model: Model, settings: Settings
) -> tuple[Robot, list[str]]:
    """The robot with joints held that no recording has, and a line about them."""
    from rbda_ros.recordings.bags import find_recordings, local_copy
    from rbda_ros.recordings.held_joints import joints_to_hold, recorded_joints

    recorded: set[str] = set()
    for recording in find_recordings(args.bags):
        with suppress(Exception), local_copy(recording.source) as bag:  # `_motions` says what it is
            recorded |= recorded_joints(bag, args.joint_states, settings.joint_prefix)
    held = joints_to_hold(model.load(settings), recorded, held_positions(args))
    names = ", ".join(f"{name} at {value:g}" for name, value in held.items())
    notes = [f"held, as they are not recorded: {names}"] if held else []
    return model.load(settings, held), notes


def _motions(
    args: argparse.Namespace, robot: Robot, settings: Settings, notes: list[str]
) -> Iterator[Motion]:
    """Motions of all recordings. A recording that cannot be read is reported and skipped."""
    from rbda_ros.recordings.bags import find_recordings, local_copy
    from rbda_ros.recordings.identification import read_motions

    found = 0
    for recording in find_recordings(args.bags):
        before = found
        try:
            with local_copy(recording.source) as bag:
                for motion in read_motions(robot, bag, settings, args.joint_states, args.node):
                    found += 1
                    yield motion
        except InputError:
            raise
        except Exception as error:  # whatever a library makes of a file that is none
            notes.append(f"{recording.source}: {one_line(error)}")
        else:
            if found == before:
                notes.append(f"{recording.source}: no efforts of any motor, nor of every joint")
    if not found:
        raise InputError(
            f"no recording has {args.joint_states} with positions of all joints and measured"
            f" efforts of some actuated joint: {', '.join(robot.actuated_joint_names)}"
            + (f"; {notes[-1]}" if notes else "")
        )


def _write(
    output: Path,
    model: Model,
    robot: Robot,
    settings: Settings,
    found: Identified,
    commands: dict[str, str],
) -> list[str]:
    """Write the files; a line about each. What else there is to do goes into ``commands``."""
    from rbda_ros.recordings.identified_files import (
        html_report,
        offset_parameters,
        patched_loops,
        patched_urdf,
    )

    texts = {output: (patched_urdf(model.urdf, robot, found), "the URDF")}
    if model.loops:
        loops = output.with_name(f"{output.stem}_loops.yaml")
        texts[loops] = patched_loops(model.loops, found), "the loop file"
    if "offset" in found.what:
        parameters = offset_parameters(settings, found)
        place = output.with_name(f"{output.stem}_params.yaml")
        texts[place] = parameters, "offsets, for --params-file of the node and --params of label"
        commands["Offsets of positions"] = parameters
    report = output.with_suffix(".html")
    texts[report] = html_report(robot, found, commands), "report with the quality of the fit"
    for file, (text, _) in texts.items():
        file.write_text(text, encoding="utf-8")
    return [f"{file}: {says}" for file, (_, says) in texts.items()]
