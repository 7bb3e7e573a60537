"""Joint names and ROS messages to the vectors of the model, and back."""

from __future__ import annotations

import array
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Accel, Pose, Twist, Vector3, Wrench, WrenchStamped
from geometry_msgs.msg import Point as Point3

from rbda_ros.control.joint_map import JointMap, Vector, map_joints
from rbda_ros.control.rejections import Reason, RefusalError
from rbda_ros.control.settings import Settings, end_effectors
from rbda_ros.control.stream import LastState
from rbda_ros.engine import core
from rbda_ros.errors import MAX_LISTED, ClosureError, InputError, listed
from rbda_ros.msg import State as StateMessage
from rbda_ros.robot import Robot
from rbda_ros.robot.inputs import LARGEST, QUATERNION_TOLERANCE, FrameName, unit
from rbda_ros.robot.state import State

NOT_FINITE_ANSWER = "the answer is not finite: the state or the forces given are too large"

LatestState = Callable[[Robot], LastState]
"""The latest state of a robot; raises InputError where there is no fresh one."""


class Call(NamedTuple):
    """The model and settings that answer one request: the node may get others meanwhile.

    Attributes:
        robot: the model.
        settings: parameters of the node.
        latest: the latest state of the robot, for requests with an empty state.
        node: the node.
    """

    robot: Robot
    settings: Settings
    latest: LatestState
    node: Any


def read_state(call: Call, message: StateMessage) -> State:
    """The state of a ``rbda_ros/State``, checked and closed; an empty one is the latest.

    Raises:
        RefusalError, InputError, ClosureError: the message does not say a state of this robot.
    """
    q, yd, _ = read_motion(call, message)
    return call.robot.state(q, yd)


def read_motion(call: Call, message: StateMessage) -> tuple[State | Vector, Vector, JointMap]:
    """Position and velocity of a ``rbda_ros/State`` for methods of Robot; and its joints.

    If the message names just the independent joints, these are the position and the velocity of y
    (ny,), and the method closes the loops. Otherwise they are a state, and the velocity in it.

    Raises:
        RefusalError, InputError, ClosureError: the message does not say a state of this robot.
    """
    robot = call.robot
    joints = map_joints(robot, message.joint_names)
    if joints.size and not (
        len(message.joint_names) or len(message.position) or len(message.velocity)
    ):
        _check_base_left_alone(message)
        state = _latest_state(robot, call.latest(robot))
        return state, state.yd, joints
    pose = base_position("base_pose", message.base_pose) if robot.floating_base else None
    twist = six("base_twist", message.base_twist) if robot.floating_base else None
    position = numbers("position", message.position, joints.size)
    if joints.exact:
        velocity = numbers_or_zero("velocity", message.velocity, joints.size)
        return (
            with_base(pose, joints.pick(position)),
            with_base(twist, joints.pick(velocity)),
            joints,
        )
    state = robot.state(closed_position(robot, joints, position, pose))
    check_agreement(robot, joints.by_name(position), state.q, call.settings.measurement_tolerance)
    velocity = numbers_or_zero("velocity", message.velocity, joints.size)
    state = moving(robot, joints, state, velocity, twist)
    return state, state.yd, joints


def _latest_state(robot: Robot, last: LastState) -> State:
    """The state that the stream answered last."""
    base, of_joints = np.split(last.velocity, [robot.coordinates.base_nv])
    joints = map_joints(robot, last.joints)
    twist = base if robot.floating_base else None
    return moving(robot, joints, robot.state(last.q), of_joints, twist)


def _check_base_left_alone(message: Any) -> None:
    """Reject a base state without joints: the latest joints may belong to another base state."""
    pose, twist = message.base_pose, message.base_twist
    q = pose.orientation
    at = [*xyz(pose.position), q.x, q.y, q.z, q.w, *xyz(twist.linear), *xyz(twist.angular)]
    if at != [0.0] * 6 + [1.0] + [0.0] * 6:
        raise InputError(
            "state has a base_pose or a base_twist, but no positions; give positions too, or "
            "leave the whole state empty for the latest joint states and ~/base_state"
        )


