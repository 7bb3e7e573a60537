"""``rbda_ros actuation``: transmission between motors and joints over a grid of poses."""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import Actuation, Robot
from rbda_ros.cli.robot_arguments import add_robot_arguments, load, positions, reports_errors
from rbda_ros.errors import InputError, ModelError
from rbda_ros.spatial import Array

PER_JOINT = ("torque_limit", "torque_limit_alone", "velocity_limit", "velocity_limit_alone")
MAX_POSES = 1_000_000


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "actuation",
        help="reflected inertia and limits of the joints over a grid of poses, as CSV or npz",
        description="Compute W, the reflected inertia of the motors, and the limits of the joints "
        "that follow from those of the motors, at every pose of a grid. Poses at which the loops "
        "do not close, or are at a dead point, have nan.",
    )
    add_robot_arguments(parser)
    parser.add_argument(
        "--grid",
        nargs="+",
        required=True,
        metavar="JOINT=FROM:TO:COUNT",
        help="a joint and its positions [rad, m]",
    )
    parser.add_argument(
        "--at",
        nargs="*",
        default=[],
        metavar="JOINT=POSITION",
        help="positions of other joints (default: those of the assembly)",
    )
    parser.add_argument(
        "--joints",
        nargs="*",
        metavar="JOINT",
        help="joints of the serial model; default: the independent ones",
    )
    parser.add_argument("--output", help="file to write, .csv or .npz (default: print CSV)")
    parser.add_argument(
        "--picture",
        help="with a grid of two joints: file for a plot of their torque and velocity limits",
    )


@reports_errors("actuation")
def run(arguments: argparse.Namespace) -> int:
    """Compute, write and draw; the exit code."""
    robot = load(arguments)
    axes = dict(_axis(text) for text in arguments.grid)
    try:
        fixed = positions(arguments.at)
    except ValueError as text:
        raise InputError(f"--at {text}: write JOINT=POSITION, e.g. knee=0.9") from None
    names, poses, found = grid(robot, axes, fixed, arguments.joints)
    if arguments.picture and len(axes) != 2:
        raise InputError(f"--picture: a grid of {len(axes)} joints; give two")
    if arguments.output and arguments.output.endswith(".npz"):
        columns: dict[str, Any] = {"grid_joints": list(names), "poses": poses, **found}
        np.savez_compressed(arguments.output, **columns)
    elif arguments.output:
        with Path(arguments.output).open("w", newline="") as file:
            write_csv(file, names, poses, found)
    else:
        write_csv(sys.stdout, names, poses, found)
    if arguments.picture:
        draw(arguments.picture, axes, found)
    return 0


def grid(
    robot: Robot,
    axes: dict[str, Array],
    fixed: dict[str, float],
    joints: list[str] | None = None,
) -> tuple[tuple[str, ...], Array, dict[str, Array]]:
    """The actuation at every pose of a grid.

    Args:
        robot: the model.
        axes: positions by joint [rad, m].
        fixed: positions of other joints; independent joints that are named nowhere stay where the
            assembly has them.
        joints: of the serial model; None for the independent ones.

    Returns:
        Names of the grid's joints; (N, names) their positions, the last varying fastest; the fields
        of `Actuation` with a leading axis N, and the names of joints and motors.
    """
    count = int(np.prod([len(values) for values in axes.values()]))
    if count > MAX_POSES:
        raise InputError(f"--grid: {count} poses; at most {MAX_POSES}")
    names = tuple(axes)
    poses = np.array(list(itertools.product(*axes.values())))
    given = _completed(robot, {**fixed, **dict.fromkeys(names, 0.0)})
    first = robot.actuation(robot.neutral(), joints)
    rows: dict[str, list[Array]] = {
        field: [] for field in ("W", "reflected_inertia", *PER_JOINT, "condition")
    }
    guess: Array | None = None
    for pose in poses:
        try:
            q = robot.close({**given, **dict(zip(names, pose, strict=True))}, guess)
            found: Actuation | None = robot.actuation(q, joints)
            guess = q
        except (ModelError, InputError):
            robot.determining_joints(given)  # a mistake, and not a pose out of reach, is raised
            found = None
        for field, values in rows.items():
            like = getattr(first, field)
            values.append(np.full_like(like, np.nan) if found is None else getattr(found, field))
    arrays = {field: np.array(values) for field, values in rows.items()}
    arrays["joint_names"] = np.array(first.joint_names)
    arrays["motor_names"] = np.array(first.motor_names)
    return names, poses, arrays


