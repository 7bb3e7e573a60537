"""Evidence for identification: regressors and measured efforts, averaged in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

CHUNK = 4000
"""Samples whose regressors are in memory at once."""
FEWEST_SAMPLES = 5
"""Least number of samples of a motion: fewer give no accelerations."""
BASE_ROWS = tuple(f"base {kind}{axis}" for kind in ("force ", "moment ") for axis in "xyz")
"""Force and moment on a floating base, in its frame. They are zero: only gravity may act on it."""


@dataclass(frozen=True, eq=False)
class Motion:
    """One episode: samples of all quantities at the same times.

    Attributes:
        times: (n,) [s].
        q: (n, nq) spanning positions, closed.
        yd, ydd: (n, ny) independent velocities, and accelerations by central differences.
        efforts: (n, actuated) measured.
        joints: whose positions were measured; empty for the independent joints.
    """

    times: Array
    q: Array
    yd: Array
    ydd: Array
    efforts: Array
    joints: tuple[str, ...] = ()

    @classmethod
    def measured(
        cls,
        times: Array,
        q: Array,
        yd: Array,
        efforts: Array,
        *,
        start: float = 0.0,
        joints: tuple[str, ...] = (),
    ) -> Motion:
        """An episode with accelerations by central differences; times count from ``start`` [s]."""
        ydd = np.gradient(yd, times, axis=0, edge_order=2)
        return cls(start + times, q, yd, ydd, efforts, joints)

    def shifted(self, robot: Robot, offsets: Mapping[str, float]) -> Motion:
        """The same measurements, with offsets added to positions of measured joints [rad, m]."""
        if not any(offsets.values()):
            return self
        layout, base = robot.coordinates, robot.coordinates.base_nv
        names = self.joints or robot.independent_joint_names
        qd = robot.spanning_velocity(self.q, self.yd)
        position = {
            name: self.q[:, layout.scalar_positions[name]] + offsets.get(name, 0.0)
            for name in names
        }
        velocity = {name: qd[:, layout.velocities[name].start] for name in names}
        q = robot.convert(position, guess=self.q[0]).q.copy()
        if base:
            q[:, :7] = self.q[:, :7]
        yd = robot.independent_velocity(q, velocity, qd[:, :base] if base else None)
        ydd = np.gradient(yd, self.times - self.times[0], axis=0, edge_order=2)
        return replace(self, q=q, yd=yd, ydd=ydd)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Efforts, regressors and velocities, averaged over blocks of samples.

    Averages are linear, so ``efforts = A p`` still holds for the true p. They have less noise, and
    the noise of different blocks is independent.

    Attributes:
        times: (n,) of the blocks [s].
        A: (n, rows, parameters) regressors in the units of the efforts.
        efforts: (n, rows) measured [N m, N]: those of `effort_rows`.
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


def effort_rows(robot: Robot) -> tuple[str, ...]:
    """Names of the measured efforts: of a floating base, and of the actuators."""
    return (*(BASE_ROWS if robot.floating_base else ()), *robot.actuated_joint_names)


def gather(
    robot: Robot, motions: Iterable[Motion], payload: str | None = None, cutoff: float = 10.0
) -> Evidence:
    """Averages over blocks of half a period of the cutoff frequency [Hz].

    Raises:
        InputError: other than one actuator a coordinate, or too short a motion.
    """
    if len(effort_rows(robot)) != robot.ny:
        raise InputError(
            f"{robot.name}: {len(robot.actuated_joint_names)} actuators for "
            f"{robot.ny - robot.coordinates.base_nv} degrees of freedom; identification takes as "
            "many of both"
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
        efforts = motion.efforts[here]
        efforts = np.pad(efforts, ((0, 0), (A.shape[1] - efforts.shape[1], 0)))  # zero on the base
        numbers = motion.times[here], A, efforts, motion.yd[here]
        times, A, efforts, yd = (x.reshape(-1, size, *x.shape[1:]).mean(axis=1) for x in numbers)
        yield times, A, efforts, yd


def regressor_of_efforts(
    robot: Robot, q: Array, yd: Array, ydd: Array, payload: str | None = None
) -> Array:
    """(n, rows, parameters): efforts, as `effort_rows` names them, as linear maps of parameters."""
    state = robot.state(q, yd)
    Y = robot.regressor(state, yd, ydd, payload=payload)
    W = np.stack([robot.actuator_efforts(state, unit) for unit in np.eye(robot.ny)], axis=-1)
    return np.concatenate([Y[:, : robot.coordinates.base_nv], W @ Y], axis=1)
