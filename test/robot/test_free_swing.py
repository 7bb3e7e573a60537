"""Random closed mechanisms swing freely: energy stays, or y's dead point ends the swing clearly.

``PYTHONPATH=. python test/robot/test_free_swing.py 100 10`` is the long run: mechanisms, seconds;
with ``change`` behind it, other joints become y before its dead points.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from random_mechanisms import closable
from scipy.integrate import DOP853

from rbda_ros import ClosureError, Robot, SingularityError, load_robot

CLEAR_STOPS = (ClosureError, SingularityError)
CHANGE = 0.1
"""Conditioning of y below which other joints take over, where they may."""
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


def swing(seed: int, seconds: float, *, may_change: bool = False) -> tuple[float, float, str]:
    """Largest change of energy [J], the time reached [s], and what ended it.

    With `may_change`, other joints become y before its dead point is reached.
    """
    mechanism = closable(seed)
    robot = load_robot(mechanism.urdf, mechanism.loops)
    q, yd = robot.tree.home, np.random.default_rng(seed).normal(size=robot.ny)
    start, worst, t, changes = energy(robot, q, yd), 0.0, 0.0, 0

    def rates(t: float, state: np.ndarray) -> np.ndarray:
        y, yd = np.split(state, 2)
        position = robot.close(y, q)
        return np.concatenate([yd, robot.forward_dynamics(position, yd, np.zeros(robot.ny))])

    def solver() -> DOP853:
        state = np.concatenate([robot.independent_position(q), yd])
        return DOP853(rates, t, state, seconds, rtol=1e-10, atol=1e-10, max_step=0.02)

    try:
        steps = solver()
        while steps.status == "running":
            steps.step()
            y, yd = np.split(steps.y, 2)
            q, t = robot.close(y, q), float(steps.t)
            conditioning = dead_point(robot, q)
            if may_change and conditioning < CHANGE:
                other = robot.with_independent_joints(at=q)
                if dead_point(other, q) > 2.0 * conditioning:
                    yd = robot.spanning_velocity(q, yd)[list(other.tree.independent)]
                    robot, changes = other, changes + 1
                    steps, conditioning = solver(), dead_point(robot, q)
            if conditioning < NEAR_DEAD_POINT:
                return worst, t, f"y's dead point, after {changes} changes"
            worst = max(worst, abs(energy(robot, q, yd) - start))
        ended = "time" if steps.status == "finished" else "the solver's smallest step"
    except CLEAR_STOPS as stop:
        ended = type(stop).__name__
    return worst, t, f"{ended}, after {changes} changes"


@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_energy_stays_or_the_swing_ends_clearly(seed):
    worst, _, _ = swing(seed, 0.3)
    assert worst < 1e-6


if __name__ == "__main__":
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    for seed in range(count):
        worst, reached, ended = swing(seed, seconds, may_change="change" in sys.argv)
        print(f"seed {seed}: {worst:.1e} J after {reached:.2f} s, ended by {ended}", flush=True)
