"""Cost of completed joint states, and how long commands take through the node.

`python -m benchmark.transmission`. The node is a process of its own on the demo leg. Its CPU per
message is read from the kernel, in turns with and without a listener to ~/joint_states; the way
from ~/joint_commands to ~/motor_commands, with efforts of an impedance in them, is timed in turns
with that from joint_states to ~/feedforward.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import rclpy
import yaml
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from rbda_ros import load_robot
from rbda_ros.demo.open_chain import DEMO_LOOPS, DEMO_ROBOT
from rbda_ros.demo.resources import share_file

PERIOD = 1e-3  # [s] between messages
BLOCK = 1.0  # [s] of a turn
ROUNDS = 8
POSE = [0.1, 0.3, 0.9, -0.1]


def main() -> None:
    """Measure and print."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    with tempfile.TemporaryDirectory() as folder:
        parameters = Path(folder) / "parameters.yaml"
        values = {
            "robot_description": share_file(DEMO_ROBOT).read_text(),
            "loop_constraints": str(share_file(DEMO_LOOPS)),
            # Commands take all that there is: springs, dampers and the feedforward.
            "stiffness": "{knee: 80.0, ankle: 30.0}",
            "damping": "{knee: 2.0, ankle: 1.0}",
            "add_feedforward": True,
        }
        parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
        given = "--ros-args", "--params-file", str(parameters)
        node = subprocess.Popen([sys.executable, "-m", "rbda_ros.cli", "serve", *given])
        try:
            rclpy.init()
            Bench(node.pid).run()
        finally:
            rclpy.try_shutdown()
            node.send_signal(signal.SIGINT)
            node.wait(10.0)


class Bench(Node):
    """Publishes states and commands, and measures."""

    def __init__(self, pid: int) -> None:
        super().__init__("bench")
        self._pid = pid
        self._robot = load_robot(share_file(DEMO_ROBOT), share_file(DEMO_LOOPS))
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._commands = self.create_publisher(JointState, "dynamics/joint_commands", 10)
        self._heard: dict[str, Any] = {}
        self._counts: Counter[str] = Counter()
        for topic in ("feedforward", "motor_commands"):
            self._listen(topic)

    def run(self) -> None:
        """Both measurements."""
        while "feedforward" not in self._heard:
            self._round_trip("feedforward", self._states)
        for _ in range(2000):  # until everything is compiled
            self._round_trip("feedforward", self._states)
            self._round_trip("motor_commands", self._commands)
        ways: dict[str, list[float]] = {"feedforward": [], "motor_commands": []}
        for _ in range(2000):
            ways["feedforward"].append(self._round_trip("feedforward", self._states))
            ways["motor_commands"].append(self._round_trip("motor_commands", self._commands))
        medians = {topic: statistics.median(times) for topic, times in ways.items()}
        for topic, median in medians.items():
            print(f"round trip to ~/{topic}: median {1e6 * median:.0f} us")
        print(f"of the feedforward's: {medians['motor_commands'] / medians['feedforward']:.2f}")
        alone, heard, completed = [], [], []
        for _ in range(ROUNDS):
            alone.append(self._block())
            subscription = self._listen("joint_states")
            self._block(0.3)
            self._counts.clear()
            heard.append(self._block())
            completed.append(self._counts["joint_states"] / max(1, self._counts["feedforward"]))
            self.destroy_subscription(subscription)
            self._block(0.3)
        one, other = statistics.median(alone), statistics.median(heard)
        print(
            f"CPU of the node per message: {1e6 * one:.0f} us; {1e6 * other:.0f} us with a listener"
        )
        share = statistics.median(completed)
        print(f"to ~/joint_states: {100 * (other / one - 1):+.0f} %; it heard {share:.2f} of them")

    def _listen(self, topic: str) -> Any:
        return self.create_subscription(
            JointState,
            f"dynamics/{topic}",
            lambda message: self._take(topic, message),
            qos_profile_sensor_data,
        )

    def _take(self, topic: str, message: JointState) -> None:
        self._heard[topic] = message
        self._counts[topic] += 1

    def _message(self) -> JointState:
        names = list(self._robot.independent_joint_names)
        message = JointState(name=names, position=POSE, velocity=[0.1] * 4)
        message.header.stamp = self.get_clock().now().to_msg()
        return message

    def _round_trip(self, topic: str, publisher: Any) -> float:
        """Time until a message is answered [s]; a lost one counts for a tenth of a second."""
        message, began = self._message(), time.perf_counter()
        publisher.publish(message)
        while time.perf_counter() - began < 0.1:
            self._executor.spin_once(0.01)
            heard = self._heard.get(topic)
            if heard is not None and heard.header.stamp == message.header.stamp:
                break
        return time.perf_counter() - began

    def _block(self, seconds: float = BLOCK) -> float:
        """CPU time of the node per message while states come at 1 kHz [s]."""
        before, count = self._cpu(), 0
        end = time.perf_counter() + seconds
        due = time.perf_counter()
        while due < end:
            self._states.publish(self._message())
            count += 1
            due += PERIOD
            while (left := due - time.perf_counter()) > 0.0:
                self._executor.spin_once(left)
        return (self._cpu() - before) / count

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