def closed_position(
    robot: Robot,
    joints: JointMap,
    position: Vector,
    base: Vector | None,
    guess: Vector | None = None,
) -> Vector:
    """The spanning position (..., nq) at which named joints are, loops closed.

    Args:
        robot: the model.
        joints: where they stand in ``position``.
        position: (..., size) in the order of the message; of several, each from one before.
        base: (..., 7) pose of the floating base.
        guess: (nq,) where to start, e.g. the last position; None for the assembly.
    """
    if robot.has_loops and joints.exact:
        return robot.close(with_base(base, joints.pick(position)), guess)
    if robot.has_loops and position.ndim == 2:
        q = np.empty((len(position), robot.nq))
        for k, row in enumerate(position):
            before, pose = q[k - 1] if k else guess, None if base is None else base[k]
            q[k] = closed_position(robot, joints, row, pose, before)
        return q
    if robot.has_loops:
        q = _closed_by_name(robot, {n: position[k] for n, k in joints.place.items()}, guess)
        q = q[robot.coordinates.base_nq :]
    else:
        if joints.missing:
            raise RefusalError(
                Reason.PARTIAL, f"position: joints missing: {listed(joints.missing)}; name them too"
            )
        q = position[..., joints.independent]
    return with_base(base, q)


def _closed_by_name(robot: Robot, given: Mapping[str, float], guess: Vector | None) -> Vector:
    """The spanning position (nq,) at named joints; more of them than needed choose the branch."""
    scalar = robot.coordinates.scalar_positions
    if guess is None and len(given) > len(robot.independent_joint_names):
        near = robot.neutral()
        for name, position in given.items():
            if name in scalar:
                near[scalar[name]] = position
        with suppress(ClosureError, InputError):
            return robot.close(given, near)
    return robot.close(given, guess)


def check_agreement(robot: Robot, given: Mapping[str, Vector], q: Vector, tolerance: float) -> None:
    """Reject positions that contradict each other.

    Args:
        robot: the model.
        given: positions of joints, each (...,) [rad, m].
        q: (..., nq) the closed position that some of them lead to.
        tolerance: largest difference [rad, m]; 0 for any.

    Raises:
        RefusalError: names the joint and the difference.
    """
    places = robot.coordinates.scalar_positions
    linear = {joint.name for joint in robot.description.joints if joint.type == "prismatic"}
    for name, values in given.items() if tolerance and robot.has_loops else ():
        if name not in places:
            continue
        measured = np.array(values, float).ravel()
        computed = np.ascontiguousarray(q[..., places[name]].ravel())
        worst, largest = core.largest_disagreement(measured, computed, name not in linear, 1.0)
        if largest > tolerance and largest / _scale(robot, name, q, worst) > tolerance:
            raise RefusalError(
                Reason.CONTRADICTION,
                f"position: '{name}' is given at {measured[worst]:.4g}, but follows from "
                f"the other joints to be at {computed[worst]:.4g}; give "
                "positions that belong together, or fewer, or raise measurement_tolerance",
            )


def _scale(robot: Robot, name: str, q: Vector, row: int) -> float:
    """How fast a joint moves per motion of y; at least 1. It is large behind a gear."""
    position = q if q.ndim == 1 else q[row]
    at = robot.coordinates.velocities[name].start
    rates = [abs(robot.spanning_velocity(position, yd)[at]) for yd in np.eye(robot.ny)]
    return max(1.0, *rates)


def moving(
    robot: Robot, joints: JointMap, state: State, velocity: Vector, base: Vector | None
) -> State:
    """The same position with the velocity that velocities of named joints (..., size) mean.

    They may be any joints that determine the others; the independent ones go first.
    """
    if joints.missing and velocity.any():
        yd = robot.independent_velocity(state, joints.by_name(velocity), base)
    else:
        yd = with_base(base, joints.pick(velocity))
    return state.with_velocity(yd)


