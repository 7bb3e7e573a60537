"""Identification: parameters of a robot, loops and all, from its recordings.

`read_motions` reads the motions of a bag; `identify_motions` fits the parameters to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError
from rbda_ros.recordings.bags import open_bag
from rbda_ros.recordings.label_file import GAP
from rbda_ros.recordings.labeller import OTHER_TOPICS, Labeller, Sample
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import FEWEST_SAMPLES, Evidence, Motion, effort_rows, gather
from rbda_ros.robot.inertia_chart import InertiaChart
from rbda_ros.robot.linear_dynamics import Parameters
from rbda_ros.robot.parameter_fit import (
    PAYLOAD_SPREAD,
    Fit,
    Unknowns,
    fit_parameters,
    payload_chart,
)
from rbda_ros.spatial import Array

WHAT = ("inertia", "friction", "offset", "effort_offset", "payload")
"""Quantities that can be identified: offsets are of positions, and of measured efforts."""
FITTED = 0.7
"""Share of the time that is fitted; the rest validates the result."""
LARGEST_OFFSET = 0.5
"""Standard deviation of the zero of a joint, before measuring, where efforts would allow more."""
STEP = 1e-4
"""Of positions, for differences [rad, m]."""
ROUNDS = 6
ARRIVED = 1e-6
"""Change of offsets at which these have arrived [rad, m]."""
SPREAD = 0.1
"""How far the nominal inertias may be off, in coordinates of charts: some 20 % of a mass."""
MOST = 20_000
"""Samples of a motion: longer episodes come in pieces, so that memory is bounded."""


@dataclass(frozen=True, eq=False)
class Identified:
    """Result of an identification.

    Attributes:
        what: some of `WHAT`.
        parameters: names and nominal values, offsets of efforts and of positions last.
        rows: efforts that are measured at every time.
        fit: values, deviations and intervals of them.
        payload: the link of the payload, if one was asked for.
        nominal_rms, identified_rms: (rows,) of measured minus model, in the time that judges.
        judged: the evidence of that time.
        fitted: and that of the other.
    """

    what: tuple[str, ...]
    parameters: Parameters
    rows: tuple[str, ...]
    fit: Fit
    payload: str | None
    nominal_rms: Array
    identified_rms: Array
    judged: Evidence
    fitted: Evidence

    def value(self, name: str) -> float:
        """The identified value of a parameter."""
        return float(self.fit.values[self.parameters.names.index(name)])

    @property
    def offsets(self) -> dict[str, float]:
        """Offsets to add to positions of joints, for those that the motion determines."""
        names = self.parameters.names
        return {
            names[k].removesuffix(".offset"): float(self.fit.values[k])
            for k in np.flatnonzero(self.fit.excited)
            if names[k].endswith(".offset")
        }

    @property
    def unknown(self) -> tuple[str, ...]:
        """Parameters that were requested and that the motion does not determine."""
        asked = self.fit.before > 0.0
        told = self.fit.excited
        names = self.parameters.names
        return tuple(names[k] for k in range(len(names)) if asked[k] and not told[k])


@dataclass(frozen=True, eq=False)
class Slopes:
    """How efforts change with offsets of positions, around some offsets.

    Attributes:
        joints: that have them.
        at: (joints,) the offsets that evidence was gathered with [rad, m].
        columns: (n, rows, joints).
    """

    joints: tuple[str, ...]
    at: Array
    columns: Array


def identify_motions(
    robot: Robot,
    motions: Iterable[Motion],
    what: Collection[str],
    *,
    payload: str | None = None,
    cutoff: float = 10.0,
    spread: float = SPREAD,
) -> Identified:
    """As `identify`, from motions. With 'offset', their positions are shifted until it fits.

    Args:
        robot: the nominal model.
        motions: of it; read once, unless offsets are asked for.
        what: some of inertia, friction, offset, effort_offset, payload.
        payload: the link that carries something unknown.
        cutoff: of the averages that are fitted [Hz].
        spread: how far the nominal inertias may be off.
    """
    _check_what(what, payload)
    if "offset" not in what:
        evidence = gather(robot, motions, payload, cutoff)
        return identify(robot, evidence, what, payload=payload, spread=spread)
    motions = list(motions)
    measured = [motion.joints or robot.independent_joint_names for motion in motions]
    joints = tuple(dict.fromkeys(name for names in measured for name in names))
    at, values = np.zeros(len(joints)), robot.parameters(payload=payload).values
    for _ in range(ROUNDS):
        evidence = _gather_shifted(robot, motions, joints, at, payload, cutoff)
        columns = []
        for step in STEP * np.eye(len(joints)):
            further, nearer = (
                _gather_shifted(robot, motions, joints, at + each, payload, cutoff).A @ values
                for each in (step, -step)
            )
            columns.append((further - nearer) / (2 * STEP))
        slopes = Slopes(joints, at, np.stack(columns, axis=-1))
        found = identify(robot, evidence, what, payload=payload, spread=spread, slopes=slopes)
        before, at = at, found.fit.values[-len(joints) :]
        values = found.fit.values[: len(values)]
        if np.abs(at - before).max() <= ARRIVED:
            break
    return found


def check_what(what: Collection[str], allowed: Sequence[str]) -> None:
    """Reject quantities that are not among the allowed ones, and none at all."""
    unknown = sorted(set(what) - set(allowed))
    if unknown or not what:
        said = ", ".join(unknown) or "nothing"
        raise InputError(f"what: {said}; use some of {', '.join(allowed)}")


def _check_what(what: Collection[str], payload: str | None) -> None:
    check_what(what, WHAT)
    if ("payload" in what) != (payload is not None):
        raise InputError("payload: name the link that carries it, and only with 'payload'")


def _gather_shifted(
    robot: Robot,
    motions: Iterable[Motion],
    joints: tuple[str, ...],
    offsets: Array,
    payload: str | None,
    cutoff: float,
) -> Evidence:
    given = dict(zip(joints, offsets.tolist(), strict=True))
    return gather(robot, (motion.shifted(robot, given) for motion in motions), payload, cutoff)


def identify(
    robot: Robot,
    evidence: Evidence,
    what: Collection[str],
    *,
    payload: str | None = None,
    spread: float = SPREAD,
    slopes: Slopes | None = None,
) -> Identified:
    """Fit the requested parameters to the first part of the evidence; validate with the rest.

    Args:
        robot: the nominal model.
        evidence: of motions of it, with the columns of the payload if there is one.
        what: some of inertia, friction, offset (with slopes), effort_offset, payload.
        payload: the link that carries something unknown.
        spread: how far the nominal inertias may be off.
        slopes: how efforts change with offsets of positions; `identify_motions` finds them.

    Raises:
        InputError: nothing, or something unknown, is asked for; or there is too little evidence.
    """
    _check_what(what, payload)
    if ("offset" in what) != (slopes is not None):
        raise InputError("offset: how efforts change with it must be known; see identify_motions")
    known = robot.parameters(payload=payload)
    offsets = [f"{name}.effort_offset" for name in robot.actuated_joint_names]
    offsets += [f"{name}.offset" for name in (slopes.joints if slopes else ())]
    values = np.concatenate([known.values, np.zeros(len(offsets))])
    parameters = Parameters((*known.names, *offsets), values, known.bodies)
    evidence = _with_offsets(evidence, len(robot.actuated_joint_names), slopes)
    rows, evidence = _measured_rows(effort_rows(robot), evidence)
    cut = int(FITTED * len(evidence.times))
    fitted, judged = evidence.part(slice(0, cut)), evidence.part(slice(cut, None))
    unknowns = unknowns_of(robot, parameters, fitted, what, payload, spread)
    fit = fit_parameters(fitted.A, fitted.efforts, parameters.values, unknowns)
    left = [judged.efforts - judged.A @ values for values in (parameters.values, fit.values)]
    before, after = (np.sqrt((each**2).mean(axis=0)) for each in left)
    ordered = tuple(name for name in WHAT if name in what)
    return Identified(ordered, parameters, rows, fit, payload, before, after, judged, fitted)


def _with_offsets(evidence: Evidence, actuated: int, slopes: Slopes | None) -> Evidence:
    """With columns for offsets of efforts, and of positions: there ``e = A p + S (d - d_at)``."""
    samples, rows, _ = evidence.A.shape
    ones = np.eye(rows)[:, rows - actuated :]
    columns = [evidence.A, np.broadcast_to(ones, (samples, rows, actuated))]
    efforts = evidence.efforts
    if slopes is not None:
        columns.append(slopes.columns)
        efforts = efforts + slopes.columns @ slopes.at
    return Evidence(evidence.times, np.concatenate(columns, -1), efforts, evidence.velocities)


def _measured_rows(names: Sequence[str], evidence: Evidence) -> tuple[tuple[str, ...], Evidence]:
    """The evidence of efforts that are measured at all times, and whose they are."""
    measured = np.flatnonzero(np.isfinite(evidence.efforts).all(axis=0)).tolist()
    rows = tuple(names[row] for row in measured)
    if not rows:
        raise InputError(f"no effort of {', '.join(names)} is measured in every recording")
    A, efforts = evidence.A[:, measured], evidence.efforts[:, measured]
    return rows, Evidence(evidence.times, A, efforts, evidence.velocities)


def unknowns_of(
    robot: Robot,
    parameters: Parameters,
    evidence: Evidence,
    what: Collection[str],
    payload: str | None,
    spread: float = SPREAD,
) -> Unknowns:
    """Unknowns that are asked for, and prior knowledge of them.

    Args:
        robot: the nominal model.
        parameters: in the order of the evidence's columns.
        evidence: by whose efforts friction and offsets are scaled.
        what: some of `WHAT`.
        payload: the link that carries something unknown.
        spread: how far the nominal inertias may be off.
    """
    names, values = parameters.names, parameters.values
    charts = []
    if "inertia" in what:
        for k in range(len(parameters.bodies)):
            chart = InertiaChart.around(values[10 * k : 10 * k + 10])
            if chart.size:
                charts.append((10 * k, chart, spread))
    if payload is not None:
        start = names.index("payload.m")
        charts.append((start, payload_chart(evidence, values, start), PAYLOAD_SPREAD))
    linear: list[int] = []
    if "friction" in what:
        # Of the independent joints: behind a gear, that of a motor cannot be told from it.
        for name in robot.independent_joint_names:
            linear += [names.index(f"{name}.damping"), names.index(f"{name}.friction")]
    if "effort_offset" in what:
        linear += [names.index(f"{name}.effort_offset") for name in robot.actuated_joint_names]
    zeros = [k for k, name in enumerate(names) if name.endswith(".offset")]
    linear += zeros
    # Before measuring, any of them might be what all of the efforts are for.
    efforts = max(float(np.linalg.norm(evidence.efforts)), 1e-9)
    columns = np.linalg.norm(evidence.A[:, :, linear], axis=(0, 1))
    deviations = efforts / np.maximum(columns, 1e-9 * efforts)
    most = np.where(np.isin(linear, zeros), LARGEST_OFFSET, np.inf)
    deviations = np.minimum(deviations, most)
    return Unknowns(charts, linear, values[linear], deviations)


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
