"""From recordings to what identification goes by: regressors and efforts, averaged in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.node.settings import Settings
from rbda_ros.recordings.bags import open_bag
from rbda_ros.recordings.label_file import GAP
from rbda_ros.recordings.labeller import Labeller, Sample
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

CHUNK = 4000
"""Samples whose regressors are in memory at once."""
LEAST = 5
"""Samples of an episode: fewer have no accelerations."""


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


def read_motions(
    robot: Robot, bags: Sequence[Path], settings: Settings, topic: str = "/joint_states"
) -> list[Motion]:
    """The episodes of some bags that have efforts of every actuated joint.

    Raises:
        InputError: there is none.
    """
    episodes: list[list[Sample]] = []
    for bag in bags:
        labeller = Labeller(robot, settings)
        last: int | None = None
        with open_bag(bag) as reader:
            wanted = [c for c in reader.connections if c.topic == topic]
            for _, time, data in reader.messages(wanted) if wanted else ():
                _, sample = labeller.joint_states(data, time)
                if sample is None or sample.measured is None:
                    continue
                if last is None or not 0 < sample.stamp - last <= GAP:
                    episodes.append([])
                last = sample.stamp
                episodes[-1].append(sample)
    motions = [_motion(robot, episode) for episode in episodes if len(episode) >= LEAST]
    if not motions:
        raise InputError(
            f"no recording has {topic} with measured efforts of every actuated joint:"
            f" {', '.join(robot.actuated_joint_names)}"
        )
    return motions


def _motion(robot: Robot, samples: Sequence[Sample]) -> Motion:
    coordinates = robot.coordinates
    names = [name for name in robot.joint_names if name in coordinates.scalar_positions]
    if len(names) != robot.nq:
        raise InputError(f"{robot.name}: identification takes joints of one coordinate only")
    in_q = [coordinates.scalar_positions[name] for name in names]
    in_qd = [coordinates.velocities[name].start for name in names]
    stamps = np.array([sample.stamp for sample in samples])
    times = (stamps - stamps[0]) * 1e-9
    q, qd = np.empty((2, len(samples), robot.nq))
    q[:, in_q] = [sample.position for sample in samples]
    qd[:, in_qd] = [sample.velocity for sample in samples]
    yd = qd[:, list(robot.tree.independent)]
    efforts = np.array([sample.measured for sample in samples])
    ydd = np.gradient(yd, times, axis=0, edge_order=2)
    return Motion(stamps[0] * 1e-9 + times, q, yd, ydd, efforts)


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
