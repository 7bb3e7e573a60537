"""The XML of an MJCF model while it is written: bodies by link, unused names, and inertias.

MuJoCo takes inertias that are positive and obey the triangle inequality. It rejects principal
moments A + B < C, which a rotor has that is described by the inertia about its axis alone. Mass
that is spread along the axis a of a hinge may belong to either side: both move it alike. Its
inertia ``delta (1 - a a')`` is therefore moved from the body on the other side to the one that
lacks it: the kinetic energy, and with it the dynamics, stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import Frame, SpanningTree, frame_of
from rbda_ros.description.model import CutJoint, Joint, RobotDescription, Segment
from rbda_ros.description.orientation import to_quaternion
from rbda_ros.description.writers import numbers
from rbda_ros.errors import Problem
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array

HERE = Frame(np.eye(3), np.zeros(3))
HIGHEST = 4
"""Degree of the polynomials that MuJoCo's equalities have."""


@dataclass(frozen=True)
class Entry:
    """Where the position of one MJCF joint comes from.

    Attributes:
        size: entries of qpos: 1, 4 of a ball, 7 of a free joint.
        start: first entry of our position q, or number of the cut it belongs to.
        factor: on it.
        place: number of the coordinate within a cut; None for joints that q has.
    """

    size: int
    start: int
    factor: float = 1.0
    place: int | None = None


@dataclass
class MjcfElements:
    """The document and its parts.

    Attributes:
        root: <mujoco>.
        balance_inertia: whether inertias that MuJoCo rejects are made larger.
        bodies: <body>, or <worldbody>, by link.
        entries: by name of the MJCF joint.
        problems: why it cannot be written.
        notes: what is written differently.
    """

    root: etree._Element
    balance_inertia: bool = False
    bodies: dict[str, etree._Element] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _taken: set[tuple[str, str]] = field(default_factory=set)

    def section(self, tag: str) -> etree._Element:
        """The one element of this name below <mujoco>."""
        found = self.root.find(tag)
        return etree.SubElement(self.root, tag) if found is None else found

    def unused(self, kind: str, name: str) -> str:
        """The name, or the name with a number that nothing of the kind has; taken from now on."""
        chosen, number = name, 2
        while (kind, chosen) in self._taken:
            chosen, number = f"{name}_{number}", number + 1
        self._taken.add((kind, chosen))
        return chosen

    def site(self, link: str, name: str, frame: Frame) -> str:
        """Add a site on a link; returns its name."""
        return self.site_in(self.bodies[link], name, frame)

    def site_in(self, body: etree._Element, name: str, frame: Frame) -> str:
        """Add a site in a body; returns its name."""
        chosen = self.unused("site", name)
        add(body, "site", {"name": chosen} | placed(frame))
        return chosen

    def site_pair(self, ends: CutJoint | Segment, name: str, shift: Frame = HERE) -> list[str]:
        """Add a site at the predecessor and one at the successor, moved by a frame; their names."""
        sides = ("predecessor", ends.predecessor), ("successor", ends.successor)
        return [
            self.site(end.link, f"{name}_{side}", frame_of(end.origin) @ shift)
            for side, end in sides
        ]

    def joint(self, body: etree._Element, name: str, entry: Entry, **attributes: str) -> str:
        """Add a joint to a body; returns its name."""
        chosen = self.unused("joint", name)
        self.entries[chosen] = entry
        add(body, "joint", {"name": chosen} | attributes)
        return chosen

    def fixed_tendon(self, name: str, terms: dict[str, float], **attributes: str) -> str:
        """Add a tendon whose length is the sum of coefficient * joint position."""
        chosen = self.unused("tendon", name)
        tendon = add(self.section("tendon"), "fixed", {"name": chosen} | attributes)
        for joint, coefficient in terms.items():
            add(tendon, "joint", {"joint": joint, "coef": repr(float(coefficient))})
        return chosen

    def spatial_tendon(
        self, name: str, lines: Sequence[tuple[float, Sequence[str]]], **attributes: str
    ) -> str:
        """Add a tendon whose length is the sum of coefficient * distance between two sites."""
        chosen = self.unused("tendon", name)
        tendon = add(self.section("tendon"), "spatial", {"name": chosen} | attributes)
        for i, (coefficient, sites) in enumerate(lines):
            if i or coefficient != 1.0:
                add(tendon, "pulley", {"divisor": repr(float(1.0 / coefficient))})
            for site in sites:
                add(tendon, "site", {"site": site})
        return chosen

    def equality(
        self, kind: str, name: str, polycoef: Sequence[float] = (), **attributes: str
    ) -> None:
        """Add an equality of the kind: connect, weld, joint or tendon.

        ``polycoef`` has the coefficients of the last two, from the constant on.
        """
        chosen = self.unused("equality", name)
        if polycoef:
            attributes["polycoef"] = numbers([*polycoef, *[0] * (HIGHEST + 1 - len(polycoef))])
        add(self.section("equality"), kind, {"name": chosen} | attributes)

    def reject(self, where: str, problem: str, remedy: str) -> None:
        """Note why the robot cannot be written."""
        self.problems.append(Problem(where, problem, remedy))


