"""Requests of the services, from vectors of a robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, WrenchStamped
from nav_msgs.msg import Odometry
from rbda_ros.msg import State
from rbda_ros.srv import InverseDynamics
from std_msgs.msg import Header

from rbda_ros import Robot


def state_of(robot: Robot, q: np.ndarray, qd: np.ndarray, order: Any = None) -> State:
    """A State of every joint, in some order."""
    order = np.arange(len(robot.joint_names)) if order is None else order
    state = State(joint_names=[robot.joint_names[k] for k in order])
    if robot.floating_base:
        state.base_pose = pose_of(q[:7])
        set_six(state.base_twist, qd[:6])
        q, qd = q[7:], qd[6:]
    state.position, state.velocity = q[order].tolist(), qd[order].tolist()
    return state


def request_of(
    robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, order: Any = None
) -> InverseDynamics.Request:
    """An InverseDynamics request for every joint, in some order; qdd as long as qd."""
    order = np.arange(len(robot.joint_names)) if order is None else order
    request = InverseDynamics.Request(state=state_of(robot, q, qd, order))
    if robot.floating_base:
        set_six(request.base_acceleration, qdd[:6])
        qdd = qdd[6:]
    request.acceleration = qdd[order].tolist()
    return request


def odometry_of(header: Header, q: np.ndarray, qd: np.ndarray) -> Odometry:
    """The state of a floating base."""
    message = Odometry(header=header)
    message.pose.pose = pose_of(q[:7])
    set_six(message.twist.twist, qd[:6])
    return message


def pose_of(q: np.ndarray) -> Pose:
    x, y, z, *quaternion = map(float, q[:7])
    return Pose(
        position=Point(x=x, y=y, z=z),
        orientation=Quaternion(**dict(zip("xyzw", quaternion, strict=True))),
    )


def set_six(message: Any, vector: np.ndarray) -> None:
    """Write a Twist or Accel, linear then angular."""
    linear, angular = message.linear, message.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, vector[:6])


def six_of(first: Any, second: Any) -> list[float]:
    """Read the halves of a Wrench, Twist or Accel."""
    return [first.x, first.y, first.z, second.x, second.y, second.z]


def wrench_on(link: str, vector: Any) -> WrenchStamped:
    stamped = WrenchStamped()
    stamped.header.frame_id = link
    force, torque = stamped.wrench.force, stamped.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = map(float, vector)
    return stamped
