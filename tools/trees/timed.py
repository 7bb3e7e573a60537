"""Times calls in the environment of one tree; ``times.py`` starts it.

It uses what trees since commit 88f33bf have. Every call is made until it takes no less time any
more, which is when its kernels are compiled.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

import numpy as np

from rbda_ros import Robot, load_robot
from rbda_ros.demo.resources import share_file

EXAMPLES = {"ur5_robot": False, "talos_reduced": True}  # with a floating base?
BATCH = 1024
REPEATS, SECONDS = 30, 0.01
PATIENCE = 10.0  # [s] in which all kernels of a call are compiled


def robots() -> dict[str, Robot]:
    """A fixed tree, a floating one, and a robot with loops."""
    found = {}
    for name, floating in EXAMPLES.items():
        (path,) = [p for p in files("example-robot-data") or () if p.name == f"{name}.urdf"]
        found[name] = load_robot(Path(path.locate()).read_text(), floating_base=floating)
    leg, loops = (share_file(f"config/robots/demo_leg{end}") for end in (".urdf", "_loops.yaml"))
    return found | {"demo_leg": load_robot(leg, loops)}


def calls(robot: Robot) -> dict[str, Callable[[], object]]:
    """Calls with one state, and with a batch."""
    rng = np.random.default_rng(0)
    q = robot.close(robot.independent_position(robot.tree.home))
    yd, x = rng.normal(size=(2, robot.ny))
    many, yds, xs = np.tile(q, (BATCH, 1)), np.tile(yd, (BATCH, 1)), np.tile(x, (BATCH, 1))
    link = robot.clusters[-1].links[-1]
    return {
        "inverse_dynamics": lambda: robot.inverse_dynamics(q, yd, x),
        "forward_dynamics": lambda: robot.forward_dynamics(q, yd, x),
        "mass_matrix": lambda: robot.mass_matrix(q),
        "bias_force": lambda: robot.bias_force(q, yd),
        "frame_pose": lambda: robot.frame_pose(q, link),
        "jacobian": lambda: robot.jacobian(q, link),
        "inverse_dynamics_derivatives": lambda: robot.inverse_dynamics_derivatives(q, yd, x),
        "forward_dynamics_derivatives": lambda: robot.forward_dynamics_derivatives(q, yd, x),
        f"inverse_dynamics of {BATCH}": lambda: robot.inverse_dynamics(many, yds, xs),
        f"forward_dynamics of {BATCH}": lambda: robot.forward_dynamics(many, yds, xs),
        f"mass_matrix of {BATCH}": lambda: robot.mass_matrix(many),
    }


def once(call: Callable[[], object], count: int) -> float:
    """Processor time of one of several calls, in all threads [us]."""
    began = time.process_time()
    for _ in range(count):
        call()
    return 1e6 * (time.process_time() - began) / count


def settled(call: Callable[[], object]) -> int:
    """Call it until it is as fast as it gets; how many calls take `SECONDS`."""
    end, best, unchanged = time.monotonic() + PATIENCE, float("inf"), 0
    while unchanged < 20 and time.monotonic() < end:
        taken = once(call, 1)
        unchanged = 0 if taken < 0.9 * best else unchanged + 1
        best = min(best, taken)
        time.sleep(0.02)  # for the compiler
    return max(1, int(SECONDS / max(1e-6 * best, 1e-7)))


def main() -> None:
    """Print the microseconds of each call."""
    taken = {}
    for name, robot in robots().items():
        for what, call in calls(robot).items():
            count = settled(call)
            taken[f"{name}: {what}"] = min(once(call, count) for _ in range(REPEATS))
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
