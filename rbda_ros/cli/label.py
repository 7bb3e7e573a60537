"""``rbda_ros label``: adds the messages of the node to recordings."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rbda_ros.cli.robot_arguments import add_robot_arguments, positions, reports_errors
from rbda_ros.control.settings import MAPS, ParameterError, Settings, checked_settings
from rbda_ros.description import read_description
from rbda_ros.description.report import Report
from rbda_ros.description.usd import is_usd
from rbda_ros.description.writers import write_loop_file, write_urdf
from rbda_ros.description.xml_text import parse_xml
from rbda_ros.errors import InputError

if TYPE_CHECKING:
    from rbda_ros.recordings.label_file import Model


FAILURES = ("failed", "no labels")
"""Outcomes of recordings that the exit code reports."""


def add_parser(subparsers: Any) -> None:
    """Add the command ``label`` to a parser of commands."""
    parser = subparsers.add_parser(
        "label",
        help="add the efforts of the model and the residuals to bags",
        description="Read bags (MCAP, SQLite), compute what the node would have published "
        "(feedforward, completed joint states, external effort) and the residual (measured minus "
        "feedforward), and write each bag with these topics added. No ROS has to run.",
    )
    parser.add_argument(
        "bags", nargs="+", metavar="IN", help="bags, folders of bags, globs; paths or URLs"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="folder for the labelled bags"
    )
    add_model_arguments(parser)
    add_recording_arguments(parser)
    parser.add_argument(
        "--parquet", action="store_true", help="write a table of samples beside each bag"
    )
    parser.add_argument(
        "--rate", type=float, default=0.0, help="largest number of labels per second"
    )
    parser.add_argument(
        "--cutoff",
        type=float,
        default=0.0,
        help="low-pass filter of all efforts, without delay [Hz]",
    )
    parser.add_argument(
        "--workers", type=int, default=0, help="processes on this machine (default: one per core)"
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="address of a Dask cluster to use instead",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the robot and the parameters of the node."""
    add_robot_arguments(parser, named=True, floating_base=False)
    parser.add_argument(
        "--params", type=Path, metavar="FILE", help="parameters of the node, as for --params-file"
    )


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names in a recording, and the positions of joints that are not recorded."""
    parser.add_argument(
        "--node", default="/dynamics", help="name of the node (default: %(default)s)"
    )
    parser.add_argument(
        "--joint-states", default="/joint_states", metavar="TOPIC", help="default: %(default)s"
    )
    parser.add_argument(
        "--hold",
        action="append",
        default=[],
        metavar="JOINT=POSITION",
        help="where a joint is that is not recorded [rad, m] (default: at the assembly)",
    )


@reports_errors("label")
def run(args: argparse.Namespace) -> int:
    """Label; returns the exit code: 1 if some recording failed, or has no labels."""
    from rbda_ros.recordings.fleet import REPORT, FileReport, label_all
    from rbda_ros.recordings.label_file import Options

    console = Console(stderr=True)
    settings, model = read_settings(args.params), given_model(args)
    options = Options(
        args.node,
        args.joint_states,
        _rate(args.rate),
        _cutoff(args.cutoff),
        args.parquet,
        tuple(held_positions(args).items()),
    )
    with _progress(console) as bar:
        shown = bar.add_task("labelling")

        def told(done: int, total: int, share: float, report: FileReport | None) -> None:
            bar.update(shown, completed=done + share, total=total)
            if report is not None and report.status in FAILURES:
                console.print(f"{report.source}: {report.note}", markup=False, soft_wrap=True)

        reports = label_all(
            args.bags, args.output, model, settings, options,
            workers=args.workers, scheduler=args.scheduler, told=told,
        )  # fmt: skip
    _print(reports)
    print(f"{args.output.rstrip('/')}/{REPORT} has it all")
    return int(any(report.status in FAILURES for report in reports))


def held_positions(args: argparse.Namespace) -> dict[str, float]:
    """Positions of the joints that are held because no recording has them [rad, m]."""
    try:
        return positions(args.hold)
    except ValueError as text:
        raise InputError(f"--hold {text}: give JOINT=POSITION [rad, m]") from None


def read_settings(path: Path | None) -> Settings:
    """Settings from a parameter file of ROS: of the node ``dynamics``, or of every node (``/**``).

    Without one, they are the node's own but for the external effort, which labels have.

    Raises:
        ParameterError: the file does not say parameters of this node.
    """
    defaults = {f.name: getattr(Settings(), f.name) for f in fields(Settings)}
    values: dict[str, Any] = {"publish_external_effort": True}
    if path is not None:
        try:
            given = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ParameterError(f"{path}: {error}") from error
        values |= _of_node(path, given)
    for name, value in values.items():
        if name not in defaults:
            raise ParameterError(f"{path}: {name} is no parameter of the node")
        default = defaults[name]
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            values[name] = value = float(value)
        wanted = list if isinstance(default, tuple) else type(default)
        if not isinstance(value, wanted):
            raise ParameterError(f"{path}: {name}: {value!r} is no {wanted.__name__}")
    return checked_settings(defaults | values)


def _of_node(path: Path, given: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    found = False
    for name, entry in (given or {}).items() if isinstance(given, Mapping) else ():
        inner = entry.get("ros__parameters") if isinstance(entry, Mapping) else None
        if isinstance(inner, Mapping) and name.strip("/").split("/")[-1] in ("dynamics", "**"):
            values |= inner
            found = True
    if not found:
        raise ParameterError(f"{path}: no ros__parameters under 'dynamics' or '/**'")
    values.pop("use_sim_time", None)
    return _maps_as_text(values)


def _maps_as_text(values: dict[str, Any]) -> dict[str, Any]:
    """Convert maps by joint from nested parameters, as in a file, to the form of the settings."""
    gains = values.pop("gains", {})
    for joint, entry in gains.items() if isinstance(gains, Mapping) else ():
        for name, gain in entry.items() if isinstance(entry, Mapping) else ():
            values.setdefault(name, {})[joint] = gain
    for name in (*MAPS, "end_effectors"):
        if isinstance(values.get(name), Mapping):
            values[name] = yaml.safe_dump(dict(values[name]))
    return values


def given_model(args: argparse.Namespace) -> Model:
    """The robot of the arguments; see `read_model`."""
    return read_model(args.robot, args.loops, dict(args.xacro or ()))


def read_model(
    robot: Path, loops: Path | None, xacro_arguments: Mapping[str, str] | None = None
) -> Model:
    """A robot as texts that workers can build it from: MJCF, xacro and USD files as a URDF.

    Raises:
        ModelError: the files cannot be used.
    """
    from rbda_ros.recordings.label_file import Model

    if not is_usd(robot):
        text = robot.read_text(encoding="utf-8")
        root = parse_xml(text, Report())
        if (root is None or root.tag != "mujoco") and "xacro" not in text:
            return Model(text, loops.read_text(encoding="utf-8") if loops else "")
    description = read_description(robot, loops, xacro_arguments=xacro_arguments)
    return Model(write_urdf(description, {}), write_loop_file(description))


def _rate(rate: float) -> float:
    if not 0.0 <= rate < float("inf"):
        raise InputError(f"--rate {rate}: give labels a second, or 0 for one a message")
    return rate


def _cutoff(cutoff: float) -> float:
    from rbda_ros.recordings.labeller import Smoother

    if cutoff:
        Smoother(cutoff)  # says what is wrong with it, before any recording is read
    return cutoff


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _print(reports: Any) -> None:
    table = Table("recording", "", "joint states", "labelled", "refused")
    for report in reports:
        refused = ", ".join(f"{n} {reason}" for reason, n in report.refused.items())
        counts = (str(report.messages), str(report.answered)) if report.messages else ("", "")
        said = report.note if report.status == "failed" else refused
        if report.held:
            held = ", ".join(f"{name} at {value:g}" for name, value in report.held.items())
            said = f"held, not recorded: {held}" + (f"; {said}" if said else "")
        table.add_row(report.source, report.status, *counts, said)
    Console().print(table)
    states = Counter(report.status for report in reports)
    print(", ".join(f"{n} {status}" for status, n in states.items()))
