"""What identification goes by: regressors and measured efforts, averaged in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

CHUNK = 4000
"""Samples whose regressors are in memory at once."""


@dataclass(frozen=True, eq=False)
class Motion:
    """One episode: every number at the same times.

    Attributes:
        times: (n,) [s].
        q: (n, nq) spanning positions, closed.
        yd, ydd: (n, ny) independent velocities, and accelerations by central differences.
        efforts: (n, actuated) measured.
    """

    times: Array
    q: Array
    yd: Array
    ydd: Array
    efforts: Array

    @classmethod
    def measured(
        cls, times: Array, q: Array, yd: Array, efforts: Array, start: float = 0.0
    ) -> Motion:
        """An episode with accelerations by central differences; times count from ``start`` [s]."""
        ydd = np.gradient(yd, times, axis=0, edge_order=2)
        return cls(start + times, q, yd, ydd, efforts)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Averages over blocks of samples: of efforts, and of what they depend on.

    An average is linear, so that ``efforts = A p`` still holds for the true p; the noise in it is
    less, and that of different blocks independent.

    Attributes:
        times: (n,) of the blocks [s].
        A: (n, actuated, parameters) regressors in the units of the efforts.
        efforts: (n, actuated) measured [N m, N].
        velocities: (n, ny) of the independent joints [rad/s, m/s].
    """

    times: Array
    A: Array
    efforts: Array
    velocities: Array

    def part(self, where: slice) -> Evidence:
        """Some of the blocks."""
        return Evidence(
            self.times[where], self.A[where], self.efforts[where], self.velocities[where]
        )


def gather(
    robot: Robot, motions: Sequence[Motion], payload: str | None = None, cutoff: float = 10.0
) -> Evidence:
    """Averages over blocks of half a period of the cutoff frequency [Hz].

    Raises:
        InputError: a floating base, or other than one actuator a coordinate.
    """
    if robot.floating_base:
        raise InputError(
            f"{robot.name}: its base floats, and what acts on it is not measured; load it with "
            "a fixed base, and hold it there while recording"
        )
    if len(robot.actuated_joint_names) != robot.ny:
        raise InputError(
            f"{robot.name}: {len(robot.actuated_joint_names)} actuators for {robot.ny} degrees of "
            "freedom; identification takes as many of both"
        )
    parts = [part for motion in motions for part in _blocks(robot, motion, payload, cutoff)]
    if not parts:
        raise InputError(f"the recordings are shorter than one period of {cutoff:g} Hz")
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Evidence(*columns)


def _blocks(
    robot: Robot, motion: Motion, payload: str | None, cutoff: float
) -> Iterator[tuple[Array, Array, Array, Array]]:
    step = float(np.median(np.diff(motion.times)))
    size = max(1, round(0.5 / (cutoff * step)))
    chunk = max(size, CHUNK - CHUNK % size)
    for start in range(0, len(motion.times) - size + 1, chunk):
        stop = min(start + chunk, len(motion.times))
        stop -= (stop - start) % size
        here = slice(start, stop)
        A = regressor_of_efforts(robot, motion.q[here], motion.yd[here], motion.ydd[here], payload)
        numbers = motion.times[here], A, motion.efforts[here], motion.yd[here]
        times, A, efforts, yd = (x.reshape(-1, size, *x.shape[1:]).mean(axis=1) for x in numbers)
        yield times, A, efforts, yd


def regressor_of_efforts(
    robot: Robot, q: Array, yd: Array, ydd: Array, payload: str | None = None
) -> Array:
    """(n, actuated, parameters): efforts of the actuators as a linear map of the parameters."""
    state = robot.state(q, yd)
    Y = robot.regressor(state, yd, ydd, payload=payload)
    W = np.stack([robot.actuator_efforts(state, unit) for unit in np.eye(robot.ny)], axis=-1)
    return W @ Y