def acceleration_vector(
    robot: Robot,
    joints: JointMap,
    state: State | Vector,
    yd: Vector,
    acceleration: Vector,
    base: Vector | None,
) -> Vector:
    """Independent acceleration (..., ny) that those of named joints (..., size) mean."""
    # Joints that move at a constant rate need not have others that do.
    if joints.missing and (acceleration.any() or yd.any()):
        return robot.independent_acceleration(state, yd, joints.by_name(acceleration), base)
    return with_base(base, joints.pick(acceleration))


def with_base(base: Vector | None, joints: Vector) -> Vector:
    """Put the numbers (..., n) of a floating base, if there is one, before those of the joints."""
    return joints if base is None else np.concatenate([base, joints], axis=-1)


def spanning_efforts(robot: Robot, request: Any) -> Vector:
    """Forces (nv,) on the spanning tree from the efforts of a request, which may name joints."""
    names = request.effort_joint_names or robot.actuated_joint_names
    efforts = numbers_or_zero("effort", request.effort, len(names))
    base = robot.coordinates.base_nv
    place = {name: base + k for k, name in enumerate(robot.coordinate_names[base:])}
    unknown = [name for name in names if name not in place]
    if unknown or len(set(names)) < len(names):
        raise RefusalError(
            Reason.MISNAMED,
            f"effort_joint_names: {listed(unknown or names)}; name joints of '{robot.name}', "
            f"each once: {listed(place)}",
        )
    tau = np.zeros(robot.nv)
    tau[[place[name] for name in names]] = efforts
    return tau


def wrench_vectors(robot: Robot, wrenches: Sequence[WrenchStamped]) -> dict[str, Vector] | None:
    """Wrench on each link, linear then angular, in the link's frame; several on one link add."""
    if not len(wrenches):
        return None
    links = {link.name for link in robot.description.links}
    total: dict[str, Vector] = {}
    for k, stamped in enumerate(wrenches):
        link = stamped.header.frame_id
        if link not in links:
            raise RefusalError(
                Reason.MISNAMED,
                f"external_wrenches[{k}]: header.frame_id '{link}' is no link of '{robot.name}'; "
                "name the link that the wrench acts on, and give it in that link's frame",
            )
        six_numbers = np.array(wrench_numbers(stamped.wrench))
        _must_be_finite(f"external_wrenches[{k}]", six_numbers)
        total[link] = total.get(link, 0.0) + six_numbers
    return total


def frames(call: Call, request: Any) -> list[FrameName]:
    """The frames of a request, by name: links, or end effectors; shifted in the frame of the link.

    It has ``frames``, and ``offsets``: one each, or none.
    """
    points, names, offsets = (
        end_effectors(call.settings.end_effectors),
        request.frames,
        request.offsets,
    )
    placed = [points.get(name, (name, [0.0, 0.0, 0.0])) for name in names]
    if not len(offsets):
        return list(placed)
    if len(offsets) != len(names):
        raise RefusalError(
            Reason.WRONG_SIZE,
            f"offsets has {len(offsets)} points for {len(names)} frames; give one each, or none",
        )
    shifts = [np.array(xyz(point)) for point in offsets]
    for k, shift in enumerate(shifts):
        _must_be_finite(f"offsets[{k}]", shift)
    together = zip(placed, shifts, strict=True)
    return [(link, (np.array(xyz) + shift).tolist()) for (link, xyz), shift in together]


def check_count(what: str, given: Sequence[Any], most: int) -> None:
    """Refuse lists that would take too long, or too much memory."""
    if len(given) > most:
        raise RefusalError(
            Reason.WRONG_SIZE, f"{what} has {len(given)} entries; give {most} at most"
        )


