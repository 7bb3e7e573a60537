"""A robot on one foot with a parallel ankle learns to balance, by random search.

    python -m rbda_ros.examples.learn_to_balance

The idea: a simulator of a batch is a vector environment of Gymnasium, with contacts of the foot and
with exact loops. Every robot tries another policy: a generation of the search is one episode of the
batch (Mania, Guy and Recht 2018, "Simple random search provides a competitive approach to
reinforcement learning"). Needs Gymnasium (extra ``learn``).
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from rbda_ros import Robot, Simulator, load_robot
from rbda_ros.examples.optimal_motion import ANKLE, ANKLE_LOOPS
from rbda_ros.simulation.ground_contacts import Box
from rbda_ros.simulation.vector_env import SimulatorVectorEnv
from rbda_ros.spatial import Array

SHANK = (
    '<link name="shank"><inertial><origin xyz="0 0 0.1"/><mass value="4"/><inertia ixx="0.05"'
    ' iyy="0.05" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
FOOT = Box("foot", (0.2, 0.1, 0.02), (0.03, 0.0, -0.05), friction=0.8)
HEIGHT = 0.36
"""Of the shank's frame over the ground, where it stands [m]."""
DIRECTIONS, BEST, SPREAD, RATE = 32, 8, 0.3, 0.3
"""Of the search: directions of a generation, those that count, how far it looks, and its step."""


def standing_robot() -> Robot:
    """A shank with a weight on a foot, which two motors pitch and roll by rods."""
    text = ANKLE.replace('<link name="shank"/>', SHANK)
    return load_robot(text, ANKLE_LOOPS, floating_base=True)


def environment(count: int, length: int = 200, threads: int | None = None) -> SimulatorVectorEnv:
    """Robots that start with a small lean and velocity; an episode ends at a lean of 0.5 rad."""
    robot = standing_robot()
    sim = Simulator(robot, 1e-3, count, contacts=[FOOT], threads=threads)
    home = np.r_[0.0, 0.0, HEIGHT, 0.0, 0.0, 0.0, 1.0, robot.neutral()[7:]]
    joints = [robot.coordinates.velocities[name].start for name in ("ankle_pitch", "ankle_roll")]
    places = [robot.coordinates.scalar_positions[name] for name in ("ankle_pitch", "ankle_roll")]

    def lean(sim: Simulator) -> Array:
        q = sim.q
        x, y, z, w = q[:, 3:7].T
        return np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x)], axis=1)  # gravity in it

    def observe(sim: Simulator) -> Array:
        qd, q = sim.qd, sim.q
        return np.hstack([lean(sim), 0.1 * qd[:, 3:5], q[:, places], 0.1 * qd[:, joints]])

    def fallen(sim: Simulator) -> NDArray[np.bool_]:
        return np.abs(lean(sim)).max(axis=1) > 0.5

    def reward(sim: Simulator) -> Array:
        return 1.0 - 4.0 * np.square(lean(sim)).sum(axis=1)

    def start(random: np.random.Generator, number: int) -> tuple[Array, Array]:
        q, qd = np.tile(home, (number, 1)), np.zeros((number, robot.ny))
        qd[:, :2] = random.normal(0.0, 0.05, (number, 2))
        qd[:, 3:5] = random.normal(0.0, 0.1, (number, 2))
        return q, qd

    return SimulatorVectorEnv(
        sim, observe=observe, reward=reward, fallen=fallen, start=start, length=length
    )


def returns(env: SimulatorVectorEnv, policies: Array, seed: int) -> Array:
    """(N,) sum of rewards in one episode, of a linear policy (N, motors, n) for each robot."""
    seen, _ = env.reset(seed=seed)
    total, alive = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    while alive.any():
        seen, reward, failed, late, _ = env.step(np.einsum("kij,kj->ki", policies, seen))
        total += np.where(alive, reward, 0.0)
        alive &= ~(failed | late)
    return total


def learn(generations: int, seed: int = 0, length: int = 200) -> tuple[Array, list[float]]:
    """Search; returns the policy (motors, n) and the mean return of each generation."""
    env = environment(2 * DIRECTIONS, length)
    random = np.random.default_rng(seed)
    shape = env.action_space.sample().shape[1], env.reset()[0].shape[1]
    policy, means = np.zeros(shape), []
    for generation in range(generations):
        directions = random.standard_normal((DIRECTIONS, *shape))
        tried = np.concatenate([policy + SPREAD * directions, policy - SPREAD * directions])
        both = returns(env, tried, generation).reshape(2, DIRECTIONS)
        best = np.argsort(-both.max(axis=0))[:BEST]
        gain, spread = both[0, best] - both[1, best], max(float(both[:, best].std()), 1e-9)
        policy = policy + RATE / (BEST * spread) * np.einsum("k,kij->ij", gain, directions[best])
        means.append(float(both.mean()))
        print(f"generation {generation:3d}: mean return {means[-1]:6.1f} of {length}", flush=True)
    return policy, means


def main() -> int:
    """Learn, and print how many of 64 robots stand for ten seconds."""
    begin = time.perf_counter()
    policy, _ = learn(15)
    print(f"learned in {time.perf_counter() - begin:.0f} s")
    env = environment(64, 1000)
    stand = returns(env, np.tile(policy, (64, 1, 1)), 1000) > 900.0
    print(f"{stand.sum()} of {len(stand)} robots stand for 10 s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
