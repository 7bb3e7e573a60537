"""Motors seen from the joints, in one pose."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from rbda_ros.control.joint_map import Vector
from rbda_ros.control.settings import Settings
from rbda_ros.msg import Matrix
from rbda_ros.node import messages
from rbda_ros.node.messages import LatestState
from rbda_ros.robot import Robot

LIMITS = ("torque_limit", "torque_limit_alone", "velocity_limit", "velocity_limit_alone")


def describe_actuation(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with W, the motors' reflected inertia, and what their limits amount to."""
    state, _ = messages.read_state(robot, settings, request.state, latest)
    found = robot.actuation(state, request.joint_names or None)
    joints, motors = list(found.joint_names), list(found.motor_names)
    response.joint_names, response.motor_names = joints, motors
    response.w = _matrix(found.W, motors, joints)
    response.reflected_inertia = _matrix(found.reflected_inertia, joints, joints)
    response.motor_inertia = messages.sequence(found.motor_inertia)
    for name in LIMITS:
        # As they are: no limit is inf, as in JointInfo.
        setattr(response, name, array.array("d", getattr(found, name).tobytes()))
    for k, (places, _) in enumerate(found.groups):
        names = [joints[j] for j in places]
        response.torque_vertices.append(_matrix(found.torque_vertices(k), [], names))
        response.velocity_vertices.append(_matrix(found.velocity_vertices(k), [], names))
    response.condition_number = float(found.condition)


def _matrix(values: Vector, row_names: Sequence[str], col_names: Sequence[str]) -> Matrix:
    rows, cols = values.shape
    data = messages.sequence(np.ascontiguousarray(values))
    return Matrix(
        rows=rows, cols=cols, row_names=list(row_names), col_names=list(col_names), data=data
    )