def numbers(what: str, values: Any, size: int) -> Vector:
    """Read the numbers of a message field: as many as joints are named, and finite."""
    if len(values) != size:
        raise RefusalError(
            Reason.WRONG_SIZE,
            f"{what} has {len(values)} numbers for {size} joints; give one per joint",
        )
    vector = np.asarray(values)
    _must_be_finite(what, vector)
    return vector


def sequence(vector: Vector) -> array.array:
    """Numbers as a message field wants them, without a Python object for each.

    Raises:
        InputError: they are not finite, which no message may say.
    """
    if not np.isfinite(vector).all():
        raise InputError(NOT_FINITE_ANSWER)
    return array.array("d", vector.tobytes())


def numbers_or_zero(what: str, values: Any, size: int) -> Vector:
    """As ``numbers``, but an empty field is zero."""
    return numbers(what, values, size) if len(values) else np.zeros(size)


def base_position(what: str, pose: Pose) -> Vector:
    """``x y z qx qy qz qw`` of a Pose, the quaternion normalized."""
    position, q = xyz(pose.position), pose.orientation
    quaternion = np.array([q.x, q.y, q.z, q.w])
    _must_be_finite(what, np.array([*position, *quaternion]))
    length = math.sqrt(quaternion @ quaternion)
    if abs(length - 1.0) > QUATERNION_TOLERANCE:
        raise RefusalError(
            Reason.NOT_A_ROTATION,
            f"{what}.orientation has length {length:.3g}; give a unit quaternion (w = 1 for none)",
        )
    return np.concatenate([position, unit(quaternion, length)])


def six(what: str, twist: Twist | Accel) -> Vector:
    """Read the six numbers of a Twist or Accel, linear then angular."""
    vector = np.array([*xyz(twist.linear), *xyz(twist.angular)])
    _must_be_finite(what, vector)
    return vector


def wrench_numbers(wrench: Wrench) -> list[float]:
    """Read the six numbers of a Wrench, force then torque."""
    return [*xyz(wrench.force), *xyz(wrench.torque)]


def wrench(vector: Vector) -> Wrench:
    """A Wrench of six numbers, force then torque; finite ones."""
    message = Wrench()
    fill(message.force, message.torque, vector)
    return message


def fill_accelerations(robot: Robot, qdd: Vector, response: Any) -> None:
    """Write the acceleration of every joint, and of the base, of a spanning one (nv,).

    A joint of several coordinates has a name and a number for each of them.
    """
    base_nv = robot.coordinates.base_nv
    of_base, of_joints = np.split(qdd, [base_nv])
    base = response.base_acceleration
    fill(base.linear, base.angular, of_base if robot.floating_base else np.zeros(6))
    response.joint_names = robot.coordinate_names[base_nv:]
    response.acceleration = sequence(of_joints)


def fill(linear: Vector3, angular: Vector3, vector: Vector) -> None:
    """Write six numbers into the two halves of a Wrench, Twist or Accel; finite ones."""
    six_numbers = vector.tolist()
    if not all(map(math.isfinite, six_numbers)):
        raise InputError(NOT_FINITE_ANSWER)
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = six_numbers


def xyz(vector: Point3 | Vector3) -> tuple[float, float, float]:
    """Read the three numbers of a Point or Vector3."""
    return vector.x, vector.y, vector.z


def _must_be_finite(what: str, vector: Vector) -> None:
    if math.hypot(*vector.tolist()) <= LARGEST:  # quicker than to look at each; no NaN is
        return
    if not (np.abs(vector) <= LARGEST).all():
        shown = vector[:MAX_LISTED].tolist()
        if np.isfinite(vector).all():
            raise RefusalError(Reason.NOT_FINITE, f"{what} has a number above {LARGEST:g}: {shown}")
        raise RefusalError(Reason.NOT_FINITE, f"{what} is not finite: {shown}")
