"""Random closed mechanisms swing freely: energy stays, or y's dead point ends the swing clearly.

``PYTHONPATH=. python test/robot/test_free_swing.py 100 10`` is the long run: mechanisms, seconds.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from random_mechanisms import closable
from scipy.integrate import DOP853

from rbda_ros import ClosureError, Robot, SingularityError, load_robot

CLEAR_STOPS = (ClosureError, SingularityError)
NEAR_DEAD_POINT = 1e-3
"""Here accelerations of y grow without bound, and energy is no longer told to 1e-6."""


def energy(robot: Robot, q: np.ndarray, yd: np.ndarray) -> float:
    """Kinetic energy, and potential energy by every body's own centre of mass [J]."""
    total = 0.5 * yd @ robot.mass_matrix(q) @ yd
    for link in robot.description.links:
        if link.inertia is not None:
            pose = robot.frame_pose(q, link.name)
            centre = pose[:3, 3] + pose[:3, :3] @ link.inertia.origin.xyz
            total += 9.81 * link.inertia.mass * centre[2]
    return float(total)


def dead_point(robot: Robot, q: np.ndarray) -> float:
    """Least singular value of the dependent columns of K with unit rows: 0 at a dead point of y."""
    least = 1.0
    for node, place in zip(robot.tree.clusters, robot.tree.position_ranges, strict=True):
        if node.loop is not None:
            K = node.loop.jacobian(q[place.start : place.stop])
            K = K / np.linalg.norm(K, axis=1, keepdims=True)
            dependent = [j for j in range(node.nv) if j not in node.independent]
            least = min(least, float(np.linalg.svd(K[:, dependent], compute_uv=False)[-1]))
    return least


def swing(seed: int, seconds: float) -> tuple[float, float, str]:
    """Largest change of energy [J], the time reached [s], and what ended it."""
    mechanism = closable(seed)
    robot = load_robot(mechanism.urdf, mechanism.loops)
    q = robot.tree.home
    pushed = np.random.default_rng(seed).normal(size=robot.ny)
    start = energy(robot, q, pushed)

    def rates(t: float, state: np.ndarray) -> np.ndarray:
        y, yd = np.split(state, 2)
        position = robot.close(y, q)
        return np.concatenate([yd, robot.forward_dynamics(position, yd, np.zeros(robot.ny))])

    worst, ended = 0.0, "time"
    state = np.concatenate([robot.independent_position(q), pushed])
    solver = None
    try:
        solver = DOP853(rates, 0.0, state, seconds, rtol=1e-10, atol=1e-10, max_step=0.02)
        while solver.status == "running":
            solver.step()
            y, yd = np.split(solver.y, 2)
            q = robot.close(y, q)
            if dead_point(robot, q) < NEAR_DEAD_POINT:
                return worst, float(solver.t), "y's dead point"
            worst = max(worst, abs(energy(robot, q, yd) - start))
        ended = "time" if solver.status == "finished" else "the solver's smallest step"
    except CLEAR_STOPS as stop:
        ended = type(stop).__name__
    return worst, 0.0 if solver is None else float(solver.t), ended


@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_energy_stays_or_the_swing_ends_clearly(seed):
    worst, _, _ = swing(seed, 0.3)
    assert worst < 1e-6


if __name__ == "__main__":
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    for seed in range(count):
        worst, reached, ended = swing(seed, seconds)
        print(f"seed {seed}: {worst:.1e} J after {reached:.2f} s, ended by {ended}", flush=True)
