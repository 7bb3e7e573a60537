"""Talking with a running node: joint states in, efforts out."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState

SILENCE = 0.3  # [s] that a wrong answer would come in, where no good one can be waited for


class Conversation:
    """Publishes joint states to a node and receives its efforts."""

    def __init__(self, client, topic="joint_states"):
        self.client = client
        self.publisher = client.publisher(JointState, topic)
        self.received = client.listen(JointState, "~/feedforward")

    def answer_to(self, names, position, velocity):
        """The effort that answers a good state; repeated, since the topic is best-effort."""
        self.received.clear()
        for _ in range(100):
            message = self.client.joint_states(names, position, velocity)
            self.publisher.publish(message)
            for _ in range(4):
                self.client.spin(0.01)
                if found := self.answered(message):
                    return found
        raise AssertionError("no effort")

    def answered(self, message):
        """The effort that was received in answer to a message, if any."""
        found = [each for each in self.efforts if each.header.stamp == message.header.stamp]
        return found[0] if found else None

    @property
    def efforts(self):
        """Those that were received, without the zeros that follow when states stop."""
        return [each for each in self.received if any(each.effort)]

    def refuses(self, make, *good):
        """Whether a message is not answered while a good one right after it is."""
        self.answer_to(*good)
        message = make()  # only now: it must be the newest
        self.publisher.publish(message)
        received = [*self.received]
        self.answer_to(*good)
        self.received[:0] = received
        return self.answered(message) is None

    def silence_after(self, message):
        """Whether a message is not answered for a while."""
        self.received.clear()
        self.publisher.publish(message)
        self.client.spin(SILENCE)
        return not self.efforts

    def stream(self, states, period=0.01):
        """Publish states ``(names, position, velocity)`` with stamps just so far apart."""
        self.received.clear()
        sent = []
        now = self.client.node.get_clock().now().nanoseconds
        for k, state in enumerate(states):
            message = self.client.joint_states(*state)
            stamp = now + int(k * period * 1e9)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
            self.publisher.publish(message)
            sent.append(message)
            self.client.spin(0.003)
        self.client.until(lambda: self.answered(sent[-1]))
        return [self.answered(message) for message in sent]


class Diagnoses:
    """Diagnostics of a node."""

    def __init__(self, client):
        self._client = client
        self.received = client.listen(DiagnosticArray, "/diagnostics")

    def next(self):
        """Level, message and values of the next status."""
        self.received.clear()
        self._client.until(lambda: self.received)
        status = self.received[-1].status[0]
        assert status.name == "dynamics: feedforward"
        return status, {value.key: value.value for value in status.values}

    def refusals(self):
        """How many there were, by reason."""
        self.next()  # the one after is about all that was sent by now
        _, values = self.next()
        return Counter(
            {k[9:]: int(v) for k, v in values.items() if k.startswith("refused: ") and int(v)}
        )


@contextmanager
def parameters(client, **values):
    """Other parameters for a while."""
    defaults = {
        "acceleration_source": "zero",
        "command_joints": [],
        "external_wrench": False,
        "effort_limits": "",
        "effort_rate_limit": 0.0,
        "joint_prefix": "",
        "joint_state_timeout": 0.1,
        "max_condition_number": 1e4,
        "on_refusal": "silence",
        "ramp_in": 0.0,
        "saturate": False,
        "terms": ["gravity", "coriolis", "inertial"],
        "velocity_source": "message",
    }
    for name, value in values.items():
        result = client.set_parameter(name, value)
        assert result.successful, result.reason
    try:
        yield
    finally:
        for name in values:
            assert client.set_parameter(name, defaults[name]).successful


def efforts(robot, q, qd, ydd=None, wrenches=None):
    """Results of the robot's methods."""
    ydd = np.zeros(robot.ny) if ydd is None else ydd
    return robot.actuator_efforts(q, robot.inverse_dynamics(q, qd, ydd, wrenches))
