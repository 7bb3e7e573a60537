"""Stand in for a robot that is not there: its description, and joints that swing slowly.

    python -m rbda_ros.examples.stand_in_robot robot.urdf --joints left_motor right_motor

The idea: the node needs no more of a robot than ``robot_description`` and ``joint_states``, be they
of a driver, a simulator, or thirty lines of Python. Which joints are measured is of no matter, as
long as they determine the others.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rbda_ros.node.spin import init, spin

RATE = 100.0  # [Hz]
SWING, PACE = 0.2, 1.0  # [rad, m], [rad/s]


class StandIn(Node):
    """Publishes ``robot_description``, once and for whoever comes later, and ``joint_states``."""

    def __init__(self, description: str, joints: list[str]) -> None:
        super().__init__("stand_in_robot")
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=description))
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._message = JointState(name=joints)
        self.create_timer(1.0 / RATE, self._publish)

    def _publish(self) -> None:
        now = self.get_clock().now()
        phases = [PACE * now.nanoseconds * 1e-9 + k for k in range(len(self._message.name))]
        self._message.header.stamp = now.to_msg()
        self._message.position = [SWING * math.sin(phase) for phase in phases]
        self._message.velocity = [SWING * PACE * math.cos(phase) for phase in phases]
        self._states.publish(self._message)


def main() -> int:
    """Publish until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urdf", type=Path)
    parser.add_argument("--joints", nargs="+", required=True)
    given = parser.parse_args(remove_ros_args(sys.argv)[1:])
    signals = init(sys.argv[1:])
    spin(StandIn(given.urdf.read_text(), given.joints), Future(), signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
