"""Computed torque on simulated robots: feedforward of the node, and of the open chain.

``python -m benchmark.tracking [robot ...]`` starts the node ``dynamics`` for each robot and lets it
drive the simulated robot over topics, along a sine: motors' states and wanted accelerations go in,
efforts come out. Each step of 1 ms waits for its efforts, so that the load of the machine does not
matter. Then the same is done with the efforts that the spanning tree, with its loops cut, gives for
the independent joints. It writes the table of docs/simulation.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.performance_page import write_block
from rbda_ros import Robot, Simulator, load_robot
from rbda_ros.demo.closed_loop import NodeController, until_answered
from rbda_ros.examples.stand_in_robot import swings
from rbda_ros.examples.track_trajectory import BANDWIDTH, sine

ROOT = Path(__file__).resolve().parents[1]
COOKBOOK = ROOT / "docs" / "cookbook"
ROBOTS = {
    "demo leg": (
        ROOT / "config" / "robots" / "demo_leg.urdf",
        ROOT / "config" / "robots" / "demo_leg_loops.yaml",
    )
} | {
    name.replace("_", " "): (COOKBOOK / f"{name}.urdf", COOKBOOK / f"{name}.yaml")
    for name in ("four_bar", "parallel_ankle", "delta", "belt", "differential", "slider_crank")
}
SECONDS, SETTLED, DT = 4.0, 1.0, 1e-3
"""Of the motion; from when on the error counts; of a step [s]."""
SHARE = 0.5
"""Of the swings of the example robots, so that all can be reached at once."""

Efforts = Callable[[Simulator, Any], Any]
"""Efforts (na,) of the motors for accelerations (ny,) of the independent joints, at a state."""


def largest_error(robot: Robot, efforts: Efforts, seconds: float = SECONDS) -> float:
    """Largest error of the independent joints along the sine, once settled [rad, m]."""
    middle, amplitude = np.array(list(swings(robot).values())).T * [[1.0], [SHARE]]
    independent = list(robot.independent_coordinates)
    sim = Simulator(robot, DT)
    sim.reset(robot.close(middle))
    worst = 0.0
    for _ in range(round(seconds / DT)):
        y, yd = robot.independent_position(sim.q), sim.qd[independent]
        position, velocity, acceleration = sine(sim.time, amplitude)
        error = middle + position - y
        if sim.time >= SETTLED:
            worst = max(worst, float(np.abs(error).max()))
        wanted = acceleration + 2 * BANDWIDTH * (velocity - yd) + BANDWIDTH**2 * error
        sim.step(efforts(sim, wanted))
    return worst


def open_chain(robot: Robot, file: Path) -> Efforts:
    """Efforts of the spanning tree: what its loops carry to the independent joints is missing."""
    tree = load_robot(file)
    ours, theirs = robot.coordinates.velocities, tree.coordinates.velocities
    of = [ours[name].start for name in tree.joint_names]
    torques = [theirs[name].start for name in robot.independent_joint_names]

    def efforts(sim: Simulator, wanted: Any) -> Any:
        q, qd = sim.q, sim.qd
        yd = qd[list(robot.independent_coordinates)]
        qdd = robot.spanning_acceleration(q, yd, wanted)
        tau = tree.inverse_dynamics(q[of], qd[of], qdd[of])[torques]
        return robot.actuator_efforts(q, tau)

    return efforts


@contextmanager
def node_efforts(robot: Robot, files: tuple[Path, Path]) -> Iterator[Efforts]:
    """The feedforward of a node in a process of its own; each step waits for it."""
    import rclpy

    from rbda_ros.demo.run import node_program

    values = {
        "robot_description": files[0].read_text(),
        "loop_constraints": str(files[1]),
        "acceleration_source": "reference",
    }
    layout, motors = robot.coordinates, robot.actuated_joint_names
    positions = [layout.scalar_positions[name] for name in motors]
    velocities = [layout.velocities[name].start for name in motors]
    with (
        tempfile.TemporaryDirectory(prefix="rbda_ros_tracking_") as folder,
        node_program(Path(folder), values),
    ):
        rclpy.init()
        node = NodeController()

        def efforts(sim: Simulator, wanted: Any) -> Any:
            measured = sim.q[positions], sim.qd[velocities]
            return until_answered(lambda: node.feedforward(robot, *measured, wanted))

        try:
            yield efforts
        finally:
            node.close()
            rclpy.try_shutdown()


def compare(name: str, seconds: float = SECONDS) -> tuple[float, float]:
    """Largest errors with the node and with the open chain [rad, m]."""
    robot = load_robot(*ROBOTS[name])
    with node_efforts(robot, ROBOTS[name]) as efforts:
        with_node = largest_error(robot, efforts, seconds)
    return with_node, largest_error(robot, open_chain(robot, ROBOTS[name][0]), seconds)


def main() -> None:
    """Compare all, print, and write the page if none was left out."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    names = sys.argv[1:] or list(ROBOTS)
    lines = ["| robot | the node's feedforward [mrad] | open chain [mrad] |", "|---|---|---|"]
    for name in names:
        exact, without = compare(name)
        lines.append(f"| {name} | {1e3 * exact:.3f} | {1e3 * without:.3g} |")
        print(lines[-1], flush=True)
    if len(names) == len(ROBOTS):
        write_block("tracking", lines, ROOT / "docs" / "simulation.md")


if __name__ == "__main__":
    main()
