"""Whether masses and inertias can be those of real bodies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.model import Inertia, Joint, Link
from rbda_ros.description.report import Report
from rbda_ros.description.values import brief

# Relative to the largest principal moment: URDFs are written with few digits.
_TOLERANCE = 1e-3
# Below this a moment is what is left of a zero [kg m^2].
_NOISE = 1e-15


def check_inertias(links: Iterable[Link], report: Report) -> None:
    """Note negative masses, and warn of moments that no body can have.

    Moments are no more than a warning because robots in use have such links (TIAGo's antennas,
    ROMEO's hips), mostly small ones beside what they are fixed to.
    """
    given = [(link, link.inertia) for link in links if link.inertia is not None]
    if not given:
        return
    tensors = np.array([_tensor(inertia) for _, inertia in given])
    moments = np.linalg.eigvalsh(tensors)
    for (link, inertia), principal in zip(given, moments, strict=True):
        where = f"link {brief(link.name)}"
        if inertia.mass < 0.0:
            report.problem(where, f"mass {inertia.mass} is negative", "give a mass of zero or more")
        if fault := moments_fault(principal):
            report.warn(where, f"its inertia {fault}")


def moments_fault(moments: NDArray[np.floating]) -> str | None:
    """Why no body has these principal moments (3,), ascending [kg m^2]; None if one may."""
    small, middle, large = moments
    tolerance = _TOLERANCE * max(abs(small), abs(large)) + _NOISE
    if small < -tolerance:
        return (
            f"has a negative principal moment ({small:.2g} kg m^2): no body has it, and forward"
            " dynamics may fail"
        )
    if small + middle < large - tolerance:
        return (
            "breaks the triangle inequality"
            f" ({small:.2g} + {middle:.2g} < {large:.2g} kg m^2): no body has it"
        )
    return None


def _tensor(inertia: Inertia) -> list[list[float]]:
    return [
        [inertia.ixx, inertia.ixy, inertia.ixz],
        [inertia.ixy, inertia.iyy, inertia.iyz],
        [inertia.ixz, inertia.iyz, inertia.izz],
    ]


def warn_of_massless_leaves(
    links: Iterable[Link],
    joints: Iterable[Joint],
    body_of: Mapping[str, str],
    constrained: Collection[str],
    report: Report,
) -> None:
    """Warn of bodies at the tips that nothing resists moving.

    Args:
        links: of the robot.
        joints: of the robot.
        body_of: for each link, the one that stands for its rigid body.
        constrained: joints that a constraint ties to others, which give them inertia.
        report: takes the warnings.
    """
    heavy = {body_of[link.name] for link in links if _has_inertia(link)}
    moving = [joint for joint in joints if joint.type != "fixed"]
    inner = {body_of[joint.parent] for joint in moving}
    for joint in moving:
        body = body_of[joint.child]
        if body not in heavy and body not in inner and joint.name not in constrained:
            report.warn(
                f"joint {brief(joint.name)}",
                f"moves link {brief(joint.child)}, which has no mass: forward dynamics is"
                " singular along it",
            )


def _has_inertia(link: Link) -> bool:
    inertia = link.inertia
    if inertia is None:
        return False
    return any((inertia.mass, inertia.ixx, inertia.iyy, inertia.izz))
