"""A running node on the page: its joint states, its efforts, and what it refuses."""

import threading

import numpy as np
import pytest
from conversation import Conversation

from rbda_ros.view.following import Follower
from rbda_ros.view.posing import Poser

JOINTS = ["hip_abduction", "hip_flexion", "knee", "ankle"]
GOOD = [0.0, 0.3, 0.9, 0.1]


@pytest.fixture
def domain(leg, monkeypatch):
    """The ROS domain of the running node, for whoever comes next."""
    client, _, _ = leg
    monkeypatch.setenv("ROS_DOMAIN_ID", str(client.domain))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def hear(follower, client, publish, condition):
    """Publish until the follower heard what is waited for."""
    for _ in range(400):
        publish()
        client.spin(0.02)
        heard = follower.next(0.05)
        if heard is not None and condition(heard):
            return heard
    raise AssertionError("heard in vain")


def test_the_page_has_the_joints_and_efforts_of_the_node_and_its_refusals(leg, domain):
    client, _, robot = leg
    conversation = Conversation(client)
    with Follower("dynamics") as follower:
        described = follower.description(threading.Event())
        assert described.robot.joint_names == robot.joint_names

        def good():
            message = client.joint_states(JOINTS, GOOD, [0.0] * 4)
            conversation.publisher.publish(message)

        heard = hear(
            follower, client, good, lambda h: h.complete and h.efforts and "rate [Hz]" in h.values
        )
        posed = Poser(described.robot).measured(heard.positions, heard.complete)
        q = robot.close(dict(zip(JOINTS, GOOD, strict=True)))
        np.testing.assert_allclose(posed.q, q, atol=1e-6)
        efforts = robot.actuator_efforts(q, robot.gravity_force(q))
        for name, effort in zip(robot.actuated_joint_names, efforts, strict=True):
            assert np.isclose(heard.efforts[name], effort, atol=1e-6)

        def out_of_reach():
            message = client.joint_states(JOINTS, [*GOOD[:3], -1.5], [0.0] * 4)
            conversation.publisher.publish(message)

        refused = "refused: loops do not close"
        heard = hear(
            follower, client, out_of_reach, lambda h: not h.complete and refused in h.values
        )
        assert heard.level > 0 and "refused" in heard.message
        (loop, *_) = Poser(described.robot).measured(heard.positions, heard.complete).troubles
        assert "ankle_linkage" in loop.constraints
