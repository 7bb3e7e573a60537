"""The node on robots of other people at 1 kHz: which states it answers, and whether rightly.

    ROS_DOMAIN_ID=30 python -m tools.hardening.served_files robot.xml robot.urdf=loops.yaml ...

The motors of each robot swing around its assembly, as far as its loops close, and joints with
springs that motors do not determine swing a tenth as far. Every effort that is
received is compared with that of `Robot`. How many states were answered and rejected is what the
node's diagnostics say; the others were lost on their way, as both topics are best-effort.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry

from benchmark.processes import at_priority
from rbda_ros import ModelError, Robot, load_robot
from tools.hardening.driver import Driver

STATES, PERIOD = 500, 2.0
"""States of the swing, and the time that it takes [s]."""
PASSIVE = 0.1
"""Share of their motion that joints without a motor have."""
REACHES = (0.2, 0.1, 0.05, 0.02)
"""How far the motors swing [rad, m]; the first at which all loops close."""
MEASURING = 30  # real-time priority, below that of the node's stream
DIAGNOSED = 20.0  # [s] that the node's diagnostics may take
WARM, COMPILED = 300, 600.0
"""Answers before counting begins, and the time that they may take, with the node's start [s].

The first start compiles: a Stewart platform of 13 joints in one cluster takes about a minute of
processor time, and longer beside other work. Later starts take the kernels from the disk."""


def measured(robot: Robot) -> list[str]:
    """The motors, and as many other joints as they need to determine the robot: of its springs."""
    places = robot.coordinates.scalar_positions
    velocities, base = robot.coordinates.velocities, robot.coordinates.base_nv
    G = np.array([robot.spanning_velocity(robot.neutral(), e) for e in np.eye(robot.ny)]).T
    chosen: list[str] = []
    rows = np.zeros((0, robot.ny - base))
    motors = [name for name in robot.actuated_joint_names if name in places]
    for name in dict.fromkeys([*motors, *places]):
        more = np.vstack([rows, G[velocities[name].start, base:]])
        if name in motors or np.linalg.matrix_rank(more, 1e-6) > np.linalg.matrix_rank(rows, 1e-6):
            chosen, rows = [*chosen, name], more
    return chosen


def swing(robot: Robot) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, float]:
    """Joints, their positions and velocities (STATES, joints), efforts, and the reach."""
    places = robot.coordinates.scalar_positions
    names = measured(robot)
    phase = 2 * np.pi * np.arange(STATES) / STATES
    rng = np.random.default_rng(0)
    middle = np.array([robot.neutral()[places[name]] for name in names])
    way, shift = rng.uniform(0.5, 1.0, len(names)), rng.uniform(0.0, np.pi, len(names))
    way *= [1.0 if name in robot.actuated_joint_names else PASSIVE for name in names]
    for reach in REACHES:
        x = middle + reach * way * (np.sin(phase[:, None] + shift) - np.sin(shift))
        xd = reach * way * np.cos(phase[:, None] + shift) * 2 * np.pi / PERIOD
        try:
            motion = robot.convert(
                dict(zip(names, x.T, strict=True)), dict(zip(names, xd.T, strict=True))
            )
        except ModelError:
            continue
        yd = np.array(
            [
                robot.independent_velocity(q, dict(zip(names, row, strict=True)))
                for q, row in zip(motion.q, xd, strict=True)
            ]
        )
        # Where the assembly is a dead point of a motor, another joint was taken instead of it.
        x = motion.q[:, [places[name] for name in names]]
        qd = robot.spanning_velocity(motion.q, yd)
        xd = qd[:, [robot.coordinates.velocities[name].start for name in names]]
        efforts = robot.inverse_dynamics_efforts(motion.q, yd, np.zeros_like(yd))[0]
        return names, x, xd, efforts, reach
    raise ModelError(f"{robot.name}: no swing of its motors closes the loops")


def base_at_home(robot: Robot, node: Any) -> Odometry:
    """The pose of a floating base at the assembly, at rest, now."""
    message = Odometry()
    message.header.stamp = node.get_clock().now().to_msg()
    x, y, z, *turn = (float(value) for value in robot.neutral()[:7])
    place, orientation = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z = x, y, z
    orientation.x, orientation.y, orientation.z, orientation.w = turn
    return message


def put_ahead(process: int) -> None:
    """Put all threads of a process that have no real-time priority ahead of other processes.

    The middleware's own threads have none. On a machine where others wait for a processor they
    come too late, and of the states that arrive meanwhile the newest are kept.
    """
    for thread in Path(f"/proc/{process}/task").iterdir():
        number = int(thread.name)
        if os.sched_getscheduler(number) == os.SCHED_OTHER:
            os.sched_setscheduler(number, os.SCHED_FIFO, os.sched_param(MEASURING))


def trial(source: str, rate: float, seconds: float, ahead: bool, folder: Path) -> str:
    """A line of the table for one robot."""
    model, _, loops = source.partition("=")
    robot = load_robot(Path(model), Path(loops) if loops else None)
    names, x, xd, efforts, reach = swing(robot)
    command = [sys.executable, "-m", "rbda_ros.cli", "serve", model]
    command += ["--loops", loops] if loops else []
    with (folder / "node.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    driver = Driver(names, x, xd, [efforts], rate, catch_up=0.0)
    seen: dict[str, int] = {}
    received: list[Any] = []
    kernel = [""]

    def diagnose(message: Any) -> None:
        received.append(message)
        for value in message.status[0].values:
            if value.key == "kernel":
                kernel[0] = value.value
            elif value.key.startswith("refused: ") or value.key == "answered":
                seen[value.key.removeprefix("refused: ")] = int(value.value)

    driver.node.create_subscription(DiagnosticArray, "/diagnostics", diagnose, 10)
    if robot.coordinates.base_nq:  # a floating base stands where it is at the assembly
        bases = driver.node.create_publisher(Odometry, "dynamics/base_state", 10)
        driver.node.create_timer(0.02, lambda: bases.publish(base_at_home(robot, driver.node)))
    try:
        end = time.monotonic() + COMPILED
        while time.monotonic() < end and (driver.answered < WARM or kernel[0] != "compiled"):
            driver.run(1.0)
        if driver.answered < WARM or kernel[0] != "compiled":
            return f"| {model} | the node did not come up in {COMPILED:.0f} s |"
        if ahead:
            put_ahead(process.pid)
        _wait(driver, received)
        before = dict(seen)
        driver.sent = driver.answered = driver.wrong = driver.unanswered = 0
        driver.latencies.clear()
        driver.waiting.clear()
        with at_priority(MEASURING) if ahead else contextlib.nullcontext():
            driver.run(seconds)
        _wait(driver, received)
        counts = driver.counts()
    finally:
        process.terminate()
        process.wait(20.0)
        driver.node.destroy_node()
    new = {key: count - before.get(key, 0) for key, count in seen.items()}
    answers = new.pop("answered")
    why = ", ".join(f"{key} {count}" for key, count in new.items() if count) or "none"
    name = re.sub(r"^.*/([^/]+/[^/]+)$", r"\1", model)
    return (
        f"| {name} | {len(robot.idle_links)} | {reach:g} | {counts['sent']} | {answers} | {why}"
        f" | {counts['answered']} | {counts['wrong']} | {counts['latency_ms'][0]:.2f} |"
    )


def _wait(driver: Driver, received: list[Any]) -> None:
    """Listen until diagnostics are about all that was sent: to the second message from now on."""
    received.clear()
    until = time.monotonic() + DIAGNOSED
    while len(received) < 2 and time.monotonic() < until:
        driver.executor.spin_once(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="robot files, each with =LOOPS if it needs some")
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument(
        "--ahead",
        action="store_true",
        help="put driver and node ahead of all other processes, as on a machine of their own",
    )
    asked = parser.parse_args()
    rclpy.init()
    print("| file | rods | reach | sent | answered | rejected | received | wrong | median [ms] |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for source in asked.files:
            line = trial(source, asked.rate, asked.seconds, asked.ahead, Path(folder))
            print(line, flush=True)
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
