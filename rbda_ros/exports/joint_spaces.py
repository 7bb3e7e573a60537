"""Which joints the arrays of exported functions are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rbda_ros.errors import InputError
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.robot.robot import Robot


@dataclass(frozen=True)
class JointSpace:
    """Joints of one coordinate each that determine the robot, apart from a floating base.

    Attributes:
        names: in the order of arrays.
        entries: of q.
        coordinates: of qd.
    """

    names: tuple[str, ...]
    entries: tuple[int, ...]
    coordinates: tuple[int, ...]


def joint_space(robot: Robot, what: str, names: Sequence[str]) -> JointSpace:
    """The joints of these names, in their order.

    Raises:
        InputError: unknown names, joints that do not determine the others just so, or loops that
            no Newton steps close from them.
    """
    places = robot.coordinates
    parts = [name for name in names if name.rpartition(".")[0] in places.velocities]
    if several := [name for name in parts if name not in places.scalar_positions]:
        raise InputError(
            f"{what}: {', '.join(several)} is part of a joint with several coordinates; name joints"
            " of one coordinate each that determine the others"
        )
    found = _determining(robot, names)
    if len(set(names)) < len(names) or len(found.joints) < len(names):
        raise InputError(
            f"{what}: {', '.join(names)} are more than determine {robot.name}; name"
            f" {', '.join(found.joints)}"
        )
    return JointSpace(
        tuple(names),
        tuple(places.scalar_positions[name] for name in names),
        tuple(places.velocities[name].start for name in names),
    )


def measured_space(robot: Robot, names: Sequence[str] | None) -> JointSpace:
    """The measured joints; the motors unless they are named, or where motors do not determine y."""
    if names is not None:
        return joint_space(robot, "measured", names)
    return _first(robot, "measured", robot.actuated_joint_names, robot.independent_joint_names)


def commanded_space(robot: Robot, names: Sequence[str] | None) -> JointSpace:
    """The joints of commands: those that are no motors, if they determine the robot."""
    if names is not None:
        return joint_space(robot, "joints", names)
    motors = set(robot.actuated_joint_names)
    passive = [name for name in robot.independent_joint_names if name not in motors]
    return _first(robot, "joints", passive, _driven(robot), robot.independent_joint_names)


def _driven(robot: Robot) -> list[str]:
    """Joints that a user would command: in every loop the last that determine it."""
    motors = set(robot.actuated_joint_names)
    names: list[str] = []
    for node in robot.tree.clusters:
        joints = [
            body.joint.name
            for body in node.bodies
            if body.joint.name in robot.coordinates.scalar_positions
        ]
        passive = [joint for joint in joints if joint not in motors]
        names += passive[: node.ny] if node.loop is not None else joints
    return names


def _first(robot: Robot, what: str, *candidates: Sequence[str]) -> JointSpace:
    for names in candidates[:-1]:
        try:
            return joint_space(robot, what, names)
        except InputError:
            continue
    return joint_space(robot, what, candidates[-1])


def _determining(robot: Robot, names: Sequence[str]) -> Measured:
    found = robot._inputs.choices.measured("position", names)
    if found.positions is None:
        raise InputError(
            f"no Newton steps close the loops of {robot.name} from {', '.join(found.joints)}; name"
            " joints of one coordinate each"
        )
    return found
