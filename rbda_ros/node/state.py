"""Joint names and ROS messages to the vectors of the model."""

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
    """Where the joints of a message stand in it.

    Attributes:
        size: number of joints in the message.
        state: places of the joints that make up the model's position and velocity; all moving
            joints where the message has them, else the independent ones.
        independent: places of the independent joints, for accelerations.
    """

    size: int
    state: Vector
    independent: Vector


def map_joints(robot: Robot, names: Sequence[str], *, others_allowed: bool) -> JointMap:
    """Find the joints of the model among the names of a message.

    Args:
        robot: the model.
        names: joint names in the order of the message; empty means the independent joints.
        others_allowed: whether names that the model does not know are skipped (a topic carries
            what others need too) or refused (in a request they are a mistake).

    Raises:
        RefusalError: names are unknown, repeated, or do not determine the state.
    """
    names = names or robot.independent_joint_names
    place = {name: k for k, name in enumerate(names)}
    if len(place) < len(names):
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        raise RefusalError(
            Reason.MISNAMED, f"joints named twice: {_listed(repeated)}; name each once"
        )

    known = set(robot.joint_names)
    unknown = [name for name in names if name not in known]
    if unknown and not others_allowed:
        raise RefusalError(
            Reason.MISNAMED,
            f"unknown joints: {_listed(unknown)}; '{robot.name}' has {_listed(robot.joint_names)}",
        )
    missing = [name for name in robot.independent_joint_names if name not in place]
    if missing:
        reason = Reason.MISNAMED if len(unknown) == len(names) else Reason.PARTIAL
        raise RefusalError(
            reason,
            f"joints missing: {_listed(missing)}; give all of "
            f"{_listed(robot.independent_joint_names)}",
        )

    spanning = all(name in place for name in robot.joint_names)
    chosen = robot.joint_names if spanning else robot.independent_joint_names
    return JointMap(
        size=len(names),
        state=_places(place, chosen),
        independent=_places(place, robot.independent_joint_names),
    )


def _places(place: dict[str, int], names: Iterable[str]) -> Vector:
    return np.array([place[name] for name in names], dtype=np.intp)


def state_vectors(robot: Robot, state: Any) -> tuple[Vector, Vector, JointMap]:
    """Position, velocity and joint map of a ``rbda_ros/State``.

    Raises:
        RefusalError: the message does not say a state of this robot.
    """
    joints = map_joints(robot, state.joint_names, others_allowed=False)
    q = numbers("position", state.position, joints.size)[joints.state]
    qd = numbers_or_zero("velocity", state.velocity, joints.size)[joints.state]
    if robot.floating_base:
        q = np.concatenate([base_position("base_pose", state.base_pose), q])
        qd = np.concatenate([six("base_twist", state.base_twist), qd])
    return q, qd, joints


def acceleration_vector(robot: Robot, joints: JointMap, values: Any, base: Any) -> Vector:
    """Acceleration of the independent coordinates; joints as in the state, empty is zero."""
    ydd = numbers_or_zero("acceleration", values, joints.size)[joints.independent]
    if robot.floating_base:
        ydd = np.concatenate([six("base_acceleration", base), ydd])
    return ydd


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


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _must_be_finite(what: str, vector: Vector) -> None:
    if not np.isfinite(vector).all():
        raise RefusalError(Reason.NOT_FINITE, f"{what} is not finite: {vector.tolist()}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
