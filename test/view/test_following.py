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


def receive(follower, client, publish, condition):
    """Publish until the follower received what is waited for."""
    for _ in range(400):
        publish()
        client.spin(0.02)
        received = follower.next(0.05)
        if received is not None and condition(received):
            return received
    raise AssertionError("nothing that fits was received")


def test_the_page_has_the_joints_and_efforts_of_the_node_and_its_refusals(leg, domain):
    client, _, robot = leg
    conversation = Conversation(client)
    with Follower("dynamics") as follower:
        described = follower.description(threading.Event())
        assert described.robot.joint_names == robot.joint_names

        def good():
            message = client.joint_states(JOINTS, GOOD, [0.0] * 4)
            conversation.publisher.publish(message)

        received = receive(
            follower, client, good, lambda h: h.complete and h.efforts and "rate [Hz]" in h.values
        )
        posed = Poser(described.robot).measured(received.positions, received.complete)
        q = robot.close(dict(zip(JOINTS, GOOD, strict=True)))
        np.testing.assert_allclose(posed.q, q, atol=1e-6)
        efforts = robot.actuator_efforts(q, robot.gravity_force(q))
        for name, effort in zip(robot.actuated_joint_names, efforts, strict=True):
            assert np.isclose(received.efforts[name], effort, atol=1e-6)

        def out_of_reach():
            message = client.joint_states(JOINTS, [*GOOD[:3], -1.5], [0.0] * 4)
            conversation.publisher.publish(message)

        refused = "refused: loops do not close"
        received = receive(
            follower, client, out_of_reach, lambda h: not h.complete and refused in h.values
        )
        assert received.level > 0 and "refused" in received.message
        (loop, *_) = Poser(described.robot).measured(received.positions, received.complete).troubles
        assert "ankle_linkage" in loop.constraints
