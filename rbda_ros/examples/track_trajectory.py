r"""Have a robot follow a slow sine by computed torque, with the node's feedforward as its model.

    rbda_ros simulate robot.urdf --loops loops.yaml \
      --ros-args -r simulated_robot/motor_commands:=dynamics/feedforward
    rbda_ros serve robot.urdf --loops loops.yaml --ros-args -p acceleration_source:=reference
    python -m rbda_ros.examples.track_trajectory robot.urdf --loops loops.yaml

The idea: the reference is the acceleration that is wanted and what brings the error back,
``ydd + 2 w e_dot + w^2 e``. The node turns it into efforts of the motors; with an exact model the
error is that of a spring and damper that nothing disturbs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.task import Future
from rclpy.time import Time
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import ModelError, load_robot
from rbda_ros.description.source import add_xacro_argument
from rbda_ros.examples.stand_in_robot import swings
from rbda_ros.node.spin import init, join_xacro_arguments, spin
from rbda_ros.spatial import Array

BANDWIDTH = 30.0
"""w of the error [rad/s]."""
PACE, FADE = 2.0, 1.0
"""Of the sine [rad/s], and the time constant with which it begins [s]."""
SETTLED = 3.0
"""Time from which on the error counts [s]."""


def sine(t: float, amplitude: Array) -> tuple[Array, Array, Array]:
    """Position about the middle, velocity and acceleration (n,) of a sine that fades in."""
    w, growth = PACE, np.exp(-t / FADE)
    size, rate, bend = 1.0 - growth, growth / FADE, -growth / FADE**2
    s, c = np.sin(w * t), np.cos(w * t)
    motion = size * s, rate * s + size * w * c, bend * s + 2 * rate * w * c - size * w * w * s
    position, velocity, acceleration = (amplitude * each for each in motion)
    return position, velocity, acceleration


class Tracker(Node):
    """Publishes ``dynamics/reference`` for every joint state, and keeps the errors.

    Args:
        joints: middle and amplitude of each joint that is to move.
        seconds: when to end; None for never.
    """

    def __init__(self, joints: Mapping[str, tuple[float, float]], seconds: float | None) -> None:
        super().__init__("track_trajectory")
        self.done, self.errors = Future(), [0.0]
        self._names = list(joints)
        self._middle, self._amplitude = np.array(list(joints.values())).T
        self._seconds, self._begin, self._told = seconds, 0.0, time.monotonic()
        self._reference = self.create_publisher(JointTrajectory, "dynamics/reference", 10)
        self.create_subscription(
            JointState, "joint_states", self._on_state, qos_profile_sensor_data
        )

    def _on_state(self, message: JointState) -> None:
        place = {name: i for i, name in enumerate(message.name)}
        if not set(self._names) <= set(place):
            return
        order = [place[name] for name in self._names]
        y, yd = np.asarray(message.position)[order], np.asarray(message.velocity)[order]
        now = Time.from_msg(message.header.stamp).nanoseconds * 1e-9
        self._begin = self._begin or now
        t = now - self._begin
        position, velocity, acceleration = sine(t, self._amplitude)
        error, error_rate = self._middle + position - y, velocity - yd
        wanted = acceleration + 2 * BANDWIDTH * error_rate + BANDWIDTH**2 * error
        reference = JointTrajectory(joint_names=self._names)
        reference.header.stamp = message.header.stamp
        reference.points = [JointTrajectoryPoint(accelerations=wanted.tolist())]
        self._reference.publish(reference)
        if t > SETTLED:
            self.errors.append(float(np.abs(error).max()))
        if time.monotonic() - self._told > 1.0:
            self._told = time.monotonic()
            print(f"{t:6.1f} s  largest error {1e3 * np.abs(error).max():.3f} mrad", flush=True)
        if self._seconds is not None and t > self._seconds and not self.done.done():
            self.done.set_result(None)


def main() -> int:
    """Track until told to stop, and print the root-mean-square error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", type=Path, help="URDF, URDF+, xacro, MJCF, SDF or USD file")
    parser.add_argument("--loops", type=Path, metavar="FILE", help="loop-constraint file (YAML)")
    add_xacro_argument(parser)
    parser.add_argument("--seconds", type=float, help="end after so many seconds")
    arguments = join_xacro_arguments(sys.argv)
    given = parser.parse_args(remove_ros_args(arguments)[1:])
    signals = init(arguments[1:])
    try:
        xacro = dict(given.xacro or ())
        robot = load_robot(given.robot, given.loops, xacro_arguments=xacro)
        node = Tracker(swings(robot), given.seconds)
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    spin(node, node.done, signals)
    rms = float(np.sqrt(np.mean(np.square(node.errors))))
    print(f"root-mean-square error {1e3 * rms:.3f} mrad")
    return 0


if __name__ == "__main__":
    sys.exit(main())
