"""Random closed mechanisms swing freely: energy stays, or y's dead point ends the swing clearly.

``PYTHONPATH=.:test python test/robot/test_free_swing.py 0 100 10`` is the long run: first and last
mechanism, seconds; with ``change`` behind it, other joints become y before its dead points.
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
LONGEST_STEP, SHORTEST_STEP = 0.02, 1e-7
"""Steps of the integrator [s]; it gives up below the shortest."""
TOLERANCE = 1e-12
"""Of the integrator. With 1e-10 it, and not the dynamics, took 1e-6 J from a swing whose y comes
near dead points 140 times."""


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


class Swing:
    """A mechanism that moves freely from its assembly, with random velocities.

    Steps that leave the reach of y, or come much nearer to its dead point, are taken again in
    smaller ones: there accelerations grow without bound.
    """

    def __init__(self, seed: int, may_change: bool) -> None:
        mechanism = closable(seed)
        self.robot = load_robot(mechanism.urdf, mechanism.loops)
        self.q = self.robot.tree.home
        self.yd = np.random.default_rng(seed).normal(size=self.robot.ny)
        self.t, self.changes, self.may_change = 0.0, 0, may_change
        self.start, self.worst = energy(self.robot, self.q, self.yd), 0.0
        self.conditioning = dead_point(self.robot, self.q)

    def run(self, seconds: float) -> str:
        """Swing on, and say what ended it."""
        step = LONGEST_STEP
        steps = self._solver(seconds, step)
        while steps.status == "running":
            why = self._advance(steps)
            if why:
                step = 0.25 * min(step, steps.h_abs)
                if step < SHORTEST_STEP:
                    return why
                steps = self._solver(seconds, step)
                continue
            step = float(steps.step_size)
            if self.conditioning < CHANGE and self.may_change and self._change():
                steps = self._solver(seconds, step)
            if self.conditioning < NEAR_DEAD_POINT:
                return "y's dead point"
        return "time" if steps.status == "finished" else "the solver's smallest step"

    def _solver(self, seconds: float, step: float) -> DOP853:
        robot = self.robot

        def rates(t: float, state: np.ndarray) -> np.ndarray:
            y, yd = np.split(state, 2)
            position = robot.close(y, self.q)  # from the last step: far ways are slow, or no ways
            return np.concatenate([yd, robot.forward_dynamics(position, yd, np.zeros(robot.ny))])

        state = np.concatenate([robot.independent_position(self.q), self.yd])
        return DOP853(
            rates, self.t, state, seconds, rtol=TOLERANCE, atol=TOLERANCE,
            max_step=LONGEST_STEP, first_step=min(step, seconds - self.t),
        )  # fmt: skip

    def _advance(self, steps: DOP853) -> str:
        """One step, if it is a good one; else why it is not."""
        try:
            steps.step()
            y, yd = np.split(steps.y, 2)
            q = self.robot.close(y, self.q)
        except CLEAR_STOPS as stop:
            return type(stop).__name__
        conditioning = dead_point(self.robot, q)
        if conditioning < (0.9 if self.conditioning < CHANGE else 0.5) * self.conditioning:
            return "y's dead point"
        self.q, self.yd, self.t, self.conditioning = q, yd, float(steps.t), conditioning
        self.worst = max(self.worst, abs(energy(self.robot, q, yd) - self.start))
        return ""

    def _change(self) -> bool:
        """Let other joints be y, where some are much better."""
        other = self.robot.with_independent_joints(at=self.q)
        conditioning = dead_point(other, self.q)
        if conditioning < 2.0 * self.conditioning:
            return False
        velocity = self.robot.spanning_velocity(self.q, self.yd)
        self.yd = velocity[list(other.tree.independent)]
        self.robot, self.conditioning, self.changes = other, conditioning, self.changes + 1
        return True


@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_energy_stays_or_the_swing_ends_clearly(seed):
    swing = Swing(seed, may_change=False)
    swing.run(0.3)
    assert swing.worst < 1e-6


if __name__ == "__main__":
    first, last, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    for seed in range(first, last):
        swing = Swing(seed, "change" in sys.argv)
        ended = swing.run(seconds)
        print(
            f"seed {seed}: {swing.worst:.1e} J after {swing.t:.2f} s and {swing.changes} changes,"
            f" ended by {ended}",
            flush=True,
        )
