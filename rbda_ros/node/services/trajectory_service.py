"""Efforts along a whole trajectory: loops closed along it, then all computed in one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from geometry_msgs.msg import Wrench
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.control.joint_map import JointMap, Vector, map_joints
from rbda_ros.control.rejections import Reason, RefusalError, refusal
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, ModelError
from rbda_ros.node import messages
from rbda_ros.robot import Robot
from rbda_ros.robot.state import State

Solved = TypeVar("Solved")

MAX_POINTS = 50_000
"""Points of one trajectory; beside the stream there is no room for more."""
IN_ONE_BATCH = 4096
"""Points whose efforts are computed together."""
AT_ONCE = 500
"""Points whose loops are closed before the node looks whether it is to end."""


def trajectory_inverse_dynamics(
    robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with the trajectory of the actuated joints, efforts filled in."""
    points = request.trajectory.points
    if not points:
        raise RefusalError(Reason.WRONG_SIZE, "trajectory has no points; give at least one")
    messages.check_count("trajectory.points", points, MAX_POINTS)
    joints = map_joints(robot, request.trajectory.joint_names)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    pose, twist, acceleration = _base_motion(robot, request, len(points))
    positions, velocities, accelerations = _joint_motion(points, joints, request.differentiate)
    times = [point.time_from_start for point in points]
    points.clear()  # they are ten times as large as the numbers in them

    q = _closed(robot, joints, positions, pose)
    friction = "friction" in settings.terms

    def efforts(part: slice) -> _Motion:
        base = [None if rows is None else rows[part] for rows in (twist, acceleration)]
        state = robot.state(q[part])
        state = messages.moving(robot, joints, state, velocities[part], base[0])
        ydd = messages.acceleration_vector(robot, joints, state, accelerations[part], base[1])
        efforts, tau = robot.inverse_dynamics_efforts(
            state, state.yd, ydd, wrenches, friction=friction
        )
        if not np.isfinite(efforts).all():
            raise InputError("no finite efforts give this motion")
        return _of_actuated(robot, state, ydd, efforts, tau)

    response.trajectory = JointTrajectory(
        header=request.trajectory.header, joint_names=list(robot.actuated_joint_names)
    )
    for start in range(0, len(times), IN_ONE_BATCH):
        check_cancelled()
        stop = min(start + IN_ONE_BATCH, len(times))
        motion = _naming_the_point(efforts, start, stop)
        response.trajectory.points += _points(motion, times[start:stop])
        if robot.floating_base:
            response.base_wrenches += _wrenches(motion)


class _Motion(NamedTuple):
    """Of the actuated joints (N, actuated), and the wrench on a floating base (N, 6 or 0)."""

    position: Vector
    velocity: Vector
    acceleration: Vector
    effort: Vector
    base_wrench: Vector


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
    """Solve some points at once; if that is refused, find the first point that is."""
    try:
        return solve(slice(start, stop))
    except (InputError, ModelError):
        pass
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            solve(slice(start, middle))
            start = middle
        except (InputError, ModelError):
            stop = middle
    try:
        return solve(slice(start, stop))
    except (InputError, ModelError) as error:
        raise _at_point(start, error) from error


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


def _rows(what: str, values: Sequence[Any], size: int) -> Vector:
    """The numbers (N, size) of a field of every point, finite."""
    for k, given in enumerate(values):
        if len(given) != size:
            raise RefusalError(
                Reason.WRONG_SIZE,
                f"points[{k}].{what} has {len(given)} numbers for {size} joints; "
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


def _of_actuated(robot: Robot, state: State, ydd: Vector, effort: Vector, tau: Vector) -> _Motion:
    actuated = list(robot.actuated_coordinates)
    in_q = robot.coordinates.scalar_positions
    names = robot.actuated_joint_names
    # A coordinate of a joint that has several has a velocity of its own, but no position.
    single = all(name in in_q for name in names)
    columns = [in_q[name] for name in names] if single else []
    return _Motion(
        state.q[:, columns],
        robot.spanning_velocity(state, state.yd)[:, actuated],
        robot.spanning_acceleration(state, state.yd, ydd)[:, actuated],
        effort,
        tau[:, : robot.coordinates.base_nv],
    )


def _points(motion: _Motion, times: Sequence[Any]) -> list[JointTrajectoryPoint]:
    return [
        JointTrajectoryPoint(
            positions=messages.sequence(motion.position[k]),
            velocities=messages.sequence(motion.velocity[k]),
            accelerations=messages.sequence(motion.acceleration[k]),
            effort=messages.sequence(motion.effort[k]),
            time_from_start=time,
        )
        for k, time in enumerate(times)
    ]


def _wrenches(motion: _Motion) -> list[Wrench]:
    wrenches = [Wrench() for _ in motion.base_wrench]
    for wrench, row in zip(wrenches, motion.base_wrench, strict=True):
        messages.fill(wrench.force, wrench.torque, row)
    return wrenches
