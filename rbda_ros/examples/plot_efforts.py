"""Plot the efforts of the node against those that the drivers measure.

    python -m rbda_ros.examples.plot_efforts --seconds 5 --output efforts.svg

The idea: ``~/feedforward`` carries the stamp of the joint states that it answers, so that the two
are matched exactly, however late either comes. What is left between the lines is what the model
does not have: friction, a load, or a wrong mass.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState

from rbda_ros.node.spin import init

PATIENCE = 120.0  # [s] until the first efforts: a busy machine takes long to start the node
Efforts = dict[str, float]  # by joint [N m, N]


class Recorder(Node):
    """Keeps efforts by stamp [ns]: measured ones of ``joint_states``, computed ones of the node."""

    def __init__(self) -> None:
        super().__init__("plot_efforts")
        self.measured: dict[int, Efforts] = {}
        self.computed: dict[int, Efforts] = {}
        for topic, recorded in (
            ("joint_states", self.measured),
            ("dynamics/feedforward", self.computed),
        ):
            self.create_subscription(
                JointState,
                topic,
                lambda m, recorded=recorded: add(m, recorded),
                qos_profile_sensor_data,
            )

    def record(self, seconds: float, until_both: bool = False) -> None:
        """Listen for some seconds, or until there are efforts of both kinds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until_both and self.measured and self.computed):
            rclpy.spin_once(self, timeout_sec=0.1)


def add(message: JointState, recorded: dict[int, Efforts]) -> None:
    """Put the efforts of a message under its stamp."""
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    if len(message.effort) == len(message.name):
        recorded[stamp] = dict(zip(message.name, message.effort, strict=True))


def matched(
    measured: dict[int, Efforts], computed: dict[int, Efforts]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times (N,) [s] from the first on; by joint, measured and computed efforts (2, N)."""
    stamps = sorted(measured.keys() & computed.keys())
    if not stamps:
        return np.zeros(0), {}
    joints = [name for name in computed[stamps[0]] if name in measured[stamps[0]]]
    t = (np.array(stamps) - stamps[0]) * 1e-9
    both = {
        n: np.array([[of[s][n] for s in stamps] for of in (measured, computed)]) for n in joints
    }
    return t, both


def plot(t: np.ndarray, both: dict[str, np.ndarray], output: Path) -> None:
    """Draw one row a joint."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    size = (8, 1.0 + 1.6 * len(both))
    figure, axes = plt.subplots(len(both), sharex=True, squeeze=False, figsize=size)
    for axis, (joint, (measured, computed)) in zip(axes[:, 0], both.items(), strict=True):
        axis.plot(t, measured, label="measured")
        axis.plot(t, computed, "--", label="feedforward")
        axis.set_ylabel(f"{joint}\n[N m, N]")
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("time [s]")
    figure.savefig(output)


def main() -> int:
    """Record, print the differences, and plot."""
    parser = argparse.ArgumentParser(description="Plot feedforward against measured efforts.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to record")
    parser.add_argument("--output", type=Path, default=Path("efforts.svg"), help="picture to write")
    options = parser.parse_args(remove_ros_args(sys.argv)[1:])
    init(sys.argv[1:])  # Ctrl-C ends it at once
    recorder = Recorder()
    recorder.record(PATIENCE, until_both=True)  # the nodes have to find each other
    recorder.record(options.seconds)
    rclpy.shutdown()
    t, both = matched(recorder.measured, recorder.computed)
    if not both:
        print(
            f"nothing to compare: {len(recorder.measured)} joint_states with efforts, "
            f"{len(recorder.computed)} of dynamics/feedforward; check that the driver gives the "
            "efforts of the actuated joints",
            file=sys.stderr,
        )
        return 1
    for joint, (measured, computed) in both.items():
        apart = np.sqrt(np.mean((measured - computed) ** 2))
        print(f"{joint}: {len(t)} samples, {apart:.3g} apart (root mean square)")
    plot(t, both, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
