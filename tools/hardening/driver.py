"""A driver of the demo leg: publishes its states at a rate, and checks every effort that answers.

    python -m tools.hardening.driver --rate 1000 --seconds 60 --report report.json

The leg swings along a cycle of states whose efforts are known beforehand, by the methods of
`Robot`, for the leg as it is and with the load that the soak puts on. The report is written once a
second, and when it ends.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from rbda_ros import Payload, Robot, load_robot
from rbda_ros.demo.resources import share_file

URDF, LOOPS = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"
LOAD = Payload("foot", 1.0, (0.0, 0.0, -0.1))
STATES = 200
CLOSE = 1e-6
FOUND = 10.0  # [s] in which there must be a node
LATE = 0.5  # [s] after which a state counts as unanswered
QOS = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)


def cycle(robot: Robot) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Positions and velocities (STATES, ny) of a swing, and efforts for each load."""
    phase = 2 * np.pi * np.arange(STATES) / STATES
    middle, size = np.array([0.0, 0.3, 0.9, -0.1]), np.array([0.2, 0.3, 0.4, 0.15])
    y = middle + size * np.sin(phase)[:, None]
    yd = 2.0 * size * np.cos(phase)[:, None]
    ydd = np.zeros_like(y)
    loaded = robot.with_payloads({"load": LOAD})
    efforts = []
    for each in (robot, loaded):
        q = each.close(y)
        efforts.append(each.inverse_dynamics_efforts(q, yd, ydd)[0])
    return y, yd, efforts


class Driver:
    """Publishes, listens and counts.

    Args:
        names: of the joints.
        positions: (states, joints) of a cycle.
        velocities: likewise.
        efforts: (states, motors) that may answer, one for each load.
        rate: of the states [Hz].
        catch_up: how far behind it may be to send all states that are missing, at once [s].
    """

    def __init__(
        self,
        names: Sequence[str],
        positions: np.ndarray,
        velocities: np.ndarray,
        efforts: Sequence[np.ndarray],
        rate: float,
        catch_up: float = 0.1,
    ) -> None:
        self.message = JointState(name=list(names))
        self.positions, self.velocities = positions.tolist(), velocities.tolist()
        self.efforts = efforts
        self.period, self.catch_up = 1.0 / rate, catch_up
        self.node = rclpy.create_node(f"driver_{time.monotonic_ns()}")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.publisher = self.node.create_publisher(JointState, "joint_states", QOS)
        self.subscription = self.node.create_subscription(
            JointState, "dynamics/feedforward", self.on_effort, QOS
        )
        self.waiting: dict[int, int] = {}
        self.sent = self.answered = self.wrong = self.unanswered = 0
        self.latencies: list[float] = []
        self.stop = False

    def on_effort(self, message: Any) -> None:
        now = time.time_ns()
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        k = self.waiting.pop(stamp, None)
        if k is None:
            return  # late, or of another driver
        self.answered += 1
        self.latencies.append((now - stamp) * 1e-9)
        effort = np.array(message.effort)
        if not any(np.allclose(effort, known[k], CLOSE, CLOSE) for known in self.efforts):
            self.wrong += 1

    def meet(self) -> None:
        """Wait until the middleware has found the node, which takes it up to 3 s."""
        end = time.monotonic() + FOUND
        while time.monotonic() < end and not self.stop:
            if self.publisher.get_subscription_count() and self.subscription.get_publisher_count():
                break
            self.executor.spin_once(0.05)

    def run(self, seconds: float, report: Path | None = None) -> None:
        self.meet()
        begin = following = time.monotonic()
        written = begin
        k = 0
        while not self.stop and (now := time.monotonic()) < begin + seconds:
            if now < following:
                self.executor.spin_once(following - now)
                continue
            following = max(following + self.period, now - self.catch_up)
            stamp = time.time_ns()
            header = self.message.header.stamp
            header.sec, header.nanosec = divmod(stamp, 1_000_000_000)
            self.message.position, self.message.velocity = self.positions[k], self.velocities[k]
            self.waiting[stamp] = k
            self.publisher.publish(self.message)
            self.sent += 1
            k = (k + 1) % len(self.positions)
            if report is not None and now > written + 1.0:
                written = now
                self.write(report)
        end = time.monotonic() + LATE
        while not self.stop and self.waiting and time.monotonic() < end:
            self.executor.spin_once(0.01)
        if report is not None:
            self.write(report)

    def counts(self) -> dict[str, Any]:
        """Count what was not answered in time."""
        late = [stamp for stamp in self.waiting if time.time_ns() - stamp > LATE * 1e9]
        for stamp in late:
            del self.waiting[stamp]
        self.unanswered += len(late)
        times = np.array(self.latencies[-200_000:] or [0.0]) * 1e3
        return {
            "sent": self.sent,
            "answered": self.answered,
            "unanswered": self.unanswered,
            "wrong": self.wrong,
            "latency_ms": [round(float(np.percentile(times, p)), 3) for p in (50, 99, 99.9, 100)],
        }

    def write(self, report: Path) -> None:
        """Write all counts."""
        temporary = report.with_suffix(".new")
        temporary.write_text(json.dumps(self.counts()))
        temporary.replace(report)


def leg_driver(rate: float, reverse: bool) -> Driver:
    """A driver of the demo leg, whose names may be in the opposite order."""
    robot = load_robot(share_file(URDF), share_file(LOOPS))
    names = list(robot.independent_joint_names)
    y, yd, efforts = cycle(robot)
    order = list(range(len(names)))[:: -1 if reverse else 1]
    return Driver([names[k] for k in order], y[:, order], yd[:, order], efforts, rate)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--report", type=Path, required=True)
    asked = parser.parse_args()
    rclpy.init()
    driver = leg_driver(asked.rate, asked.reverse)

    def stop(*_: Any) -> None:
        driver.stop = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    driver.run(asked.seconds, asked.report)
    driver.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