def add(parent: etree._Element, tag: str, attributes: dict[str, str]) -> etree._Element:
    """Add an element."""
    return etree.SubElement(parent, tag, attributes)


def placed(frame: Frame) -> dict[str, str]:
    """Attributes ``pos`` and ``quat`` of a frame, without those that are zero."""
    attributes = {}
    if np.any(frame.p):
        attributes["pos"] = numbers(frame.p)
    if not np.array_equal(frame.R, np.eye(3)):
        attributes["quat"] = numbers(to_quaternion(frame.R))
    return attributes


SMALLEST = 1.1e-15
"""Mass [kg] and principal moment [kg m^2] of a body without any: just above MuJoCo's mjMINVAL."""
ROUNDING = 1e-9
"""Share of the largest principal moment by which few digits may break the triangle inequality."""


@dataclass(frozen=True, eq=False)
class LinkInertia:
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) about it [kg m^2], in link axes."""

    mass: float
    com: Array
    rotational: Array

    def share(self, part: float) -> LinkInertia:
        """A part of it at the same place."""
        return LinkInertia(part * self.mass, self.com, part * self.rotational)

    def seen_from(self, frame: Frame) -> LinkInertia:
        """The same in another frame, which is given in this one."""
        com = frame.R.T @ (self.com - frame.p)
        return LinkInertia(self.mass, com, frame.R.T @ self.rotational @ frame.R)


class Inertias:
    """The inertia of every link; what one link gives away, another one gets.

    Args:
        description: of the robot.
        spanning: its bodies.
        payloads: that it carries.
    """

    def __init__(
        self,
        description: RobotDescription,
        spanning: SpanningTree,
        payloads: tuple[Payload, ...] = (),
    ) -> None:
        self._spanning = spanning
        self.of: dict[str, LinkInertia] = {}
        for link in description.links:
            if (given := link.inertia) is not None:
                origin = frame_of(given.origin)
                R = origin.R
                self.of[link.name] = LinkInertia(given.mass, origin.p, R @ given.tensor @ R.T)
        for payload in payloads:
            self._add_payload(payload)
        for name in self.of:
            if spanning.links[name].body and not _is_physical(self.of[name]):
                self._make_physical(name, description.joints)

    def donor(self, link: str) -> str | None:
        """The heaviest link that is fixed to this one (or itself); None on the fixed base."""
        places = self._spanning.links
        body = places[link].body
        fixed = [other for other in self.of if places[other].body == body and body]
        heavy = [other for other in fixed if self.of[other].mass > 0.0]
        return max(heavy, key=lambda other: self.of[other].mass, default=None)

    def give(self, donor: str, part: float, to: Frame, link: str) -> LinkInertia:
        """Take a part of a link's inertia, seen from a frame on a link that is fixed to it."""
        places = self._spanning.links
        taken = self.of[donor].share(part)
        self.of[donor] = self.of[donor].share(1.0 - part)
        at = places[donor].frame.inverse() @ places[link].frame @ to
        return taken.seen_from(at)

    def _add_payload(self, payload: Payload) -> None:
        xx, xy, xz, yy, yz, zz = payload.inertia
        I_load = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        com = np.array(payload.com)
        before = self.of.get(payload.link, LinkInertia(0.0, com, np.zeros((3, 3))))
        mass = before.mass + payload.mass
        centre = (before.mass * before.com + payload.mass * com) / mass if mass else com
        total = np.zeros((3, 3))
        for m, c, about_com in (
            (before.mass, before.com, before.rotational),
            (payload.mass, com, I_load),
        ):
            d = c - centre
            total += about_com + m * (d @ d * np.eye(3) - np.outer(d, d))
        self.of[payload.link] = LinkInertia(mass, centre, total)

    def _make_physical(self, link: str, joints: tuple[Joint, ...]) -> None:
        """Take what a link lacks from a body on the other side of one of its hinges."""
        places = self._spanning.links
        for joint in joints:
            if joint.type not in ("revolute", "continuous") or link not in (
                joint.parent,
                joint.child,
            ):
                continue
            axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
            origin = frame_of(joint.origin)
            sides = [(joint.child, axis), (joint.parent, origin.R @ axis)]
            (_, own_axis), (other, other_axis) = sides if link == joint.child else sides[::-1]
            second = second_moments(self.of[link].rotational)
            if np.linalg.eigvalsh(second)[0] >= 0.0:
                return
            along = float(own_axis @ np.linalg.lstsq(second, own_axis, rcond=None)[0])
            lacking = -1.0 / along * (1.0 + 1e-6) if along < 0.0 else 0.0
            if np.linalg.eigvalsh(second + lacking * np.outer(own_axis, own_axis))[0] < 0.0:
                continue
            if places[other].body:
                donor = self.donor(other)
                if donor is None:
                    continue
                there = places[donor].frame.R.T @ places[other].frame.R @ other_axis
                before = self.of[donor]
                left = second_moments(before.rotational) - lacking * np.outer(there, there)
                if np.linalg.eigvalsh(left)[0] < 0.0:
                    continue
                self.of[donor] = replace(
                    before, rotational=before.rotational - lacking * _across(there)
                )
            own = self.of[link]
            self.of[link] = replace(own, rotational=own.rotational + lacking * _across(own_axis))
            return


