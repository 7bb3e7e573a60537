"""Motion and efforts of some joints into those of others, for a state or a whole trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros.control.joint_map import Vector, listed, map_joints
from rbda_ros.control.rejections import Reason, RefusalError, refusal
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, ModelError
from rbda_ros.node import messages
from rbda_ros.node.services.trajectory_service import MAX_POINTS
from rbda_ros.robot import Robot
from rbda_ros.robot.conversion import JointMotion

ROUNDING = 1e-9
"""How far beyond a limit does not count [rad, m, and their rates]."""
FIELDS = ("positions", "velocities", "accelerations", "effort")

Columns = dict[str, Vector]


def convert_state(robot: Robot, settings: Settings, request: Any, response: Any) -> None:
    """Answer with the motion and efforts of the target joints."""
    joints = map_joints(robot, request.joint_names)
    position = messages.numbers("position", request.position, joints.size)
    at = joints.by_name(position)
    given: list[Columns | None] = []
    for name in ("velocity", "acceleration", "effort"):
        values = getattr(request, name)
        known = messages.numbers(name, values, joints.size) if len(values) else None
        given.append(None if known is None else joints.by_name(known))
    out = robot.convert(at, *given, targets=request.target_joint_names or None)
    messages.check_agreement(robot, at, out.q, settings.measurement_tolerance)
    response.joint_names = list(out.joint_names)
    for name in ("position", "velocity", "acceleration", "effort"):
        setattr(response, name, messages.sequence(np.ascontiguousarray(getattr(out, name))))


def convert_trajectory(robot: Robot, settings: Settings, request: Any, response: Any) -> None:
    """Answer with the trajectory of the target joints, within limits."""
    points = request.trajectory.points
    if not points:
        raise RefusalError(Reason.WRONG_SIZE, "trajectory has no points; give at least one")
    messages.check_count("trajectory.points", points, MAX_POINTS)
    if request.fill_effort and robot.floating_base:
        raise InputError(
            "fill_effort: efforts depend on the motion of the floating base, which is not given; "
            "ask trajectory_inverse_dynamics"
        )
    names = list(request.trajectory.joint_names) or list(robot.independent_joint_names)
    map_joints(robot, names)
    given = [_columns(field, points, names) for field in FIELDS]
    targets = list(request.target_joint_names) or list(robot.actuated_joint_names)
    if request.fill_effort:
        given[3] = None
    out, effort = _converted(robot, settings, given, targets, request.fill_effort)
    violations = limit_violations(robot, out, effort)
    response.violations = violations
    if violations and not request.allow_violations:
        raise LimitError(violations)
    present = [True, given[1] is not None, given[2] is not None]
    present.append(request.fill_effort or given[3] is not None)
    arrays = (out.position, out.velocity, out.acceleration, effort)
    response.trajectory = _trajectory(request.trajectory, out.joint_names, arrays, present)


class LimitError(InputError):
    """Limits that a motion violates.

    Attributes:
        violations: a line for each.
    """

    def __init__(self, violations: Sequence[str]) -> None:
        self.violations = list(violations)
        super().__init__(f"limits violated: {'; '.join(violations)}")


def _converted(
    robot: Robot,
    settings: Settings,
    given: Sequence[Columns | None],
    targets: list[str],
    fill_effort: bool,
) -> tuple[JointMotion, Vector]:
    """The motion of the targets, and efforts (N, targets) on them; all points in one batch."""

    def solve(start: int, stop: int, guess: Vector | None) -> tuple[JointMotion, Vector]:
        part: list[Any] = [
            None if columns is None else {name: c[start:stop] for name, c in columns.items()}
            for columns in given
        ]
        out = robot.convert(*part, targets=targets, guess=guess)
        messages.check_agreement(robot, part[0] or {}, out.q, settings.measurement_tolerance)
        if not fill_effort:
            return out, out.effort
        state = robot.state(out.q)
        none = np.zeros(robot.ny)
        yd = none if part[1] is None else robot.independent_velocity(state, part[1])
        ydd = none if part[2] is None else robot.independent_acceleration(state, yd, part[2])
        tau = robot.inverse_dynamics(state, yd, ydd, friction="friction" in settings.terms)
        force = {name: tau[..., k] for k, name in enumerate(robot.independent_joint_names)}
        return out, robot.convert(part[0], None, None, force, targets=targets, guess=guess).effort

    first = given[0] or {}
    count = len(next(iter(first.values())))
    try:
        return solve(0, count, None)
    except (InputError, ModelError) as error:
        raise _first_refused(solve, count, error) from error


def _first_refused(solve: Any, count: int, error: Exception) -> RefusalError:
    """The error of the first point that is refused, by halving."""
    start, stop = 0, count
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            solve(start, middle, None)
            start = middle
        except (InputError, ModelError) as found:
            stop, error = middle, found
    return RefusalError(refusal(error).reason, f"points[{start}]: {error}")


def limit_violations(robot: Robot, out: JointMotion, effort: Vector) -> list[str]:
    """A line for each limit of the description that a motion (N, joints) violates."""
    lines = []
    described = {joint.name: joint.limits for joint in robot.description.joints}
    for name, place in robot.coordinates.scalar_positions.items():
        limits, column = described.get(name), out.q[:, place]
        if limits is not None:
            over = np.maximum(column - limits.upper, limits.lower - column)
            if over.max() > ROUNDING:
                k = int(over.argmax())
                bounds = f"{limits.lower:g} to {limits.upper:g}"
                lines.append(f"points[{k}]: position of {name} is {column[k]:.6g}, limits {bounds}")
    for what, rows in (("velocity", out.velocity), ("effort", effort)):
        for j, name in enumerate(out.joint_names):
            size = np.abs(rows[:, j])
            limit = getattr(described[name], what) if name in described else np.inf
            if size.max() > limit + ROUNDING:
                k = int(size.argmax())
                lines.append(f"points[{k}]: {what} of {name} is {rows[k, j]:.6g}, limit {limit:g}")
    return lines


def _columns(field: str, points: Sequence[Any], names: list[str]) -> Columns | None:
    """A field of every point, by joint name (N,); None where no point has it."""
    values = [getattr(point, field) for point in points]
    if field != "positions" and not any(len(given) for given in values):
        return None
    for k, given in enumerate(values):
        if len(given) != len(names):
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"points[{k}].{field} has {len(given)} numbers for {len(names)} joints "
                f"({listed(names)}); give one per joint",
            )
    rows = np.frombuffer(b"".join(values)).reshape(len(values), -1)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        k = int(np.argmin(finite))
        raise RefusalError(
            Reason.NOT_FINITE, f"points[{k}].{field} is not finite: {rows[k].tolist()}"
        )
    return {name: rows[:, j] for j, name in enumerate(names)}


def _trajectory(
    asked: JointTrajectory,
    names: Sequence[str],
    arrays: Sequence[Vector],
    present: Sequence[bool],
) -> JointTrajectory:
    fields = [
        (field, np.ascontiguousarray(rows))
        for field, rows, there in zip(FIELDS, arrays, present, strict=True)
        if there
    ]
    answer = JointTrajectory(header=asked.header, joint_names=list(names))
    for k, point in enumerate(asked.points):
        converted = JointTrajectoryPoint(time_from_start=point.time_from_start)
        for field, rows in fields:
            setattr(converted, field, messages.sequence(rows[k]))
        answer.points.append(converted)
    return answer
