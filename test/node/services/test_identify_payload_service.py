"""The payload of a leg, from the joint states that a running node received."""

import numpy as np
import pytest
from rbda_ros.srv import IdentifyPayload, SetPayload
from sensor_msgs.msg import JointState

from rbda_ros import Payload, load_robot
from rbda_ros.demo.resources import share_file

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
LOAD = Payload("foot", 1.2, (0.04, 0.0, -0.03), (3e-3, 0.0, 0.0, 3e-3, 0.0, 3e-3))
COUNT, RATE = 800, 200.0
NO_MESSAGE = b"\0\1\0\0" + 30 * b"\xff"


@pytest.fixture
def node(graph):
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        payload_window=20.0,
        joint_state_timeout=0.0,
    )
    client = graph.client()
    client.until_active()
    return client, client.publisher(JointState, "joint_states")


def received(robot):
    """Joint states of a leg that carries the load, with noisy efforts of its motors."""
    t = np.arange(COUNT) / RATE
    paces = 2 * np.pi * (0.5 + 0.2 * np.arange(robot.ny))
    y = robot.independent_position(robot.tree.home) + 0.3 * np.sin(np.outer(t, paces))
    yd = 0.3 * paces * np.cos(np.outer(t, paces))
    ydd = -0.3 * paces**2 * np.sin(np.outer(t, paces))
    q = robot.close(y)
    qd = robot.spanning_velocity(q, yd)
    loaded = robot.with_payloads({"load": LOAD})
    efforts = loaded.inverse_dynamics_efforts(q, yd, ydd)[0]
    efforts += (
        0.02 * np.abs(efforts).max(axis=0) * np.random.default_rng(0).normal(size=efforts.shape)
    )
    at = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
    for k in range(COUNT):
        message = JointState(name=list(robot.joint_names))
        stamp = 1_700_000_000_000_000_000 + round(t[k] * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        message.position, message.velocity = q[k].tolist(), qd[k].tolist()
        spanning = np.zeros(robot.nv)
        spanning[at] = efforts[k]
        message.effort = spanning.tolist()
        yield message


def ask(client, link="foot", duration=0.0):
    request = IdentifyPayload.Request(link=link, duration=duration)
    return client.call(IdentifyPayload, "~/identify_payload", request)


def other_robot(k):
    """A joint state of an arm that publishes on the same topic."""
    message = JointState(name=["arm_shoulder", "arm_elbow"], position=[0.1, 0.2])
    message.velocity, message.effort = [0.0, 0.0], [1.0, 2.0]
    message.header.stamp.sec = 1_700_000_000 + k
    return message


def test_joint_states_of_another_robot_are_left_aside(node):
    client, publisher = node
    for k in range(10):
        publisher.publish(other_robot(k))
    twice = next(received(load_robot(LEG, LOOPS)))
    twice.name[0] = twice.name[1]
    publisher.publish(twice)
    client.spin(0.5)
    alone = ask(client)
    assert not alone.success and "less than 0.5 s" in alone.message, alone.message
    for k, message in enumerate(received(load_robot(LEG, LOOPS))):
        publisher.publish(message)
        publisher.publish(other_robot(20 + k))  # the newest is always theirs
        client.spin(0.001)
    client.spin(0.5)
    answer = ask(client)
    assert answer.success, answer.message
    assert abs(answer.inertia.m - LOAD.mass) < max(4 * answer.mass_deviation, 0.05)


def test_finds_a_load_that_can_then_be_set(node):
    client, publisher = node
    robot = load_robot(LEG, LOOPS)
    early = ask(client)
    assert not early.success and "less than 0.5 s" in early.message
    message = next(received(robot))
    message.name.reverse()  # so that what comes later does not go with these
    for _ in range(2):
        message.header.stamp.sec += 1
        publisher.publish(message)
    client.spin(0.5)
    few = ask(client)
    assert not few.success and "5 joint states" in few.message
    for k, message in enumerate(received(robot)):
        publisher.publish(message)
        if k % 100 == 50:
            publisher.publish(NO_MESSAGE)  # of somebody else, who is broken
        client.spin(0.002)  # more than a second in all
    client.spin(0.5)
    answer = ask(client)
    assert answer.success, answer.message
    assert abs(answer.inertia.m - LOAD.mass) < max(4 * answer.mass_deviation, 0.05)
    assert answer.mass_deviation < 0.2
    com = answer.inertia.com
    np.testing.assert_allclose([com.x, com.y, com.z], LOAD.com, atol=0.03)
    assert max(answer.residual_after) < 0.5 * max(answer.residual_before)
    assert 2.0 < answer.used < COUNT / RATE
    load = SetPayload.Request(name="found", link="foot", inertia=answer.inertia)
    assert client.call(SetPayload, "~/set_payload", load).success
    # The model carries it now: there is hardly anything beyond it.
    assert abs(ask(client).inertia.m) < 0.2 * LOAD.mass

    short = ask(client, duration=1.0)  # by arrival
    assert short.success and short.used < answer.used
    for link, says in (("nowhere", "no link 'nowhere'"), ("stand", "does not move")):
        refused = ask(client, link)
        assert not refused.success and says in refused.message, refused.message
    assert "give seconds" in ask(client, duration=-1.0).message
    assert client.set_parameter("payload_window", 0.0).successful
    assert "set payload_window" in ask(client).message
