"""Joint names and ROS messages to the vectors of the model, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rbda_ros.node.refusals import Reason, RefusalError

if TYPE_CHECKING:
    from rbda_ros.robot import Robot

Vector = np.ndarray


@dataclass(frozen=True)
class JointMap:
    """Where the joints of the model stand in a message.

    Attributes:
        size: number of joints in the message.
        place: of each joint of the model that the message names.
        missing: independent joints that it does not name.
        independent: places of the independent joints; without those that are missing.
    """

    size: int
    place: dict[str, int]
    missing: tuple[str, ...]
    independent: Vector


def map_joints(robot: Robot, names: Sequence[str], *, others_allowed: bool) -> JointMap:
    """Find the joints of the model among the names of a message.

    Args:
        robot: the model.
        names: joint names in the order of the message; empty means the independent joints.
        others_allowed: whether names that the model does not know are skipped (a topic carries
            what others need too) or refused (in a request they are a mistake).

    Raises:
        RefusalError: names are unknown or repeated, or none is of this model.
    """
    names = names or robot.independent_joint_names
    place = {name: k for k, name in enumerate(names)}
    if len(place) < len(names):
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        raise RefusalError(
            Reason.MISNAMED, f"joints named twice: {listed(repeated)}; name each once"
        )
    known = {*robot.joint_names, *robot.independent_joint_names}
    unknown = [name for name in names if name not in known]
    if unknown and (not others_allowed or len(unknown) == len(names)):
        raise RefusalError(
            Reason.MISNAMED,
            f"unknown joints: {listed(unknown)}; '{robot.name}' has {listed(robot.joint_names)}",
        )
    wanted = robot.independent_joint_names
    return JointMap(
        size=len(names),
        place={name: k for name, k in place.items() if name in known},
        missing=tuple(name for name in wanted if name not in place),
        independent=np.array([place[name] for name in wanted if name in place], dtype=np.intp),
    )


def state_vectors(robot: Robot, state: Any) -> tuple[Vector, Vector, JointMap]:
    """Position, velocity and joint map of a ``rbda_ros/State``.

    Returns:
        The spanning position, loops closed; the independent velocity; where the joints stand.

    Raises:
        RefusalError, InputError, ClosureError: the message does not say a state of this robot.
    """
    joints = map_joints(robot, state.joint_names, others_allowed=False)
    positions = numbers("position", state.position, joints.size)
    if has_loops(robot):
        q = robot.close({name: positions[k] for name, k in joints.place.items()})
        q = q[7:] if robot.floating_base else q
    else:
        q = independent("position", positions, joints)
    velocities = numbers_or_zero("velocity", state.velocity, joints.size)
    yd = independent("velocity", velocities, joints)
    if robot.floating_base:
        q = np.concatenate([base_position("base_pose", state.base_pose), q])
        yd = np.concatenate([six("base_twist", state.base_twist), yd])
    return q, yd, joints


def acceleration_vector(robot: Robot, joints: JointMap, values: Any, base: Any) -> Vector:
    """Acceleration of the independent coordinates; joints as in the state, empty is zero."""
    ydd = independent("acceleration", numbers_or_zero("acceleration", values, joints.size), joints)
    if robot.floating_base:
        ydd = np.concatenate([six("base_acceleration", base), ydd])
    return ydd


def spanning_efforts(robot: Robot, names: Sequence[str], efforts: Vector) -> Vector:
    """Forces on every coordinate of the spanning tree, from efforts on some joints."""
    place = {name: k for k, name in enumerate(robot.joint_names, 6 if robot.floating_base else 0)}
    unknown = [name for name in names if name not in place]
    if unknown or len(set(names)) < len(names):
        raise RefusalError(
            Reason.MISNAMED,
            f"effort_joint_names: {listed(unknown or names)}; name joints of '{robot.name}', "
            f"each once: {listed(robot.joint_names)}",
        )
    tau = np.zeros(robot.nv)
    tau[[place[name] for name in names]] = efforts
    return tau


def independent(what: str, values: Vector, joints: JointMap) -> Vector:
    """Pick the independent joints; those that a message leaves out must be nothing but zero."""
    if not joints.missing:
        return values[joints.independent]
    if what == "position" or values.any():
        raise RefusalError(
            Reason.PARTIAL, f"{what}: joints missing: {listed(joints.missing)}; name them too"
        )
    return np.zeros(len(joints.independent) + len(joints.missing))


def has_loops(robot: Robot) -> bool:
    """Whether some joints follow from others."""
    return robot.nv > robot.ny


def wrench_vectors(robot: Robot, wrenches: Iterable[Any]) -> dict[str, Vector] | None:
    """Wrench on each link, linear then angular, in the link's frame; several on one link add."""
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
        wrench = stamped.wrench
        six_numbers = np.array([*_xyz(wrench.force), *_xyz(wrench.torque)])
        _must_be_finite(f"external_wrenches[{k}]", six_numbers)
        total[link] = total.get(link, 0.0) + six_numbers
    return total or None


def numbers(what: str, values: Any, size: int) -> Vector:
    """Read the numbers of a message field: as many as joints are named, and finite."""
    if len(values) != size:
        raise RefusalError(
            Reason.WRONG_SIZE,
            f"{what} has {len(values)} numbers for {size} joints; give one per joint",
        )
    vector = np.array(values, dtype=float)
    _must_be_finite(what, vector)
    return vector


def numbers_or_zero(what: str, values: Any, size: int) -> Vector:
    """As ``numbers``, but an empty field is zero."""
    return numbers(what, values, size) if len(values) else np.zeros(size)


def base_position(what: str, pose: Any) -> Vector:
    """``x y z qx qy qz qw`` of a Pose, the quaternion normalized."""
    xyz, q = _xyz(pose.position), pose.orientation
    quaternion = np.array([q.x, q.y, q.z, q.w])
    _must_be_finite(what, np.array([*xyz, *quaternion]))
    length = math.sqrt(quaternion @ quaternion)
    if abs(length - 1.0) > 1e-3:
        raise RefusalError(
            Reason.NOT_A_ROTATION,
            f"{what}.orientation has length {length:.3g}; give a unit quaternion (w = 1 for none)",
        )
    return np.concatenate([xyz, quaternion / length])


def six(what: str, twist: Any) -> Vector:
    """Read the six numbers of a Twist or Accel, linear then angular."""
    vector = np.array([*_xyz(twist.linear), *_xyz(twist.angular)])
    _must_be_finite(what, vector)
    return vector


def fill(linear: Any, angular: Any, vector: Vector) -> None:
    """Write six numbers into the two halves of a Wrench, Twist or Accel."""
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = vector.tolist()


def listed(names: Iterable[str]) -> str:
    """Names as a sentence has them."""
    return ", ".join(names)


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _must_be_finite(what: str, vector: Vector) -> None:
    if not np.isfinite(vector).all():
        raise RefusalError(Reason.NOT_FINITE, f"{what} is not finite: {vector.tolist()}")
