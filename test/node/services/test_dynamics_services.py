"""Requests about dynamics, of robots with joints of several coordinates."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS
from rbda_ros.msg import State
from rbda_ros.srv import ForwardDynamics

from rbda_ros import Robot
from rbda_ros.control.rejections import RefusalError
from rbda_ros.control.settings import Settings
from rbda_ros.node.messages import Call
from rbda_ros.node.services.dynamics_services import forward_dynamics


def answer(robot: Robot, **fields):
    state = State(position=[0.1] * len(robot.independent_joint_names))
    request = ForwardDynamics.Request(state=state, **fields)
    response = ForwardDynamics.Response()
    call = Call(robot, Settings(), lambda _: pytest.fail("a state is given"), None)
    forward_dynamics(call, request, response)
    return response


def test_every_acceleration_has_its_name():
    """Ball joints have three: names of joints alone were fewer, and stood at other numbers."""
    robot = MECHANISMS["parallel_ankle"].load()
    response = answer(robot, effort_joint_names=["right_motor"], effort=[2.0])
    tau = np.zeros(robot.nv)
    tau[robot.coordinates.velocities["right_motor"].start] = 2.0
    y, rest = np.full(2, 0.1), np.zeros(2)
    right = robot.spanning_acceleration(y, rest, robot.forward_dynamics(y, rest, tau))
    assert len(response.joint_names) == len(response.acceleration)
    by_name = dict(zip(response.joint_names, response.acceleration, strict=True))
    for joint, place in robot.coordinates.velocities.items():
        names = [joint] if len(place) == 1 else [f"{joint}.{axis}" for axis in ("wx", "wy", "wz")]
        assert [by_name[name] for name in names] == pytest.approx(right[list(place)], rel=1e-12)


def test_efforts_on_a_joint_of_several_coordinates_are_named_by_coordinate():
    """An effort on the ball joint itself acted on its first axis."""
    robot = MECHANISMS["parallel_ankle"].load()
    with pytest.raises(RefusalError, match=r"effort_joint_names: left_ball;.*left_ball\.wx"):
        answer(robot, effort_joint_names=["left_ball"], effort=[1.0])
    response = answer(robot, effort_joint_names=["left_ball.wy"], effort=[1.0])
    tau = np.zeros(robot.nv)
    tau[robot.coordinates.velocities["left_ball"].start + 1] = 1.0
    y, rest = np.full(2, 0.1), np.zeros(2)
    right = robot.spanning_acceleration(y, rest, robot.forward_dynamics(y, rest, tau))
    assert list(response.acceleration) == pytest.approx(right.tolist(), rel=1e-12)
