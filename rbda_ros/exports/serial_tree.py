"""A tree without loops in place of a robot with loops, for programs that cannot close them.

Its joints are the robot's independent ones. Dependent joints are fixed where the assembly has them,
so that the mass is kept. The inertia that the loops add becomes armature, and the limits of the
motors become limits of the joints. Both depend on the position; a table has their values and W.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description.model import Joint, Limits, RobotDescription
from rbda_ros.description.orientation import to_pose
from rbda_ros.errors import ClosureError, DescriptionError, InputError, Problem
from rbda_ros.robot.robot import Robot
from rbda_ros.spatial import Array

POSES, MAX_PER_JOINT, TURN = 225, 41, np.pi
"""About so many poses of a group of joints in the table; most for one joint; the range of joints
without limits, both ways [rad]."""
SMALL = 1e-6
"""Part of the inertia below which a negative armature is rounding."""


@dataclass(frozen=True, eq=False)
class SerialTree:
    """The tree, the table, and notes.

    Attributes:
        robot: the tree, without constraints.
        table: arrays by name, as `rbda_ros convert --serial` writes them to an npz file. For every
            group k of joints that motors drive together: ``joints_k`` and ``motors_k``, names;
            ``positions_k`` (n, joints); ``W_k`` (n, motors, joints), motor velocities per joint
            velocity; ``inertia_k`` (n, joints), what the loops add on the diagonal of the mass
            matrix [kg m^2, kg]; ``torque_k`` and ``velocity_k`` (n, joints), limits of each joint
            with no torque on, or velocity of, the others. NaN where the loops do not close.
        notes: on what the tree does not have.
    """

    robot: Robot
    table: dict[str, Array]
    notes: tuple[str, ...]


def serial_tree(robot: Robot) -> SerialTree:
    """The tree of a robot's independent joints.

    Armature is the mean over the table of the inertia that the loops add, zero at least. Limits of
    effort and velocity are the least of the table and of the description. Limits of position are
    narrowed to where the loops close with all joints inside their limits.

    Raises:
        DescriptionError: an independent joint hangs on a dependent one, whose motion would be lost.
    """
    description = robot.description
    _check_paths(robot)
    bare = _tree_of(robot, {})
    notes: list[str] = []
    table: dict[str, Any] = {}
    described = {joint.name: joint for joint in description.joints}
    changed: dict[str, Joint] = {}
    home = robot.actuation(robot.neutral())
    for k, (places, motors) in enumerate(home.groups):
        names = [home.joint_names[i] for i in places]
        if any(name not in described for name in names):
            continue  # of several coordinates
        rows = _group_table(robot, bare, names, list(places), list(motors))
        table |= {f"{field}_{k}": values for field, values in rows.items()}
        table[f"joints_{k}"] = np.array(names)
        table[f"motors_{k}"] = np.array([home.motor_names[i] for i in motors])
        for column, name in enumerate(names):
            joint, axis = described[name], rows["positions"][:, column]
            inside = axis[~np.isnan(rows["inertia"][:, column])]
            lower, upper = joint.limits.lower, joint.limits.upper
            limits = Limits(
                float(inside.min()) if np.isfinite(lower) or inside.min() > axis.min() else lower,
                float(inside.max()) if np.isfinite(upper) or inside.max() < axis.max() else upper,
                min(joint.limits.velocity, float(np.nanmin(rows["velocity"][:, column]))),
                min(joint.limits.effort, float(np.nanmin(rows["torque"][:, column]))),
            )
            added = float(np.nanmean(rows["inertia"][:, column]))
            if added < -SMALL * float(np.nanmax(np.abs(rows["inertia"][:, column]))):
                notes.append(
                    f"{name}: links on dependent joints count with {-added:.2g} more than they do"
                    " in the loops; armature cannot be negative"
                )
            changed[name] = replace(joint, limits=limits, armature=max(added, 0.0))
    return SerialTree(_tree_of(robot, changed), table, (*notes, *_lost_springs(robot, changed)))


def _check_paths(robot: Robot) -> None:
    """That what moves an independent joint's link is independent too."""
    independent = {name.rsplit(".", 1)[0] for name in robot.independent_joint_names}
    on = {joint.child: joint for joint in robot.description.joints}
    problems = []
    for name in sorted(independent):
        link = next(j.parent for j in robot.description.joints if j.name == name)
        while link in on:
            before = on[link]
            if before.type != "fixed" and before.name not in independent:
                problems.append(
                    Problem(
                        f"joint {name}",
                        f"hangs on {before.name}, which follows from the loops",
                        "choose independent_joints in the loop file so that none does",
                    )
                )
                break
            link = before.parent
    if problems:
        raise DescriptionError(problems)


