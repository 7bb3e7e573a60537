"""The stream beside a node in C that only echoes, with a client in C: joint states at 1 kHz.

``python -m benchmark.stream echo PRIORITY`` is the echo, and ``busy`` our node in a process where
another thread of Python never rests. ``references JOINT ...`` publishes references at 1 kHz, and
``listener`` takes the completed joint states, in C.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import yaml

from benchmark import native
from benchmark.limbs import limbs
from benchmark.processes import at_priority, own_domain, program, until
from rbda_ros import load_robot
from rbda_ros.control.native import write_joint_state
from rbda_ros.node.main import main as serve

Row = dict[str, object]
Trips = dict[str, np.ndarray]  # [s], of each contender; the echo first

JOINTS = 30
ROUNDS, MESSAGES, WARM_UP = 12, 500, 100  # turns, messages of each, and before these
COMPILING = 15.0  # [s] in which a node has compiled all of its kernels
PRIORITIES = 0, 40  # of the contenders
MEASURING = 50  # priority of the client: its own delays are not the node's
ANSWERED = 3  # trajectories by which their kernel is compiled
TOPICS = {
    "ours": ("/ours/joint_states", "/ours/dynamics/feedforward"),
    "busy": ("/busy/joint_states", "/busy/dynamics/feedforward"),
    "echo": ("/echo/joint_states", "/echo/feedforward"),
}


RAMP = ("-p", "ramp_in:=1.0")
RATE = ("-p", "effort_rate_limit:=1000.0")
ZERO = ("-p", "on_refusal:=zero")
EXTERNAL = ("-p", "publish_external_effort:=true")
COMPLETED = ("-p", "publish_joint_states:=always")
REFERENCE = ("-p", "acceleration_source:=reference")
SAFETY = {
    "a ramp": RAMP,
    "a rate limit": RATE,
    "zeros after a rejection": ZERO,
    "external efforts": EXTERNAL,
    "completed states": COMPLETED,
    "references at 1 kHz": REFERENCE,
    "all of these": (*RAMP, *RATE, *ZERO, *EXTERNAL, *COMPLETED, *REFERENCE),
}
"""Settings that must cost next to nothing, as arguments of the node."""
BESIDE = {COMPLETED[1]: "listener", REFERENCE[1]: "references"}
"""Programs that run beside the node, and beside the echo in its turns, with these settings."""
PERIOD = 1e-3  # of references [s]


class Client:
    """Times one contender after the other."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, count = names, len(names)
        still, moving = np.zeros(count).tobytes(), np.full(count, 0.1).tobytes()
        marked = np.full(count, 1234.5).tobytes()
        self._data = write_joint_state(names, 0, still, moving, np.zeros(count).tobytes())
        where = write_joint_state(names, 0, marked, moving, np.zeros(count).tobytes())
        self._at = where.index(marked)  # of the positions

    def turn(self, who: str, count: int = MESSAGES) -> np.ndarray:
        """Round trips of one contender [s]."""
        names = len(self.names)
        return native.round_trips(*TOPICS[who], self._data, self._at, names, count, WARM_UP)

    def turns(self, *contenders: str, rounds: int = ROUNDS) -> Trips:
        """Round trips of contenders that take turns [s]; who measures goes first."""
        taken: dict[str, list[np.ndarray]] = {who: [] for who in contenders}
        with at_priority(MEASURING):
            for _ in range(rounds):
                for who in contenders:
                    taken[who].append(self.turn(who))
        return {who: np.concatenate(trips) for who, trips in taken.items()}


