"""Reflected inertia, limits and W of the motors, over the service."""

import numpy as np
from rbda_ros.msg import State
from rbda_ros.srv import DescribeActuation

Y = [0.1, 0.2, 0.9, 0.1]


def ask(client, joints=(), position=Y):
    request = DescribeActuation.Request(state=State(position=position), joint_names=list(joints))
    return client.call(DescribeActuation, "~/describe_actuation", request)


def matrix(message):
    return np.array(message.data).reshape(message.rows, message.cols)


def test_equals_the_robot(leg):
    client, _, robot = leg
    answer, wanted = ask(client), robot.actuation(Y)
    assert answer.success, answer.message
    assert tuple(answer.joint_names) == robot.independent_joint_names
    assert tuple(answer.motor_names) == robot.actuated_joint_names
    np.testing.assert_allclose(matrix(answer.w), wanted.W, atol=1e-9)
    np.testing.assert_allclose(
        matrix(answer.reflected_inertia), wanted.reflected_inertia, atol=1e-12
    )
    np.testing.assert_allclose(answer.torque_limit, wanted.torque_limit)
    np.testing.assert_allclose(answer.velocity_limit, wanted.velocity_limit)
    assert list(answer.w.row_names) == list(robot.actuated_joint_names)
    assert len(answer.torque_vertices) == len(wanted.groups)
    assert answer.condition_number > 1.0


def test_other_joints(leg):
    client, _, robot = leg
    answer = ask(client, robot.actuated_joint_names)
    assert answer.success, answer.message
    np.testing.assert_allclose(matrix(answer.w), np.eye(4), atol=1e-9)


def test_mistakes_are_named(leg):
    client, _, _ = leg
    assert "hip_abduction" in ask(client, ["knee"]).message
    assert not ask(client, ["knee"]).success
    assert "finite" in ask(client, position=[*Y[:3], float("nan")]).message