def _tree_of(robot: Robot, changed: dict[str, Joint]) -> Robot:
    """The robot without loops, with some joints changed and dependent ones fixed."""
    description, q = robot.description, robot.neutral()
    independent = {name.rsplit(".", 1)[0] for name in robot.independent_joint_names}
    joints = []
    for joint in description.joints:
        if joint.type == "fixed" or joint.name in independent:
            joints.append(changed.get(joint.name, joint))
            continue
        pose: Any = np.linalg.solve(
            robot.frame_pose(q, joint.parent), robot.frame_pose(q, joint.child)
        )
        origin = to_pose(pose[:3, :3], pose[:3, 3])
        joints.append(Joint(joint.name, "fixed", joint.parent, joint.child, origin))
    moving = tuple(joint.name for joint in joints if joint.type != "fixed")
    serial = RobotDescription(
        f"{description.name}_serial",
        description.links,
        tuple(joints),
        actuated_joints=moving,
        root_pose=description.root_pose,
        springs=tuple(
            s for s in description.springs if s.terms and set(moving).issuperset(s.terms)
        ),
        digits=description.digits,
    )
    x, y, z = robot.gravity
    return Robot(build_cluster_tree(serial, robot.floating_base, (x, y, z)))


def _group_table(
    robot: Robot, bare: Robot, names: Sequence[str], joints: list[int], motors: list[int]
) -> dict[str, Array]:
    """Rows of the table for joints of one group, the others where the assembly has them."""
    layout, limits = robot.coordinates, robot.limits
    home = np.clip(robot.neutral(), limits.lower, limits.upper)
    at = {
        name: float(home[layout.scalar_positions[name]])
        for name in robot.independent_joint_names
        if name in layout.scalar_positions
    }
    axes = [_axis(robot, name, at[name], len(names)) for name in names]
    positions = np.array(list(itertools.product(*axes)))
    count = len(positions)
    rows = {
        "positions": positions,
        "W": np.full((count, len(motors), len(joints)), np.nan),
        "inertia": np.full((count, len(joints)), np.nan),
        "torque": np.full((count, len(joints)), np.nan),
        "velocity": np.full((count, len(joints)), np.nan),
    }
    order = [robot.independent_joint_names.index(name) for name in bare.independent_joint_names]
    base = layout.base_nv
    guess: Array | None = None
    for i, position in enumerate(positions):
        try:
            q = robot.close({**at, **dict(zip(names, position, strict=True))}, guess)
            if not robot.within_limits(q):
                continue
            found, guess = robot.actuation(q), q
            H = np.diag(robot.mass_matrix(q))[base:]
        except (ClosureError, InputError):
            continue
        tree_q = bare.neutral()
        tree_q[len(tree_q) - len(order) :] = robot.independent_position(q)[-len(order) :][order]
        tree_H = np.empty(len(order))
        tree_H[order] = np.diag(bare.mass_matrix(tree_q))[base:]
        rows["W"][i] = found.W[np.ix_(motors, joints)]
        rows["inertia"][i] = (H - tree_H)[joints]
        rows["torque"][i] = found.torque_limit_alone[joints]
        rows["velocity"][i] = found.velocity_limit_alone[joints]
    if np.isnan(rows["inertia"]).all():
        raise DescriptionError(
            [Problem(f"joint {names[0]}", "no position inside the limits", "widen the limits")]
        )
    return rows


def _axis(robot: Robot, name: str, home: float, of: int) -> Array:
    """Positions of a joint in the table."""
    place = robot.coordinates.scalar_positions[name]
    lower, upper = float(robot.limits.lower[place]), float(robot.limits.upper[place])
    lower = lower if np.isfinite(lower) else home - TURN
    upper = upper if np.isfinite(upper) else home + TURN
    return np.linspace(lower, upper, max(3, min(MAX_PER_JOINT, round(POSES ** (1.0 / of)))))


def _lost_springs(robot: Robot, kept: Collection[str]) -> tuple[str, ...]:
    springs = robot.description.springs
    lost = [spring.name for spring in springs if not set(kept).issuperset(spring.terms or [""])]
    return (f"springs that are left out: {', '.join(lost)}",) if lost else ()
