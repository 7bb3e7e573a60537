"""Many simulated robots as a Gymnasium vector environment.

Needs Gymnasium: ``rbda_ros[learn]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rbda_ros.errors import InputError, SingularityError
from rbda_ros.simulation.simulator import Simulator
from rbda_ros.spatial import Array

try:
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    raise ImportError(
        "rbda_ros.simulation.vector_env needs Gymnasium; install rbda_ros[learn]"
    ) from missing

Measure = Callable[[Simulator], Any]
"""Of a batch: an array with a row, or a number, for each robot."""


class SimulatorVectorEnv(VectorEnv):
    """A batch of robots that are driven by the efforts of their motors.

    An action is an effort for each motor, from -1 to 1 of its largest. A robot whose episode ended
    is put back at the next step, which its action has no part in (``AutoresetMode.NEXT_STEP``). A
    robot that cannot be moved on has failed.

    Args:
        simulator: with a batch.
        observe: what is observed (N, n).
        reward: (N,) of the state after a step.
        fallen: (N,) whether an episode has failed, at the same state.
        start: ``(generator, count) -> q (count, nq), qd (count, nv or ny)`` of new episodes.
        effort: largest effort of each motor [N m, N]; None for that of the description.
        steps: steps of the simulator for an action.
        length: actions after which an episode is truncated.
    """

    def __init__(
        self,
        simulator: Simulator,
        *,
        observe: Measure,
        reward: Measure,
        fallen: Measure,
        start: Callable[[np.random.Generator, int], tuple[Array, Array]],
        effort: float | Array | None = None,
        steps: int = 10,
        length: int = 500,
    ) -> None:
        if simulator.batch is None:
            raise InputError("simulator: it has no batch; give Simulator(..., batch=N)")
        robot = simulator.robot
        limit = robot.limits.effort[list(robot.actuated_coordinates)] if effort is None else effort
        self._effort = np.broadcast_to(limit, (len(robot.actuated_joint_names),)).astype(float)
        if not np.isfinite(self._effort).all():
            raise InputError("effort: a motor has no limit in the description; give one")
        self.simulator, self.num_envs = simulator, simulator.batch
        self._observe, self._reward, self._fallen = observe, reward, fallen
        self._start, self.steps, self._length = start, steps, length
        self._random = np.random.default_rng()
        self._age = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, bool)
        size = np.shape(observe(simulator))[1]
        self.single_observation_space = Box(-np.inf, np.inf, (size,), np.float64)
        self.single_action_space = Box(-1.0, 1.0, (len(self._effort),), np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode of every robot; returns the observations and an empty mapping."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._begin(np.ones(self.num_envs, bool))
        return self._observe(self.simulator), {}

    def step(self, actions: Array) -> tuple[Array, Array, Any, Any, dict[str, Any]]:
        """Take a step: observations, rewards, whether episodes failed, or are at their end."""
        new = self._ended.copy()
        given = np.clip(np.asarray(actions, float), -1.0, 1.0) * self._effort
        stuck = np.zeros(self.num_envs, bool)
        try:
            self.simulator.step(given, steps=self.steps)
        except SingularityError as error:
            if not error.rows:
                raise
            stuck[list(error.rows)] = True
        self._age += 1
        if new.any():
            self._begin(new)
        reward = np.where(new, 0.0, self._reward(self.simulator))
        failed = (self._fallen(self.simulator) | stuck) & ~new
        late = (self._age >= self._length) & ~new
        self._ended = failed | late
        return self._observe(self.simulator), reward, failed, late, {}

    def _begin(self, which: Array) -> None:
        q, qd = self._start(self._random, int(which.sum()))
        self.simulator.reset(q, qd, rows=which)
        self._age[which], self._ended[which] = 0, False
