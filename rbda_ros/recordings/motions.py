"""From recordings to motions for identification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError
from rbda_ros.recordings.bags import open_bag
from rbda_ros.recordings.label_file import GAP
from rbda_ros.recordings.labeller import OTHER_TOPICS, Labeller, Sample
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import FEWEST_SAMPLES, Motion

MOST = 20_000
"""Samples of a motion: longer episodes come in pieces, so that memory is bounded."""


def read_motions(
    robot: Robot,
    bag: Path,
    settings: Settings,
    topic: str = "/joint_states",
    node: str = "/dynamics",
) -> Iterator[Motion]:
    """The episodes of a bag that have efforts of some actuated joint.

    Args:
        robot: the model.
        bag: with joint states; and the state of the base, if it floats.
        settings: parameters of the node.
        topic: of the joint states.
        node: name of the node, under which the topic of the base's state is.

    Raises:
        InputError: the robot has joints of several coordinates.
    """
    # The model says nothing here of what shall be, so that nothing may wait for it.
    settings = replace(
        settings, acceleration_source="zero", external_wrench=False, publish_external_effort=False
    )
    samples: list[Sample] = []
    for sample in _samples(Labeller(robot, settings), bag, topic, node):
        if samples and (not _follows(sample, samples[-1]) or len(samples) == MOST):
            yield from _motion(robot, samples)
            samples = []
        samples.append(sample)
    yield from _motion(robot, samples)


def _samples(labeller: Labeller, bag: Path, topic: str, node: str) -> Iterator[Sample]:
    """Samples with measured efforts."""
    others = {name.replace("~", node): name for name in OTHER_TOPICS}
    with open_bag(bag) as reader:
        wanted = [c for c in reader.connections if c.topic == topic or c.topic in others]
        for connection, time, data in reader.messages(wanted) if wanted else ():
            if connection.topic != topic:
                labeller.other(others[connection.topic], connection.msgtype, data, time)
                continue
            _, sample = labeller.joint_states(data, time)
            if sample is not None and sample.measured is not None:
                yield sample


def _follows(sample: Sample, last: Sample) -> bool:
    return 0 < sample.stamp - last.stamp <= GAP and sample.joints == last.joints


def _motion(robot: Robot, samples: Sequence[Sample]) -> Iterator[Motion]:
    """The motion of some samples, unless they are too few."""
    if len(samples) < FEWEST_SAMPLES:
        return
    coordinates, base = robot.coordinates, robot.coordinates.base_nv
    names = [name for name in robot.joint_names if name in coordinates.scalar_positions]
    if len(names) != robot.nv - base:
        raise InputError(f"{robot.name}: identification takes joints of one coordinate only")
    in_q = [coordinates.scalar_positions[name] for name in names]
    in_qd = [coordinates.velocities[name].start for name in names]
    stamps = np.array([sample.stamp for sample in samples])
    times = (stamps - stamps[0]) * 1e-9
    q, qd = np.empty((len(samples), robot.nq)), np.empty((len(samples), robot.nv))
    q[:, in_q] = [sample.position for sample in samples]
    qd[:, in_qd] = [sample.velocity for sample in samples]
    if base:
        of_base = np.array([sample.base for sample in samples])
        q[:, :7], qd[:, :6] = of_base[:, :7], of_base[:, 7:]
    yd = qd[:, list(robot.independent_coordinates)]
    efforts = np.array([sample.measured for sample in samples])
    start, joints = stamps[0] * 1e-9, samples[0].joints
    yield Motion.measured(times, q, yd, efforts, start=start, joints=joints)
