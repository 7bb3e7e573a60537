"""The efforts of a followed node over the last seconds, split into what they are for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

SECONDS, MOST = 10.0, 2000
"""How much of the past is kept [s], and in how many samples at most."""
PARTS = ("published", "gravity", "Coriolis", "inertial and other")


class EffortHistory:
    """Published motor efforts, and their parts for gravity, for Coriolis forces, and the rest.

    The rest is what the acceleration takes, and whatever else the node adds, such as friction.

    Args:
        robot: the model.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._samples: deque[tuple[float, Array]] = deque(maxlen=MOST)

    def add(self, time: float, q: Array, velocities: Mapping[str, float], efforts: Array) -> None:
        """Add a sample; one at which the model has no numbers is left out.

        Args:
            time: of the sample [s].
            q: (nq,) closed position.
            velocities: of joints by name [rad/s, m/s]; zero where they are not known.
            efforts: (actuated,) as published [N m, N].
        """
        robot = self._robot
        qd = np.zeros(robot.nv)
        for joint, place in robot.coordinates.velocities.items():
            if len(place) == 1:
                qd[place.start] = velocities.get(joint, 0.0)
        try:
            state = robot.state(q, qd)
            gravity = robot.actuator_efforts(state, robot.gravity_force(state))
            bias = robot.actuator_efforts(state, robot.bias_force(state, qd))
        except InputError:  # off the loops, or at a dead point
            return
        parts = np.stack([efforts, gravity, bias - gravity, efforts - bias])
        self._samples.append((time, parts))
        while self._samples and time - self._samples[0][0] > SECONDS:
            self._samples.popleft()

    def of(self, motor: str) -> tuple[Array, ...]:
        """Time before the newest sample [s], then each of `PARTS` of one motor [N m, N]."""
        column = self._robot.actuated_joint_names.index(motor)
        times = np.array([time for time, _ in self._samples])
        values = np.array([parts[:, column] for _, parts in self._samples]).reshape(-1, len(PARTS))
        return (times - times[-1] if len(times) else times, *values.T)
