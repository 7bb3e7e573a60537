"""Simulated time, and clocks that jump."""

import numpy as np
import pytest
from conversation import Conversation
from rosgraph_msgs.msg import Clock

from rbda_ros.demo.resources import share_file

NAMES = ("hip_abduction", "hip_flexion", "knee", "ankle")
Y, YD = (0.1, 0.3, 0.9, -0.2), (0.5, -1.0, 2.0, 1.0)


@pytest.fixture
def simulated(graph):
    """A node on simulated time, and a way to set it."""
    graph.serve(
        robot_description=share_file("config/robots/demo_leg.urdf").read_text(),
        loop_constraints=str(share_file("config/robots/demo_leg_loops.yaml")),
        velocity_source="differentiate",
        use_sim_time=True,
    )
    client = graph.client()
    client.until_active()
    clock = client.publisher(Clock, "/clock")
    return client, Conversation(client), clock


def stamped(client, seconds):
    message = client.joint_states(NAMES, Y, YD)
    message.header.stamp.sec, nanoseconds = int(seconds), round(seconds % 1 * 1e9)
    message.header.stamp.nanosec = nanoseconds
    return message


def test_simulated_time_that_starts_over(simulated):
    client, talk, clock = simulated

    def run(start):
        """Whether joint states from this time on are answered, after the first."""
        for k in range(200):
            now = start + 0.01 * k
            message = stamped(client, now)
            tick = Clock()
            tick.clock = message.header.stamp
            clock.publish(tick)
            client.spin(0.01)
            talk.publisher.publish(message)
            client.spin(0.01)
            if talk.answered(message):
                return k
        raise AssertionError("never answered")

    assert run(100.0) > 0  # velocities are differences
    assert talk.silence_after(stamped(client, 50.0))  # stale by simulated time
    # The simulation starts over: what was received before is from the future, and forgotten.
    assert run(3.0) > 0
    assert talk.silence_after(stamped(client, 100.0))
    # And it jumps ahead.
    assert run(500.0) > 0


def test_a_state_published_after_its_time_is_of_that_time(graph):
    """Simulated time leaps by 1 s before each state, and nothing waits for the node's executor."""
    graph.serve(
        robot_description=share_file("config/robots/demo_leg.urdf").read_text(),
        loop_constraints=str(share_file("config/robots/demo_leg_loops.yaml")),
        use_sim_time=True,
    )
    client = graph.client()
    client.until_active()
    clock = client.publisher(Clock, "/clock")
    talk = Conversation(client)
    answered = 0
    for k in range(100):
        message = stamped(client, 100.0 + k)
        clock.publish(Clock(clock=message.header.stamp))
        talk.publisher.publish(message)
        for _ in range(100):
            if talk.answered(message):
                answered += 1
                break
            client.spin(0.001)
    assert answered >= 98  # the first may come before the clock is found


def test_simulated_time_switched_on_and_off_while_streaming(graph):
    """Neither clock is ahead of the other for the rate limit: no effort leaps."""
    graph.serve(
        robot_description=share_file("config/robots/demo_leg.urdf").read_text(),
        loop_constraints=str(share_file("config/robots/demo_leg_loops.yaml")),
        effort_rate_limit=1.0,
        on_stale="nothing",
    )
    client = graph.client()
    client.until_active()
    clock = client.publisher(Clock, "/clock")
    talk = Conversation(client)
    for simulated in (False, True, False, True):
        client.set_parameter("use_sim_time", simulated)
        for k in range(60):
            message = stamped(client, 50.0 + 0.01 * k)
            clock.publish(Clock(clock=message.header.stamp))
            if not simulated:
                message = client.joint_states(NAMES, Y, YD)
            talk.publisher.publish(message)
            client.spin(0.01)
    changes = np.abs(np.diff([message.effort for message in talk.efforts], axis=0))
    assert len(changes) > 100
    assert changes.max() <= 0.1 + 1e-9