def _is_physical(inertia: LinkInertia) -> bool:
    moments = np.linalg.eigvalsh(second_moments(inertia.rotational))
    return bool(moments[0] >= -ROUNDING * moments[2])


def second_moments(rotational: Array) -> Array:
    """(3, 3) integral of r r' dm about the centre of mass, of an inertia (3, 3) about it."""
    return np.asarray(0.5 * np.trace(rotational) * np.eye(3) - rotational)


def _across(axis: Array) -> Array:
    """Inertia of a unit second moment along an axis."""
    return np.eye(3) - np.outer(axis, axis)


def principal_moments(
    link: str, inertia: LinkInertia, balance: bool = False
) -> tuple[Array, Array] | Problem:
    """Principal moments (3,) that MuJoCo accepts, and their axes (3, 3) as columns.

    Moments that break the triangle inequality by rounding alone are rounded; with ``balance``,
    all that break it are made larger until they do not.
    """
    I_com = inertia.rotational
    if not np.any(I_com - np.diag(np.diag(I_com))):
        moments, axes = np.diag(I_com).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(I_com)
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
    largest = int(np.argmax(moments))
    others = [i for i in range(3) if i != largest]
    lacking = float(moments[largest] - moments[others].sum())
    rounding = ROUNDING * float(np.abs(moments).max())
    if not balance and (lacking > rounding or moments.min() < -rounding):
        small, middle, large = np.sort(moments)
        return Problem(
            f"link {link!r}",
            f"MuJoCo takes no body of principal moments {small:.3g}, {middle:.3g} and {large:.3g}"
            " kg m^2",
            "give an inertia that a body can have, or let convert change it with --balance-inertia",
        )
    moments = np.maximum(moments, SMALLEST)
    lacking = float(moments[largest] - moments[others].sum())
    if lacking >= 0.0:
        moments[others] += 0.5 * lacking + 4e-16 * moments[largest]
    return moments, axes


def add_inertial(
    elements: MjcfElements, body: etree._Element, link: str, inertia: LinkInertia
) -> None:
    """Add <inertial> to a body, or a problem of the link.

    Principal moments, not ``fullinertia``: MuJoCo finds the axes of a small full inertia to 1e-12
    kg m^2 only.
    """
    found = principal_moments(link, inertia, elements.balance_inertia)
    if isinstance(found, Problem):
        elements.problems.append(found)
        return
    moments, axes = found
    asked = np.trace(inertia.rotational)
    if moments.sum() > asked + 10.0 * ROUNDING * abs(asked) + 10.0 * SMALLEST:
        elements.notes.append(f"link {link!r}: its inertia is made larger, as MuJoCo demands")
    attributes = {
        "pos": numbers(inertia.com),
        "mass": repr(max(inertia.mass, SMALLEST)),
        "diaginertia": numbers(moments),
    }
    if not np.array_equal(axes, np.eye(3)):
        attributes["quat"] = numbers(to_quaternion(axes))
    add(body, "inertial", attributes)
