"""Print the efforts that the node publishes, once a second.

    python -m rbda_ros.examples.watch_efforts --seconds 5

The idea: ``~/feedforward`` is a JointState with names and efforts, so anything that shows joint
states shows efforts: this program, ``ros2 topic echo``, rqt, PlotJuggler, Foxglove.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState

from rbda_ros.node.spin import init

PATIENCE = 120.0  # [s] until the first efforts: a busy machine takes long to start the node


class Watch(Node):
    """Keeps the newest efforts, and counts them."""

    def __init__(self) -> None:
        super().__init__("watch_efforts")
        self.newest: JointState | None = None
        self.count = 0
        self.create_subscription(
            JointState, "dynamics/feedforward", self._on_efforts, qos_profile_sensor_data
        )

    def _on_efforts(self, message: JointState) -> None:
        self.newest, self.count = message, self.count + 1


def main() -> int:
    """Print a line a second; 1 where no effort came, 0 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args(remove_ros_args(sys.argv)[1:])
    stop = threading.Event()
    init(sys.argv[1:]).then(stop.set)
    try:
        return _watch(Watch(), given.seconds, stop)
    finally:
        rclpy.try_shutdown()


def _watch(watch: Watch, seconds: int, stop: threading.Event) -> int:
    topic = watch.resolve_topic_name("dynamics/feedforward")
    print(f"waiting for efforts on {topic}", flush=True)
    end = time.monotonic() + PATIENCE
    while watch.newest is None and time.monotonic() < end and not stop.is_set():
        rclpy.spin_once(watch, timeout_sec=0.2)
    if stop.is_set():
        return 0
    if watch.newest is None:
        publishers = watch.count_publishers(topic)
        why = (
            "the node runs but publishes none: /diagnostics says why"
            if publishers
            else "nobody publishes it: start the node in the same ROS_DOMAIN_ID, `rbda_ros serve`"
        )
        print(f"no efforts on {topic} within {PATIENCE:g} s; {why}", file=sys.stderr)
        return 1
    for _ in range(seconds):
        before, end = watch.count, time.monotonic() + 1.0
        while (left := end - time.monotonic()) > 0.0 and not stop.is_set():
            rclpy.spin_once(watch, timeout_sec=min(left, 0.2))
        if stop.is_set():
            return 0
        efforts = zip(watch.newest.name, watch.newest.effort, strict=True)
        listed = ", ".join(f"{name} {effort:+.4f} N m" for name, effort in efforts)
        print(f"{watch.count - before:4d} Hz: {listed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
