"""From recordings to motions that identification goes by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.node.settings import Settings
from rbda_ros.recordings.bags import open_bag
from rbda_ros.recordings.label_file import GAP
from rbda_ros.recordings.labeller import Labeller, Sample
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import Motion

LEAST = 5
"""Samples of an episode: fewer have no accelerations."""


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
    return Motion.measured(times, q, yd, efforts, start=stamps[0] * 1e-9)
