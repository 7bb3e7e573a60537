"""Efforts along a whole trajectory; and motion and efforts of some joints into those of others.

Along a trajectory the loops are closed from point to point, then all is computed in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.control.joint_map import JointMap, Vector, listed, map_joints
from rbda_ros.control.rejections import Reason, RefusalError, refusal
from rbda_ros.errors import InputError, ModelError
from rbda_ros.node import messages
from rbda_ros.node.messages import Call
from rbda_ros.robot import Robot
from rbda_ros.robot.conversion import JointMotion
from rbda_ros.robot.state import State

Solved = TypeVar("Solved")
Columns = dict[str, Vector]
"""Numbers of all points, by joint name (N,) or by the field of a point (N, joints)."""

MAX_POINTS = 50_000
"""Points of one trajectory; the memory for more is not available beside the stream."""
IN_ONE_BATCH = 4096
"""Points whose efforts are computed together."""
AT_ONCE = 500
"""Points whose loops are closed before the service looks whether it was cancelled."""


def trajectory_inverse_dynamics(call: Call, request: Any, response: Any) -> None:
    """Answer with the trajectory of the actuated joints, efforts filled in."""
    robot, points = call.robot, _checked_points(request.trajectory)
    joints = map_joints(robot, request.trajectory.joint_names)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    pose, twist, acceleration = _base_motion(robot, request, len(points))
    positions, velocities, accelerations = _joint_motion(points, joints, request.differentiate)
    times = [point.time_from_start for point in points]
    points.clear()  # they are ten times as large as the numbers in them

    q = _closed(robot, joints, positions, pose)
    friction = "friction" in call.settings.effort_terms

    def efforts(part: slice) -> tuple[Columns, Vector]:
        base = [None if rows is None else rows[part] for rows in (twist, acceleration)]
        state = robot.state(q[part])
        state = messages.moving(robot, joints, state, velocities[part], base[0])
        ydd = messages.acceleration_vector(
            robot, joints, state, state.yd, accelerations[part], base[1]
        )
        efforts, tau = robot.inverse_dynamics_efforts(
            state, state.yd, ydd, wrenches, friction=friction
        )
        if not np.isfinite(efforts).all():
            raise InputError("no finite efforts give this motion")
        fields = _of_actuated(robot, state, ydd) | {"effort": efforts}
        return fields, tau[:, : robot.coordinates.base_nv]

    response.trajectory = JointTrajectory(
        header=request.trajectory.header, joint_names=list(robot.actuated_joint_names)
    )
    for start in range(0, len(times), IN_ONE_BATCH):
        check_cancelled()
        stop = min(start + IN_ONE_BATCH, len(times))
        fields, base_wrenches = _naming_the_point(efforts, start, stop)
        response.trajectory.points += _points(fields, times[start:stop])
        if robot.floating_base:
            response.base_wrenches += [messages.wrench(row) for row in base_wrenches]


def _checked_points(trajectory: JointTrajectory) -> Any:
    points = trajectory.points
    if not points:
        raise RefusalError(Reason.WRONG_SIZE, "trajectory has no points; give at least one")
    messages.check_count("trajectory.points", points, MAX_POINTS)
    return points


def _closed(robot: Robot, joints: JointMap, positions: Vector, pose: Vector | None) -> Vector:
    """Spanning positions (N, nq), loops closed along the motion."""
    q = np.empty((len(positions), robot.nq))
    start, step = 0, AT_ONCE
    while start < len(q):
        check_cancelled()
        part = slice(start, start + step)
        base, guess = None if pose is None else pose[part], q[start - 1] if start else None
        try:
            q[part] = messages.closed_position(robot, joints, positions[part], base, guess)
        except (InputError, ModelError) as error:
            if step == 1:
                raise _at_point(start, error) from error
            step = 1  # to find the point
        else:
            start += step
    return q


def _naming_the_point(solve: Callable[[slice], Solved], start: int, stop: int) -> Solved:
    """Solve some points at once; if that is rejected, the error is that of the first such point."""
    try:
        return solve(slice(start, stop))
    except (InputError, ModelError) as error:
        rejected: Exception = error
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            solve(slice(start, middle))
            start = middle
        except (InputError, ModelError):
            stop = middle
    try:
        solve(slice(start, stop))
    except (InputError, ModelError) as error:
        rejected = error
    raise _at_point(start, rejected) from rejected


def _at_point(k: int, error: Exception) -> RefusalError:
    return RefusalError(refusal(error).reason, f"points[{k}]: {error}")


def _joint_motion(
    points: Sequence[Any], joints: JointMap, differentiate: bool
) -> tuple[Vector, Vector, Vector]:
    """Positions, velocities and accelerations (N, size) in the order of the message."""
    size = joints.size
    positions = _rows("positions", [point.positions for point in points], size)
    velocities = _rows_or_none("velocities", [point.velocities for point in points], size)
    accelerations = _rows_or_none("accelerations", [point.accelerations for point in points], size)
    if differentiate and (velocities is None or accelerations is None):
        from scipy.interpolate import CubicSpline  # not above: it takes 0.2 s to import

        times = _times(points)
        if velocities is None:
            # At rest at both ends, as a trajectory that says only positions means it.
            spline = CubicSpline(times, positions, bc_type="clamped")
            velocities, derived = spline(times, 1), spline(times, 2)
        else:
            derived = CubicSpline(times, velocities)(times, 1)
        accelerations = derived if accelerations is None else accelerations
    zero = np.zeros_like(positions)
    return (
        positions,
        zero if velocities is None else velocities,
        zero if accelerations is None else accelerations,
    )


def _rows(what: str, values: Sequence[Any], size: int, listing: str = "") -> Vector:
    """The numbers (N, size) of a field of every point, finite; messages may list the joints."""
    for k, given in enumerate(values):
        if len(given) != size:
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"points[{k}].{what} has {len(given)} numbers for {size} joints{listing}; "
                "give one per joint",
            )
    rows = np.frombuffer(b"".join(values)).reshape(-1, size)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        k = int(np.argmin(finite))
        raise RefusalError(
            Reason.NOT_FINITE, f"points[{k}].{what} is not finite: {rows[k].tolist()}"
        )
    return rows


def _rows_or_none(what: str, values: Sequence[Any], size: int) -> Vector | None:
    """As ``_rows``; None where no point has any."""
    return _rows(what, values, size) if any(len(given) for given in values) else None


def _times(points: Sequence[Any]) -> Vector:
    stamps = (point.time_from_start for point in points)
    times = np.array([stamp.sec + 1e-9 * stamp.nanosec for stamp in stamps])
    if len(times) < 2 or (np.diff(times) <= 0.0).any():
        k = int(np.argmax(np.diff(times) <= 0.0)) + 1 if len(times) > 1 else 0
        raise RefusalError(
            Reason.WRONG_SIZE,
            f"points[{k}].time_from_start: differentiate needs two points or more, "
            "each later than the one before",
        )
    return times


def _base_motion(robot: Robot, request: Any, count: int) -> tuple[Vector | None, ...]:
    """Pose (N, 7), twist and acceleration (N, 6) of the floating base; None if it is fixed."""
    if not robot.floating_base:
        return None, None, None
    fields: dict[str, tuple[Callable[[str, Any], Vector], Vector]] = {
        "base_poses": (messages.base_position, np.array([0.0] * 6 + [1.0])),
        "base_twists": (messages.six, np.zeros(6)),
        "base_accelerations": (messages.six, np.zeros(6)),
    }
    motion = []
    for name, (read, absent) in fields.items():
        given = getattr(request, name)
        if given and len(given) != count:
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"{name} has {len(given)} entries for {count} points; give one per point, or none",
            )
        rows = [read(f"{name}[{k}]", message) for k, message in enumerate(given)]
        motion.append(np.array(rows) if rows else np.tile(absent, (count, 1)))
    return tuple(motion)


def _of_actuated(robot: Robot, state: State, ydd: Vector) -> Columns:
    """Positions, velocities and accelerations (N, actuated) of the actuated joints."""
    actuated = list(robot.actuated_coordinates)
    in_q = robot.coordinates.scalar_positions
    names = robot.actuated_joint_names
    # A coordinate of a joint that has several has a velocity of its own, but no position.
    single = all(name in in_q for name in names)
    return {
        "positions": state.q[:, [in_q[name] for name in names] if single else []],
        "velocities": robot.spanning_velocity(state, state.yd)[:, actuated],
        "accelerations": robot.spanning_acceleration(state, state.yd, ydd)[:, actuated],
    }


def _points(fields: Columns, times: Sequence[Any]) -> list[JointTrajectoryPoint]:
    """The points of a trajectory whose fields have these numbers (N, joints)."""
    return [
        JointTrajectoryPoint(
            time_from_start=time,
            **{field: messages.sequence(rows[k]) for field, rows in fields.items()},
        )
        for k, time in enumerate(times)
    ]


ROUNDING = 1e-9
"""How far beyond a limit does not count [rad, m, and their rates]."""
FIELDS = ("positions", "velocities", "accelerations", "effort")


def convert_state(call: Call, request: Any, response: Any) -> None:
    """Answer with the motion and efforts of the target joints."""
    robot = call.robot
    joints = map_joints(robot, request.joint_names)
    position = messages.numbers("position", request.position, joints.size)
    at = joints.by_name(position)
    given: list[Columns | None] = []
    for name in ("velocity", "acceleration", "effort"):
        values = getattr(request, name)
        known = messages.numbers(name, values, joints.size) if len(values) else None
        given.append(None if known is None else joints.by_name(known))
    out = robot.convert(at, *given, targets=request.target_joint_names or None)
    messages.check_agreement(robot, at, out.q, call.settings.measurement_tolerance)
    response.joint_names = list(out.joint_names)
    for name in ("position", "velocity", "acceleration", "effort"):
        setattr(response, name, messages.sequence(np.ascontiguousarray(getattr(out, name))))


def convert_trajectory(call: Call, request: Any, response: Any) -> None:
    """Answer with the trajectory of the target joints, within limits."""
    robot, points = call.robot, _checked_points(request.trajectory)
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
    out, effort = _converted(call, given, targets, request.fill_effort)
    violations = limit_violations(robot, out, effort)
    response.violations = violations
    if violations and not request.allow_violations:
        raise LimitError(violations)
    present = [each is not None for each in given[:3]]
    present.append(request.fill_effort or given[3] is not None)
    arrays = (out.position, out.velocity, out.acceleration, effort)
    fields = dict(compress(zip(FIELDS, arrays, strict=True), present))
    response.trajectory = JointTrajectory(
        header=request.trajectory.header,
        joint_names=list(out.joint_names),
        points=_points(fields, [point.time_from_start for point in points]),
    )


class LimitError(InputError):
    """Limits that a motion violates.

    Attributes:
        violations: a line for each.
    """

    def __init__(self, violations: Sequence[str]) -> None:
        self.violations = list(violations)
        super().__init__(f"limits violated: {'; '.join(violations)}")


def _converted(
    call: Call,
    given: Sequence[Columns | None],
    targets: list[str],
    fill_effort: bool,
) -> tuple[JointMotion, Vector]:
    """The motion of the targets, and efforts (N, targets) on them; all points in one batch."""
    robot, settings = call.robot, call.settings

    def solve(points: slice) -> tuple[JointMotion, Vector]:
        part: list[Any] = [
            None if columns is None else {name: c[points] for name, c in columns.items()}
            for columns in given
        ]
        out = robot.convert(*part, targets=targets)
        messages.check_agreement(robot, part[0] or {}, out.q, settings.measurement_tolerance)
        if not fill_effort:
            return out, out.effort
        state = robot.state(out.q)
        none = np.zeros(robot.ny)
        yd = none if part[1] is None else robot.independent_velocity(state, part[1])
        ydd = none if part[2] is None else robot.independent_acceleration(state, yd, part[2])
        tau = robot.inverse_dynamics(state, yd, ydd, friction="friction" in settings.effort_terms)
        force = {name: tau[..., k] for k, name in enumerate(robot.independent_joint_names)}
        return out, robot.convert(part[0], None, None, force, targets=targets).effort

    positions = given[0] or {}
    return _naming_the_point(solve, 0, len(next(iter(positions.values()))))


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
    rows = _rows(field, values, len(names), f" ({listed(names)})")
    return {name: rows[:, j] for j, name in enumerate(names)}
