"""The XML of an MJCF model while it is written: bodies by link, unused names, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lxml import etree

from rbda_ros.cluster_tree.spanning_tree import Frame
from rbda_ros.description.orientation import to_quaternion
from rbda_ros.description.writers import numbers
from rbda_ros.errors import Problem


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

    def equality(self, kind: str, name: str, **attributes: str) -> None:
        """Add an equality of the kind: connect, weld, joint or tendon."""
        chosen = self.unused("equality", name)
        add(self.section("equality"), kind, {"name": chosen} | attributes)


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
