"""Inertias as MuJoCo takes them: positive, and obeying the triangle inequality, without a change.

MuJoCo rejects principal moments A + B < C, which a rotor has that is described by the inertia
about its axis alone. Inertia across a hinge's axis turns with the body that carries the hinge, so
that ``delta (1 - a a')`` may be moved from that body to the rotor: the kinetic energy, and with it
the dynamics, stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import Frame, SpanningTree, frame_of
from rbda_ros.description.model import Joint, RobotDescription
from rbda_ros.errors import Problem
from rbda_ros.exports.mjcf_elements import MjcfElements, add, numbers, quaternion
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array

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
                xy, xz, yz = given.ixy, given.ixz, given.iyz
                I_com = np.array([[given.ixx, xy, xz], [xy, given.iyy, yz], [xz, yz, given.izz]])
                R = origin.R
                self.of[link.name] = LinkInertia(given.mass, origin.p, R @ I_com @ R.T)
        for payload in payloads:
            self._add_payload(payload)
        self._joints = {joint.child: joint for joint in description.joints}
        for joint in description.joints:
            if joint.type in ("revolute", "continuous") and joint.child in self.of:
                self._make_physical(joint)

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

    def _make_physical(self, joint: Joint) -> None:
        """Move inertia across the joint's axis from its carrier, where the link lacks some."""
        own = self.of[joint.child]
        moments, axes = np.linalg.eigh(own.rotational)
        lacking = moments[2] - moments[0] - moments[1]
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        if lacking <= ROUNDING * moments[2] or abs(axes[:, 2] @ axis) < 1.0 - 1e-9:
            return
        across = 0.5 * lacking * (1.0 + 1e-12) * (np.eye(3) - np.outer(axis, axis))
        if self._spanning.links[joint.parent].body:
            donor = self.donor(joint.parent)
            if donor is None:
                return  # principal_moments says so
            places = self._spanning.links
            parent = places[donor].frame.inverse() @ places[joint.parent].frame
            R = parent.R @ frame_of(joint.origin).R
            before = self.of[donor]
            self.of[donor] = replace(before, rotational=before.rotational - R @ across @ R.T)
        self.of[joint.child] = replace(own, rotational=own.rotational + across)


def principal_moments(link: str, inertia: LinkInertia) -> tuple[Array, Array] | Problem:
    """Principal moments (3,) that MuJoCo accepts, and their axes (3, 3) as columns.

    Moments that break the triangle inequality by rounding alone are rounded.
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
    if lacking > rounding or moments.min() < -rounding:
        small, middle, large = np.sort(moments)
        return Problem(
            f"link {link!r}",
            f"MuJoCo takes no body of principal moments {small:.3g}, {middle:.3g} and {large:.3g}"
            " kg m^2",
            "give an inertia that a body can have: none negative, none above the sum of the others",
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
    found = principal_moments(link, inertia)
    if isinstance(found, Problem):
        elements.problems.append(found)
        return
    moments, axes = found
    attributes = {
        "pos": numbers(inertia.com),
        "mass": repr(max(inertia.mass, SMALLEST)),
        "diaginertia": numbers(moments),
    }
    if not np.array_equal(axes, np.eye(3)):
        attributes["quat"] = numbers(quaternion(axes))
    add(body, "inertial", attributes)
