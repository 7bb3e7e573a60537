"""Checks over the whole description: names, the tree of joints, masses and inertias."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rbda_ros.description.link_tree import ONE_DOF
from rbda_ros.description.model import (
    Constraint,
    Guess,
    Joint,
    Link,
    Spring,
)
from rbda_ros.description.report import Report, brief
from rbda_ros.description.values import SHORTEST_AXIS


def check_unique(kind: str, names: Iterable[str], report: Report) -> None:
    """Note each name that occurs more than once."""
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            report.problem(f"{kind} {brief(name)}", f"is defined {count} times", "rename one")


def check_tree(links: Sequence[Link], joints: Sequence[Joint], report: Report) -> None:
    """Note joints whose links do not exist, links with two parents, roots and circles."""
    names = {link.name for link in links}
    whole = True
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end and end not in names:
                report.unknown(f"joint {brief(joint.name)}", "link", end, names, "add that link")
            whole = whole and end in names
        if joint.parent and joint.parent == joint.child:
            report.problem(
                f"joint {brief(joint.name)}", "joins a link to itself", "correct parent or child"
            )
            whole = False
    _check_parents(joints, report)
    if not names:
        report.problem("URDF", "has no link", "add <link name='...'/> inside <robot>")
    elif whole:  # else links only seem loose, and saying so would mislead
        _check_roots(links, joints, report)


def _check_parents(joints: Sequence[Joint], report: Report) -> None:
    movers: dict[str, list[str]] = {}
    for joint in joints:
        movers.setdefault(joint.child, []).append(joint.name)
    for link, names in movers.items():
        if link and len(names) > 1:
            report.problem(
                f"link {brief(link)}",
                f"is the child of joints {', '.join(map(brief, names[:5]))}",
                "keep one of them, and close the loop with a constraint",
            )


def _check_roots(links: Sequence[Link], joints: Sequence[Joint], report: Report) -> None:
    children: dict[str, list[str]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint.child)
    moved = {joint.child for joint in joints}
    roots = list(dict.fromkeys(link.name for link in links if link.name not in moved))
    reached = set(roots)
    frontier = list(roots)
    while frontier:
        new = [child for child in children.get(frontier.pop(), ()) if child not in reached]
        reached.update(new)
        frontier.extend(new)
    if len(roots) > 1:
        report.problem(
            "URDF",
            f"has {len(roots)} roots: {', '.join(map(brief, roots[:5]))}",
            f"join them with fixed or floating joints, or write 'root: {roots[0]}' into the loop"
            " file, to read one of these trees",
        )
    circle = [link.name for link in links if link.name and link.name not in reached]
    if circle:
        report.problem(
            "URDF",
            f"links {', '.join(map(brief, circle[:5]))} hang from each other in a circle",
            "remove a joint, and close the loop with a constraint",
        )


def check_limits(joints: Iterable[Joint], report: Report) -> None:
    """Warn of bounds that leave no position."""
    for joint in joints:
        if joint.limits.lower > joint.limits.upper:
            report.warn(
                f"joint {brief(joint.name)}",
                f"lower limit {joint.limits.lower} is above upper limit {joint.limits.upper}",
            )


def check_constraints(
    constraints: Iterable[Constraint],
    links: Collection[str],
    joints: Mapping[str, Joint],
    report: Report,
) -> None:
    """Note constraints over unknown, fixed or many-axed joints, and cuts within one link."""
    known = set(links)
    for constraint in constraints:
        where = f"constraint {brief(constraint.name)}"
        _check_links(constraint.links, known, where, report)
        if constraint.links and constraint.links[0] == constraint.links[1] in known:
            report.problem(
                where, "joins a link to itself", "name two links that move to each other"
            )
        if constraint.type == "expression" and not constraint.joints:
            report.problem(where, "names no joint", "write an equation in joint names")
        for name in constraint.joints:
            check_single_position(name, joints, where, report)


def check_springs(
    springs: Sequence[Spring],
    links: Collection[str],
    joints: Mapping[str, Joint],
    report: Report,
) -> None:
    """Note springs with the same name, over joints of several coordinates, or on unknown links."""
    check_unique("spring", (spring.name for spring in springs), report)
    for spring in springs:
        where = f"spring {brief(spring.name)}"
        for name in spring.terms:
            check_single_position(name, joints, where, report)
        _check_links(spring.links, links, where, report)
        if spring.joint is not None:
            _check_reference(spring, joints, where, report)


def _check_reference(
    spring: Spring, joints: Mapping[str, Joint], where: str, report: Report
) -> None:
    """Note a spring with a reference that is in no joint of as many coordinates."""
    assert spring.joint is not None
    joint = joints.get(spring.joint)
    if joint is None:
        report.unknown(where, "joint", spring.joint, joints)
    elif len(spring.reference) != {"spherical": 4, "floating": 7}.get(joint.type):
        report.problem(
            where,
            f"'reference' does not fit joint {brief(spring.joint)}, which is {joint.type}",
            "give qx qy qz qw of a spherical joint, x y z qx qy qz qw of a floating one, or"
            " 'rest' of another one",
        )


def _check_links(ends: Iterable[str], links: Collection[str], where: str, report: Report) -> None:
    for link in ends:
        if link and link not in links:
            report.unknown(where, "link", link, links)


def check_single_position(
    name: str, joints: Mapping[str, Joint], where: str, report: Report
) -> None:
    """Note a joint that is unknown or whose position is not one number."""
    joint = joints.get(name)
    if joint is None:
        otherwise = "name an existing joint (a name that is no identifier, in backquotes)"
        report.unknown(where, "joint", name, joints, otherwise)
    elif joint.type not in ONE_DOF:
        report.problem(
            where,
            f"{joint.type} joint {brief(name)} has no single position",
            "name a revolute, continuous, prismatic or helical joint",
        )


_POSITIONS = {
    **dict.fromkeys(ONE_DOF, "position"),
    "planar": "x y yaw",
    "spherical": "qx qy qz qw",
    "floating": "x y z qx qy qz qw",
}


def check_guess(name: str, guess: Guess, joints: Mapping[str, Joint], report: Report) -> None:
    """Note a guess of a joint that is unknown, or that is no position of its type."""
    joint = joints.get(name)
    if joint is None or joint.type not in _POSITIONS:
        check_single_position(name, joints, "assembly", report)
        return
    entries = _POSITIONS[joint.type]
    given = guess if isinstance(guess, tuple) else (guess,)
    where = f"assembly of {brief(name)}"
    if len(given) != len(entries.split()):
        report.problem(where, f"is not a position of a {joint.type} joint", f"give {entries}")
    elif "qw" in entries and math.hypot(*given[-4:]) < SHORTEST_AXIS:
        report.problem(where, "its quaternion has zero length", f"give {entries}")


def check_joint_list(
    key: str, names: Sequence[str] | None, joints: Mapping[str, Joint], report: Report
) -> None:
    """Note listed joints that are unknown, fixed or repeated."""
    for name, count in Counter(names or ()).items():
        if count > 1:
            report.problem(key, f"lists {brief(name)} {count} times", "list it once")
        if name not in joints:
            report.unknown(key, "joint", name, joints)
        elif joints[name].type == "fixed":
            report.problem(key, f"joint {brief(name)} is fixed", "list joints that move")


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
    moments = np.linalg.eigvalsh(np.array([inertia.tensor for _, inertia in given]))
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
        body_of: for each link, the first link of its rigid body (`Tree.body_of`).
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
