"""Estimate of an unknown payload of a link: mass and centre of mass, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.robot.effort_evidence import Evidence, Motion, gather
from rbda_ros.robot.inertia_chart import InertiaChart
from rbda_ros.robot.parameter_fit import Unknowns, fit_parameters
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

PAYLOAD_SPREAD = 1.0
"""How far the first guess of a payload may be off: it may weigh seven times as much, or little."""
LIGHTEST = 1e-3
"""Mass of a payload to begin with where the efforts tell of none [kg]."""
PAYLOAD_SIZE = 0.05
"""Radius of the ball that a payload is thought to be before measuring [m]."""


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A payload, and how far it can be trusted.

    Attributes:
        payload: what the link carries beyond what the model knows of.
        mass_deviation: standard deviation of its mass [kg].
        com_deviation: (3,) of its centre of mass [m].
        nominal_rms, loaded_rms: (actuated,) of measured minus model without and with it [N m, N].
    """

    payload: Payload
    mass_deviation: float
    com_deviation: Array
    nominal_rms: Array
    loaded_rms: Array


def estimate_payload(
    robot: Robot, motions: Sequence[Motion], link: str, cutoff: float = 10.0
) -> PayloadEstimate:
    """Estimate the payload of a link from measured motions and efforts.

    Args:
        robot: the model, with the payloads that are known.
        motions: of it.
        link: that carries something.
        cutoff: of the averages that are fitted [Hz].

    Raises:
        InputError: a link that does not move, a floating base, or too little motion.
    """
    evidence = gather(robot, motions, link, cutoff)
    parameters = robot.parameters(payload=link)
    start = len(parameters.names) - 10
    chart = payload_chart(evidence, parameters.values, start)
    unknowns = Unknowns([(start, chart, PAYLOAD_SPREAD)], [], np.zeros(0), np.zeros(0))
    fit = fit_parameters(evidence.A, evidence.efforts, parameters.values, unknowns)
    payload = payload_of_parameters(link, fit.values[start:])
    # The centre of mass is h / m.
    by_m = -np.array(payload.com)[:, None] / payload.mass
    D = np.hstack([by_m, np.eye(3) / payload.mass])
    C = fit.covariance[start : start + 4, start : start + 4]
    before, after = (
        np.sqrt(((evidence.efforts - evidence.A @ values) ** 2).mean(axis=0))
        for values in (parameters.values, fit.values)
    )
    return PayloadEstimate(
        payload,
        float(fit.deviations[start]),
        np.sqrt(np.maximum(np.diag(D @ C @ D.T), 0.0)),
        before,
        after,
    )


def payload_chart(evidence: Evidence, values: Array, start: int) -> InertiaChart:
    """A chart around a ball that weighs, and is where, the efforts say at first sight.

    Args:
        evidence: with ten columns for the payload.
        values: (parameters,) of the model without it.
        start: the first of the columns.
    """
    left = (evidence.efforts - evidence.A @ values).ravel()
    A = evidence.A[:, :, start : start + 4].reshape(-1, 4)
    mass, *moment = np.linalg.lstsq(A, left, rcond=1e-6)[0]
    m = max(float(mass), LIGHTEST)
    com = np.clip(np.array(moment) / m, -1.0, 1.0)
    rotational = m * (
        0.4 * PAYLOAD_SIZE**2 * np.eye(3) + com @ com * np.eye(3) - np.outer(com, com)
    )
    xx, xy, xz, yy, yz, zz = rotational[np.triu_indices(3)]
    return InertiaChart.around(np.array([m, *(m * com), xx, xy, yy, xz, yz, zz]))


def payload_of_parameters(link: str, parameters: Array) -> Payload:
    """The payload that has ten inertial parameters (10,) in the frame of its link."""
    mass, (x, y, z), (xx, xy, xz, yy, yz, zz) = about_com(parameters)
    return Payload(link, mass, (x, y, z), (xx, xy, xz, yy, yz, zz))


def about_com(parameters: Array) -> tuple[float, list[float], list[float]]:
    """Mass, centre of mass, and moments about it, in the order of URDFs."""
    m, *moment = parameters[:4]
    com = np.array(moment) / m if m else np.zeros(3)
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_com = about_origin - m * (com @ com * np.eye(3) - np.outer(com, com))
    return float(m), com.tolist(), about_com[np.triu_indices(3)].tolist()
