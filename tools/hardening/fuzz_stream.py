"""A running node as a target: what anyone may publish to it, and requests beside."""

from __future__ import annotations

import atexit
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from ros_graph import Graph, own_domain
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import srv
from tools.hardening.fuzz_targets import WrongError, check_response, random_message, within
from tools.hardening.leg_node import NAMES, Y, start

TOGETHER = 16  # inputs between two good states, which must be answered
REQUESTS = 1000  # inputs between two requests
WARM = 4000  # inputs after which the node's memory must stay where it is
LARGEST_GROWTH = 20.0  # [MB]
BESIDE = {
    "~/joint_commands": JointState(name=NAMES, position=Y),
    "~/reference": JointTrajectory(
        joint_names=NAMES, points=[JointTrajectoryPoint(accelerations=Y)]
    ),
    "~/base_state": Odometry(),
    "~/external_wrench": WrenchStamped(),
}
"""A good message of each topic but joint_states."""
SLOW = {"set_payload": srv.SetPayload, "identify_payload": srv.IdentifyPayload}


def good_messages() -> list[bytes]:
    """Of all topics beside joint_states, serialized."""
    return [bytes(serialize_message(message)) for message in BESIDE.values()]


class StreamFuzz:
    """A node on the demo leg, and a client that says anything to it."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        domain = self._ends.enter_context(own_domain())
        folder = Path(self._ends.enter_context(tempfile.TemporaryDirectory()))
        graph = Graph(domain, folder)
        self._ends.callback(graph.close)
        self._node, self._client, self._talk = start(graph, payload_window=2.0)
        beside = [self._client.publisher(type(each), topic) for topic, each in BESIDE.items()]
        self._publishers = [*beside, *[self._talk.publisher] * len(beside)]
        self._count, self._before = 0, 0.0
        atexit.register(self.close)

    def close(self) -> None:
        """End the node."""
        self._ends.close()
        atexit.unregister(self.close)

    def say(self, data: bytes) -> None:
        """Publish bytes, whatever they are; now and then see whether the node is still well."""
        random.Random(data).choice(self._publishers).publish(data)
        self._count += 1
        if self._count % TOGETHER == 0:
            self._is_well()
        if self._count % REQUESTS == 0:
            self._ask(random.Random(data))
        if self._count == WARM:
            self._before = self._node.resident()
        if self._count % WARM == 0 and self._node.resident() > self._before + LARGEST_GROWTH:
            grown = self._node.resident() - self._before
            raise WrongError(f"the node grew by {grown:.0f} MB in {self._count - WARM} inputs")

    def _is_well(self) -> None:
        try:
            effort = self._talk.answer_to(NAMES, Y, [0.0] * len(Y)).effort
        except AssertionError as error:
            raise WrongError(f"{error}; the node said: {self._node.log[-1000:]}") from error
        if len(effort) != len(Y):
            raise WrongError(f"{len(effort)} efforts")
        for received in self._talk.received:
            if not within(received, sys.float_info.max):
                raise WrongError(f"efforts {received.effort}")

    def _ask(self, rng: random.Random) -> None:
        name = rng.choice(sorted(SLOW))
        request = random_message(SLOW[name].Request, rng)
        check_response(SLOW[name], self._client.call(SLOW[name], f"~/{name}", request))
