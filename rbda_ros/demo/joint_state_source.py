"""The demo robot in simulation: its motors follow smooth swings, and it publishes joint_states."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from rbda_ros import Robot, Simulator, load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT
from rbda_ros.demo.resources import share_file
from rbda_ros.node.spin import init, spin
from rbda_ros.spatial import Array

RATE = 200.0  # [Hz]
BANDWIDTH = 30.0
"""Of the motors' feedback [rad/s]."""
MAX_STEPS = 100
"""Most steps of the simulation for a message. If it is later than that, it skips the time."""


class DemoSource(Node):
    """Swings each independent joint about the middle of its range, each with its own period.

    The robot is simulated: its motors give the efforts of inverse dynamics, with feedback.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__("demo_source")
        self._message = JointState(name=list(robot.independent_joint_names))
        limits = {joint.name: joint.limits for joint in robot.description.joints}
        swings = []
        for k, name in enumerate(robot.independent_joint_names):
            lower, upper = max(limits[name].lower, -1.5), min(limits[name].upper, 1.5)
            pace = 2.0 * math.pi * (0.25 + 0.1 * k)  # [rad/s]
            swings.append(((lower + upper) / 2, 0.35 * (upper - lower), pace))
        self._swings = np.array(swings).T
        self._robot, self._sim = robot, Simulator(robot)
        self._independent = list(robot.independent_coordinates)
        self._drive()  # have it compiled before time begins
        y, yd, _ = self._wanted(0.0)
        self._sim.reset(robot.close(y), yd)
        self._begin: float | None = None
        self._publisher = self.create_publisher(JointState, "joint_states", 10)
        self.create_timer(1.0 / RATE, self._publish)

    def _wanted(self, t: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of the swings."""
        middle, amplitude, pace = self._swings
        s, c = np.sin(pace * t), np.cos(pace * t)
        return middle + amplitude * s, amplitude * pace * c, -amplitude * pace**2 * s

    def _drive(self) -> None:
        """A step of the simulation by computed torque."""
        robot, q, yd = self._robot, self._sim.q, self._sim.qd[self._independent]
        wanted, rate, acceleration = self._wanted(self._sim.time)
        error = wanted - robot.independent_position(q)
        ydd = acceleration + 2.0 * BANDWIDTH * (rate - yd) + BANDWIDTH**2 * error
        self._sim.step(robot.actuator_efforts(q, robot.inverse_dynamics(q, yd, ydd)))

    def _publish(self) -> None:
        t = self.get_clock().now().nanoseconds * 1e-9
        if self._begin is None:
            self._begin = t
        steps = min(round((t - self._begin - self._sim.time) / self._sim.dt), MAX_STEPS)
        for _ in range(steps):
            self._drive()
        if steps < 0 or steps == MAX_STEPS:
            self._begin = t - self._sim.time
        self._message.header.stamp = self.get_clock().now().to_msg()  # the steps took time
        self._message.position = self._robot.independent_position(self._sim.q).tolist()
        self._message.velocity = self._sim.qd[self._independent].tolist()
        self._publisher.publish(self._message)


def main(argv: Sequence[str] | None = None) -> int:
    """Publish until told to stop."""
    signals = init(sys.argv[1:] if argv is None else argv)
    spin(DemoSource(load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS))), Future(), signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
