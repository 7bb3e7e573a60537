"""Controls that move a robot: sliders for its independent joints, or for its motors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.errors import InputError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

FREE_TURN = math.pi
"""How far a joint that turns without bound goes to either side [rad]."""
FREE_SLIDE = 0.3
"""How far one that slides without bound goes [m]."""


@dataclass(frozen=True)
class Slider:
    """One coordinate that can be moved.

    Attributes:
        name: the joint, with a suffix where it has several coordinates.
        joint: the joint.
        lower, upper: of the position [rad, m].
        unit: rad or m.
    """

    name: str
    joint: str
    lower: float
    upper: float
    unit: str


@dataclass(frozen=True)
class Drive:
    """A set of sliders that determine the robot.

    Attributes:
        sliders: in model order.
        note: what to know about them; empty for nothing.
    """

    sliders: tuple[Slider, ...]
    note: str = ""


def drives(robot: Robot) -> dict[str, Drive]:
    """``joints``, the independent ones; and ``motors``, the actuated ones, where they differ."""
    joints = _independent(robot)
    found = {"joints": joints}
    motors, note = _motor_names(robot)
    if set(motors) != {slider.joint for slider in joints.sliders}:
        found["motors"] = Drive(_motors(robot, joints, motors), note)
    return found


def _independent(robot: Robot) -> Drive:
    """Sliders of the joints all of whose coordinates are independent."""
    chosen = set(robot.independent_joint_names)
    left_out: list[str] = []
    sliders: list[Slider] = []
    bodies = robot.spanning_tree.bodies[1 if robot.floating_base else 0 :]
    for body in bodies:
        inside = [name in chosen for name in body.velocity_names]
        if all(inside):
            sliders += _sliders(robot, body)
        elif any(inside):
            left_out.append(body.joint.name)
    note = ""
    if left_out:
        note = (
            f"{', '.join(left_out)}: only part of it is independent, so no slider can move it;"
            " list other independent_joints"
        )
    return Drive(tuple(sliders), note)


def _sliders(robot: Robot, body: Body) -> Iterable[Slider]:
    joint = body.joint
    if body.model.nq != 1:
        for name, coordinate in zip(body.velocity_names, body.model.coordinates, strict=True):
            turns = coordinate in ("wx", "wy", "wz", "yaw")
            way = FREE_TURN if turns else FREE_SLIDE
            yield Slider(name, joint.name, -way, way, "rad" if turns else "m")
        return
    home = float(robot.neutral()[robot.coordinates.scalar_positions[joint.name]])
    slides = joint.type == "prismatic"
    lower, upper = joint.limits.lower, joint.limits.upper
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        way = FREE_SLIDE if slides else FREE_TURN
        lower, upper = home - way, home + way
    yield Slider(
        joint.name, joint.name, min(lower, home), max(upper, home), "m" if slides else "rad"
    )


def _motor_names(robot: Robot) -> tuple[tuple[str, ...], str]:
    """The actuated joints where they determine their cluster, else its independent ones."""
    names: list[str] = []
    instead: list[str] = []
    joint_of = {n: b.joint.name for b in robot.spanning_tree.bodies for n in b.velocity_names}
    everything = [joint_of.get(n, n) for n in robot.independent_joint_names]
    actuated = _once(joint_of.get(n, n) for n in robot.actuated_joint_names)
    for cluster in robot.clusters:
        own = [joint_of.get(n, n) for n in cluster.independent_joints]
        motors = [n for n in actuated if n in cluster.joints]
        others = [n for n in everything if n not in own]
        try:
            chosen = robot.determining_joints([*motors, *others])
            names += [n for n in chosen if n in motors]
        except InputError:
            names += _once(own)
            instead += _once(own)
    note = ""
    if instead:
        note = f"{', '.join(instead)}: no motor determines them, so they keep their own sliders"
    return tuple(names), note


def _motors(robot: Robot, joints: Drive, motors: Sequence[str]) -> tuple[Slider, ...]:
    """Their ranges are where the ranges of the independent joints take them, to first order."""
    own = {slider.name: slider for slider in joints.sliders}
    G = robot.kernel("velocity_map").call(robot.neutral())[0].reshape(robot.nv, robot.ny)
    home, place = robot.neutral(), robot.coordinates.scalar_positions
    names = [robot.coordinate_names[j] for j in robot.independent_coordinates]
    sliders = []
    for body in robot.spanning_tree.bodies:
        name = body.joint.name
        if name not in motors:
            continue
        if name not in place or name in own:
            sliders += [own[n] for n in body.velocity_names if n in own]
            continue
        (slider,) = _sliders(robot, body)
        if not math.isfinite(body.joint.limits.upper - body.joint.limits.lower):
            row = G[robot.coordinates.velocities[name].start]
            lower, upper = _reach(row, [own.get(n) for n in names], names, home, place)
            at = float(home[place[name]])
            if upper > lower:
                slider = replace(slider, lower=at + lower, upper=at + upper)
        sliders.append(slider)
    return tuple(sliders)


def _reach(
    row: Array,
    ranges: Sequence[Slider | None],
    names: Sequence[str],
    home: Array,
    place: dict[str, int],
) -> tuple[float, float]:
    """How far ``row @ (y - home)`` goes down and up as y goes through its ranges."""
    lower = upper = 0.0
    for slope, slider, name in zip(row, ranges, names, strict=True):
        if slider is not None and name in place:
            at = home[place[name]]
            ends = slope * (slider.lower - at), slope * (slider.upper - at)
            lower, upper = lower + min(ends), upper + max(ends)
    return float(lower), float(upper)


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