def write_csv(file: Any, names: tuple[str, ...], poses: Array, found: dict[str, Array]) -> None:
    """A row per pose: its joints, then limits per joint, then the reflected inertia's entries."""
    joints = found["joint_names"].tolist()
    writer = csv.writer(file)
    inertias = [(i, j) for i in range(len(joints)) for j in range(i, len(joints))]
    writer.writerow(
        [
            *names,
            *(f"{field}.{joint}" for field in PER_JOINT for joint in joints),
            *(f"reflected_inertia.{joints[i]}.{joints[j]}" for i, j in inertias),
            "condition",
        ]
    )
    for k, pose in enumerate(poses):
        limits = [found[field][k, j] for field in PER_JOINT for j in range(len(joints))]
        inertia = [found["reflected_inertia"][k, i, j] for i, j in inertias]
        numbers = [*pose, *limits, *inertia, found["condition"][k]]
        writer.writerow([f"{x:.9g}" for x in numbers])


def draw(file: str, axes: dict[str, Array], found: dict[str, Array]) -> None:
    """Contours over the two joints of a grid: torque and velocity limits, reflected inertia."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "rbda_ros"
    (first, x), (second, y) = axes.items()
    joints = found["joint_names"].tolist()
    shown = [joint for joint in (first, second) if joint in joints] or joints[:2]
    inertia = np.diagonal(found["reflected_inertia"], axis1=1, axis2=2)
    kinds = (
        ("torque limit [N m]", found["torque_limit"]),
        ("velocity limit [rad/s]", found["velocity_limit"]),
        ("reflected inertia [kg m^2]", inertia),
    )
    figure, panels = plt.subplots(
        len(shown), len(kinds), figsize=(4.0 * len(kinds), 3.2 * len(shown)), squeeze=False
    )
    for row, joint in zip(panels, shown, strict=True):
        for panel, (title, values) in zip(row, kinds, strict=True):
            surface = values[:, joints.index(joint)].reshape(len(x), len(y)).T
            panel.set_title(f"{joint}: {title}", fontsize=8)
            panel.set_xlabel(first)
            panel.set_ylabel(second)
            finite = surface[np.isfinite(surface)]
            if finite.size and np.ptp(finite) > 0.0:
                contours = panel.contour(x, y, np.ma.masked_invalid(surface), 10)
                panel.clabel(contours, fontsize=6)
            else:
                says = f"{finite[0]:.4g} everywhere" if finite.size else "no limit"
                panel.text(0.5, 0.5, says, ha="center", transform=panel.transAxes)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)
    plt.close(figure)


def _completed(robot: Robot, given: dict[str, float]) -> dict[str, float]:
    """Given positions; independent joints that are missing are where the assembly has them."""
    home = robot.independent_position(robot.neutral())[robot.coordinates.base_nq :]
    assembly = dict(zip(robot.independent_joint_names, home.tolist(), strict=True))
    every = {**assembly, **given}
    for name in assembly.keys() - given.keys():
        without = {joint: at for joint, at in every.items() if joint != name}
        if _determined(robot, without):
            every = without
    return every


def _determined(robot: Robot, given: dict[str, float]) -> bool:
    try:
        robot.determining_joints(given)
    except InputError as error:
        if "no moving joint" in str(error):
            raise
        return False
    return True


def _axis(text: str) -> tuple[str, Array]:
    name, _, rest = text.rpartition("=")
    try:
        start, stop, count = rest.split(":")
        values = np.linspace(float(start), float(stop), int(count))
    except ValueError:
        values = np.zeros(0)
    if not name or not values.size or not np.isfinite(values).all():
        raise InputError(f"--grid {text}: write JOINT=FROM:TO:COUNT, e.g. ankle=-0.5:0.5:21")
    return name, values
