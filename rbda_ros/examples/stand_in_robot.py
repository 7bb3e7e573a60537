"""Replace a robot: publish its description, and joint states that swing slowly.

    python -m rbda_ros.examples.stand_in_robot robot.urdf --loops loops.yaml

The idea: the node needs no more of a robot than ``robot_description`` and ``joint_states``, be they
of a driver, a simulator, or a short program. It does not matter which joints are measured, as long
as they determine the others. Here they are the independent joints, or those given by ``--joints``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rbda_ros import ModelError, Robot, load_robot
from rbda_ros.description.source import add_xacro_argument
from rbda_ros.node.robot_file import urdf_and_loops
from rbda_ros.node.spin import init, join_xacro_arguments, spin

RATE = 100.0  # [Hz]
SWING, PACE = 0.2, 1.0  # [rad, m], [rad/s]


class StandIn(Node):
    """Publishes ``robot_description``, once and for whoever comes later, and ``joint_states``.

    Args:
        description: URDF text.
        swings: for each joint that is published, the middle and the amplitude of its swing.
    """

    def __init__(self, description: str, swings: dict[str, tuple[float, float]]) -> None:
        super().__init__("stand_in_robot")
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = self.create_publisher(String, "robot_description", latched)
        self._description.publish(String(data=description))
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._message = JointState(name=list(swings))
        self._swings = list(swings.values())
        self.create_timer(1.0 / RATE, self._publish)

    def _publish(self) -> None:
        now = self.get_clock().now()
        phases = [PACE * now.nanoseconds * 1e-9 + k for k in range(len(self._swings))]
        swings = list(zip(self._swings, phases, strict=True))
        self._message.header.stamp = now.to_msg()
        self._message.position = [m + a * math.sin(phase) for (m, a), phase in swings]
        self._message.velocity = [a * PACE * math.cos(phase) for (_, a), phase in swings]
        self._states.publish(self._message)


def swings(robot: Robot, joints: Sequence[str] = ()) -> dict[str, tuple[float, float]]:
    """Middle and amplitude for each joint, around the assembly and inside the joint's limits.

    Args:
        robot: the model.
        joints: names; none for the independent joints that have one coordinate.
    """
    places = robot.coordinates.scalar_positions
    limits = {joint.name: joint.limits for joint in robot.description.joints}
    found = {}
    for name in joints or robot.independent_joint_names:
        if name in places:
            home = float(robot.neutral()[places[name]])
            lower, upper = limits[name].lower, limits[name].upper
            swing = min(SWING, (upper - lower) / 2)
            found[name] = min(max(home, lower + swing), upper - swing), swing
    return found


def main() -> int:
    """Publish until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", type=Path, help="URDF, URDF+, xacro, MJCF, SDF or USD file")
    parser.add_argument("--loops", type=Path, metavar="FILE", help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    parser.add_argument("--joints", nargs="+", default=[], help="joints that are measured")
    arguments = join_xacro_arguments(sys.argv)
    given = parser.parse_args(remove_ros_args(arguments)[1:])
    signals = init(arguments[1:])
    try:
        xacro = dict(given.xacro or ())
        robot = load_robot(given.robot, given.loops, xacro_arguments=xacro)
        moving = swings(robot, given.joints)
        description, _ = urdf_and_loops(given.robot, given.loops, xacro)
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    spin(StandIn(description, moving), Future(), signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
