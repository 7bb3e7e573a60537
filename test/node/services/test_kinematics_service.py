"""Inverse kinematics over the service."""

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion
from rbda_ros.msg import State
from rbda_ros.srv import InverseKinematics

Y = [0.1, 0.2, 0.9, 0.1]


def ask(client, **fields):
    request = InverseKinematics.Request(state=State(position=Y), **fields)
    return client.call(InverseKinematics, "~/inverse_kinematics", request)


def place(xyz):
    x, y, z = xyz
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=1.0))


def test_equals_the_robot(leg):
    client, _, robot = leg
    target = robot.frame_pose(robot.close([0.2, -0.1, 1.1, 0.0]), "foot")[:3, 3]
    answer = ask(client, frames=["foot"], targets=[place(target)], kinds=["position"])
    assert answer.success and answer.reached, answer.message
    assert tuple(answer.joint_names) == robot.joint_names
    wanted = robot.inverse_kinematics("foot", target, guess=Y)
    np.testing.assert_allclose(answer.position, wanted.q, 0, 1e-12)
    assert answer.error <= 1e-8
    reached = robot.frame_pose(np.array(answer.position), "foot")[:3, 3]
    np.testing.assert_allclose(reached, target, 0, 1e-7)


def test_a_target_out_of_reach_gives_the_nearest_position(leg):
    client, _, _ = leg
    far = place([0.0, 0.0, -9.0])
    answer = ask(client, frames=["foot"], targets=[far], kinds=["position"], posture_weight=0.1)
    assert answer.success
    assert not answer.reached
    assert "targets are not met" in answer.message
    assert len(answer.position) == len(answer.joint_names)
    assert answer.error > 1.0


def test_mistakes_are_named(leg):
    client, _, _ = leg
    here = place([0.0, 0.0, -0.5])
    assert "nothing has a target" in ask(client).message
    assert "targets has 0 entries for 1 frames" in ask(client, frames=["foot"]).message
    assert "kinds[0] is 'up'" in ask(client, frames=["foot"], targets=[here], kinds=["up"]).message
    assert "weight is -1.0" in ask(client, frames=["foot"], targets=[here], weights=[-1.0]).message
    assert "'nobody'" in ask(client, frames=["nobody"], targets=[here]).message