def rows() -> Iterator[Row]:
    """Joint states to efforts, against a node in C that only echoes."""
    own_domain()
    native.library()
    urdf, loops = limbs(JOINTS)
    values = {"robot_description": urdf, "loop_constraints": yaml.safe_dump(loops)}
    client = Client(load_robot(urdf, loops).independent_joint_names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = folder / "parameters.yaml"
        parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
        ros = "--ros-args", "--params-file", str(parameters)
        everything = SAFETY["all of these"]
        with program(folder, "rbda_ros.cli", "serve", *ros, "-r", "__ns:=/ours", *everything):
            client.turn("ours")
            time.sleep(COMPILING)  # then later nodes find these kernels on disk
        for priority in PRIORITIES:
            yield from _rows_at(priority, client, folder, ros)


def _rows_at(priority: int, client: Client, folder: Path, ros: Sequence[str]) -> Iterator[Row]:
    """With the threads of both contenders at some real-time priority, or 0."""
    arguments = *ros, "-p", f"realtime_priority:={priority}", "-r"
    at = f"priority {priority}, "
    with program(folder, "benchmark.stream", "echo", str(priority)):
        with program(folder, "rbda_ros.cli", "serve", *arguments, "__ns:=/ours"):
            client.turn("ours")
            quiet = client.turns("echo", "ours")
            yield from _compare(f"{at}alone", quiet, quiet)
        for what, values in SAFETY.items():
            with ExitStack() as beside:
                for part in [BESIDE[value] for value in values if value in BESIDE]:
                    beside.enter_context(program(folder, "benchmark.stream", part, *client.names))
                node = "rbda_ros.cli", "serve", *arguments, "__ns:=/ours", *values
                beside.enter_context(program(folder, *node))
                client.turn("ours")
                yield from _compare(f"{at}with {what}", client.turns("echo", "ours"), quiet)
        with program(folder, "rbda_ros.cli", "serve", *arguments, "__ns:=/ours"):
            client.turn("ours")
            with program(folder, "benchmark.latency", "caller", str(JOINTS)):
                log = folder / "benchmark.latency.log"
                until(lambda: log.read_bytes().count(b"answered") > ANSWERED)
                trips = client.turns("echo", "ours")
            yield from _compare(f"{at}beside trajectories of 10000 points", trips, quiet)
        with program(folder, "benchmark.stream", "busy", *arguments, "__ns:=/busy"):
            client.turn("busy")
            trips = client.turns("echo", "busy")
        yield from _compare(f"{at}beside a thread of Python that never rests", trips, quiet)


def _compare(work: str, trips: Trips, quiet: Trips) -> Iterator[Row]:
    echo = trips["echo"]
    names = "echo in C", "dynamics"
    for name, these, alone in zip(names, trips.values(), quiet.values(), strict=True):
        p99 = float(np.percentile(these, 99))
        yield {
            "work": f"{JOINTS} joints, {work}",
            "node": name,
            "answered": len(these) / (ROUNDS * MESSAGES),
            "median_us": 1e6 * float(np.median(these)),
            "p99_us": 1e6 * p99,
            "median_ratio": float(np.median(these) / np.median(echo)),
            "p99_ratio": p99 / float(np.percentile(echo, 99)),
            "p99_over_alone": p99 / float(np.percentile(alone, 99)),
        }


def _never_rest() -> None:
    while True:
        sum(range(1000))


def _publish_references(names: Sequence[str]) -> None:
    """A reference every millisecond: accelerations of the independent joints."""
    import rclpy
    from rclpy.serialization import serialize_message
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    rclpy.init()
    node = rclpy.create_node("references")
    publisher = node.create_publisher(JointTrajectory, "/ours/dynamics/reference", 10)
    point = JointTrajectoryPoint(accelerations=[0.1] * len(names))
    data = serialize_message(JointTrajectory(joint_names=list(names), points=[point]))
    due = time.monotonic()
    while rclpy.ok():
        publisher.publish(data)
        due += PERIOD
        time.sleep(max(due - time.monotonic(), 0.0))


if __name__ == "__main__" and sys.argv[1] == "echo":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if priority := int(sys.argv[2]):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))  # its threads inherit it
    native.run_echo()
elif __name__ == "__main__" and sys.argv[1] == "references":
    _publish_references(sys.argv[2:])
elif __name__ == "__main__" and sys.argv[1] == "listener":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    native.run_listener("/ours/dynamics/joint_states")
elif __name__ == "__main__" and sys.argv[1] == "busy":
    threading.Thread(target=_never_rest, daemon=True).start()
    serve(sys.argv[2:])
