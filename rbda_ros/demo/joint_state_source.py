"""A stand-in for the driver of the demo robot: publishes joint_states that move smoothly."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from rbda_ros import Robot, load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT
from rbda_ros.demo.resources import share_file
from rbda_ros.node.spin import init, spin

RATE = 200.0  # [Hz]


class DemoSource(Node):
    """Swings each independent joint about the middle of its range, each at its own pace."""

    def __init__(self, robot: Robot) -> None:
        super().__init__("demo_source")
        self._message = JointState(name=list(robot.independent_joint_names))
        limits = {joint.name: joint.limits for joint in robot.description.joints}
        self._swings = []
        for k, name in enumerate(robot.independent_joint_names):
            lower, upper = max(limits[name].lower, -1.5), min(limits[name].upper, 1.5)
            pace = 2.0 * math.pi * (0.25 + 0.1 * k)  # [rad/s]
            self._swings.append(((lower + upper) / 2, 0.35 * (upper - lower), pace))
        self._publisher = self.create_publisher(JointState, "joint_states", 10)
        self.create_timer(1.0 / RATE, self._publish)

    def _publish(self) -> None:
        now = self.get_clock().now()
        t = now.nanoseconds * 1e-9
        self._message.header.stamp = now.to_msg()
        self._message.position = [m + a * math.sin(w * t) for m, a, w in self._swings]
        self._message.velocity = [a * w * math.cos(w * t) for _, a, w in self._swings]
        self._publisher.publish(self._message)


def main(argv: Sequence[str] | None = None) -> int:
    """Publish until told to stop."""
    signals = init(sys.argv[1:] if argv is None else argv)
    spin(DemoSource(load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS))), Future(), signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
