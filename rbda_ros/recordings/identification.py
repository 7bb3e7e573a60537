"""Identification: parameters of a robot, loops and all, from its recordings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import Evidence
from rbda_ros.robot.inertia_chart import InertiaChart
from rbda_ros.robot.linear_dynamics import Parameters
from rbda_ros.robot.parameter_fit import Fit, Unknowns, fit_parameters
from rbda_ros.robot.payload_estimate import PAYLOAD_SPREAD, payload_chart
from rbda_ros.spatial import Array

WHAT = ("inertia", "friction", "offset", "payload")
"""What can be identified."""
FITTED = 0.7
"""Share of the time that is fitted; the rest judges."""
SPREAD = 0.1
"""How far the nominal inertias may be off, in coordinates of charts: some 20 % of a mass."""


@dataclass(frozen=True, eq=False)
class Identified:
    """What was found.

    Attributes:
        what: some of `WHAT`.
        parameters: names and nominal values, offsets last.
        fit: values, deviations and intervals of them.
        payload: the link of the payload, if one was asked for.
        nominal_rms, identified_rms: (actuated,) of measured minus model, in the time that judges.
        judged: the evidence of that time.
        fitted: and that of the other.
    """

    what: tuple[str, ...]
    parameters: Parameters
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
    def unknown(self) -> tuple[str, ...]:
        """Parameters that were asked for and that the motion told nothing of."""
        asked = self.fit.before > 0.0
        told = self.fit.excited
        names = self.parameters.names
        return tuple(names[k] for k in range(len(names)) if asked[k] and not told[k])


def identify(
    robot: Robot,
    evidence: Evidence,
    what: Collection[str],
    *,
    payload: str | None = None,
    spread: float = SPREAD,
) -> Identified:
    """Fit what is asked for to the first part of the evidence, and judge it by the rest.

    Args:
        robot: the nominal model.
        evidence: of motions of it, with the columns of the payload if there is one.
        what: some of inertia, friction, offset, payload.
        payload: the link that carries something unknown.
        spread: how far the nominal inertias may be off.

    Raises:
        InputError: nothing, or something unknown, is asked for; or there is too little evidence.
    """
    unknown = sorted(set(what) - set(WHAT))
    if unknown or not what:
        raise InputError(f"what: {', '.join(unknown) or 'nothing'}; use some of {', '.join(WHAT)}")
    if ("payload" in what) != (payload is not None):
        raise InputError("payload: name the link that carries it, and only with 'payload'")
    known = robot.parameters(payload=payload)
    offsets = [f"{name}.offset" for name in robot.actuated_joint_names]
    parameters = Parameters(
        (*known.names, *offsets), np.concatenate([known.values, np.zeros(robot.ny)]), known.bodies
    )
    evidence = _with_offsets(evidence)
    cut = int(FITTED * len(evidence.times))
    fitted, judged = evidence.part(slice(0, cut)), evidence.part(slice(cut, None))
    unknowns = unknowns_of(robot, parameters, fitted, what, payload, spread)
    fit = fit_parameters(fitted.A, fitted.efforts, parameters.values, unknowns)
    left = [judged.efforts - judged.A @ values for values in (parameters.values, fit.values)]
    before, after = (np.sqrt((each**2).mean(axis=0)) for each in left)
    ordered = tuple(name for name in WHAT if name in what)
    return Identified(ordered, parameters, fit, payload, before, after, judged, fitted)


def _with_offsets(evidence: Evidence) -> Evidence:
    samples, rows, _ = evidence.A.shape
    columns = np.broadcast_to(np.eye(rows), (samples, rows, rows))
    A = np.concatenate([evidence.A, columns], axis=-1)
    return Evidence(evidence.times, A, evidence.efforts, evidence.velocities)


def unknowns_of(
    robot: Robot,
    parameters: Parameters,
    evidence: Evidence,
    what: Collection[str],
    payload: str | None,
    spread: float = SPREAD,
) -> Unknowns:
    """What is asked for, and what is known of it before measuring.

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
    if "offset" in what:
        linear += [names.index(f"{name}.offset") for name in robot.actuated_joint_names]
    # Before measuring, any of them might be what all of the efforts are for.
    efforts = max(float(np.linalg.norm(evidence.efforts)), 1e-9)
    columns = np.linalg.norm(evidence.A[:, :, linear], axis=(0, 1))
    deviations = efforts / np.maximum(columns, 1e-9 * efforts)
    return Unknowns(charts, linear, values[linear], deviations)
