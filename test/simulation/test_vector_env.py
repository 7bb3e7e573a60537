"""Simulated robots as a Gymnasium vector environment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: rbda_ros[learn]")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rbda_ros import InputError, Simulator, load_robot
from rbda_ros.examples import learn_to_balance
from rbda_ros.simulation.vector_env import SimulatorVectorEnv


@pytest.fixture(scope="module")
def env():
    return learn_to_balance.environment(6, length=120, threads=1)


def test_spaces_contain_what_steps_give(env):
    assert isinstance(env, VectorEnv)
    seen, info = env.reset(seed=1)
    assert seen in env.observation_space and info == {}
    np.testing.assert_array_equal(seen, env.reset(seed=1)[0])
    env.action_space.seed(0)
    seen, reward, failed, late, _ = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert reward.shape == failed.shape == late.shape == (6,)
    assert failed.dtype == late.dtype == bool


class One(gymnasium.Env):
    """A batch of one robot: Gymnasium's checker knows single environments."""

    def __init__(self):
        self.many = learn_to_balance.environment(1, length=50, threads=1)
        self.observation_space = self.many.single_observation_space
        self.action_space = self.many.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        seen, info = self.many.reset(seed=seed)
        return seen[0], info

    def step(self, action):
        seen, reward, failed, late, info = self.many.step(action[None])
        return seen[0], float(reward[0]), bool(failed[0]), bool(late[0]), info


@pytest.mark.filterwarnings("ignore:.*Box observation space.*")
@pytest.mark.filterwarnings("ignore:.*deepcopy.*")
def test_gymnasium_finds_nothing_wrong():
    check_env(One(), skip_render_check=True)


def test_fallen_robots_start_anew_alone_at_the_next_step(env):
    recorded = RecordEpisodeStatistics(env)
    recorded.reset(seed=2)
    ended = np.zeros(6, bool)
    lengths = []
    for _ in range(200):
        seen, reward, failed, late, info = recorded.step(np.full((6, 2), 0.3))
        for i in np.flatnonzero(ended):
            assert reward[i] == 0.0 and not failed[i] and not late[i]
            np.testing.assert_allclose(seen[i, 4:6], 0.0, atol=1e-12)  # at home
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
        ended = failed | late
    assert lengths and min(lengths) > 1


def test_results_do_not_depend_on_the_batch():
    ends = []
    for count in (6, 2):
        small = learn_to_balance.environment(count, length=50, threads=1)
        small.reset(seed=3)
        home = small.simulator.q
        small.simulator.reset(home, np.zeros(small.simulator.robot.ny))
        for _ in range(20):
            seen, *_ = small.step(np.full((count, 2), 0.1))
        ends.append(seen[:2])
    np.testing.assert_array_equal(*ends)


def test_a_robot_that_cannot_be_moved_on_has_failed():
    mechanisms = Path(__file__).parent.parent / "mechanisms"
    robot = load_robot(mechanisms / "four_bar.urdf", mechanisms / "four_bar.yaml")
    home = robot.neutral()
    env = SimulatorVectorEnv(
        Simulator(robot, batch=3),
        observe=lambda sim: sim.q,
        reward=lambda sim: np.ones(3),
        fallen=lambda sim: np.zeros(3, bool),
        start=lambda random, count: (np.tile(home, (count, 1)), np.zeros((count, robot.ny))),
        effort=1e14,
    )
    env.reset(seed=0)
    actions = np.zeros(env.action_space.shape)
    actions[1] = 1.0
    seen, _, failed, late, _ = env.step(actions)
    np.testing.assert_array_equal(failed, [False, True, False])
    assert not late.any() and np.isfinite(seen).all()
    seen, _, failed, _, _ = env.step(np.zeros(actions.shape))
    assert not failed.any()
    np.testing.assert_array_equal(seen[1], home)


def test_an_environment_needs_a_batch():
    robot = learn_to_balance.standing_robot()
    nothing = {"observe": None, "reward": None, "fallen": None, "start": None}
    with pytest.raises(InputError, match="no batch"):
        SimulatorVectorEnv(Simulator(robot), **nothing)
