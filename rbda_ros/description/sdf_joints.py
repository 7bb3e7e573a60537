"""Joints of an SDF model: one for each link moves it, any other closes a loop.

The tree is grown from the root, joints in the order of the file where there is a choice. A joint
whose frame is not its child's gets a massless link between, so that the frames of links stay what
the file says.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lxml import etree

from rbda_ros.description.model import (
    Attachment,
    CutJoint,
    CutType,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
    Vector3,
)
from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import MODEL, WORLD, Frames, relative
from rbda_ros.description.urdf import X_AXIS, Mimic
from rbda_ros.description.urdf_plus import PathCoupling
from rbda_ros.description.values import brief, to_bound, to_number, to_unit_vector
from rbda_ros.description.xml_text import child, inner, line, required, text_of

_TREE_TYPES: dict[str, JointType] = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "screw": "helical",
}
_CUT_TYPES: dict[str, CutType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
}
TWO_AXES = ("universal", "revolute2")
_UNBOUNDED = 1e16
"""What SDF writes for a bound that is none."""
_NO_OFFSET = 1e-15
"""Frames this near [m, or of a rotation matrix] are the same."""


@dataclass
class Parts:
    """What has been read so far, and which joints have two axes."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    cuts: list[CutJoint] = field(default_factory=list)
    mimics: list[Mimic] = field(default_factory=list)
    gears: list[PathCoupling] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    two_axes: frozenset[str] = frozenset()


def grow_tree(ends: Sequence[tuple[str, str]], links: Sequence[str]) -> set[int]:
    """Which of the joints, given by parent and child, move their children; the others are cuts.

    Joints that no root leads to are among them, so that what is wrong there is told.
    """
    from_link: dict[str, list[int]] = {}
    for i, (parent, _) in enumerate(ends):
        from_link.setdefault(parent, []).append(i)
    children = {child for _, child in ends}
    roots = [link for link in (WORLD, *links) if link in from_link and link not in children]
    reached = set(roots or links[:1])
    ready = sorted(i for link in reached for i in from_link.get(link, ()))
    tree: set[int] = set()
    while ready:
        i = heapq.heappop(ready)
        child = ends[i][1]
        if child not in reached:
            tree.add(i)
            reached.add(child)
            for j in from_link.get(child, ()):
                heapq.heappush(ready, j)
    return tree | {i for i, (parent, _) in enumerate(ends) if parent not in reached}


@dataclass
class JointReader:
    """Reads one joint."""

    xml: etree._Element
    frames: Frames
    axes_in_model: bool
    parts: Parts
    report: Report

    def __post_init__(self) -> None:
        self.where = f"joint {brief(self.xml.get('name', ''))}"
        self.name = required(self.xml, "name", self.where, self.report)
        self.kind = self.xml.get("type", "").strip()
        self.parent, self.child = self._end("parent"), self._end("child")

    def read(self, in_tree: bool) -> None:
        """Add the joint to the parts: to the tree, as a cut, or as a gear."""
        parent, moved = self.parent, self.child
        if moved == WORLD:
            self.report.problem(self.where, "moves the world", "swap <parent> and <child>")
        elif self.kind == "gearbox":
            self._add_gear(parent, moved)
        elif self.kind not in (*_TREE_TYPES, *TWO_AXES):
            known = (*_TREE_TYPES, *TWO_AXES, "gearbox")
            self.report.problem(
                self.where,
                f"type {brief(self.kind)} is unknown ({line(self.xml)})",
                f"use one of {', '.join(known)}",
            )
        elif in_tree:
            self._add_to_tree(parent, moved)
        else:
            self._add_cut(parent, moved)

    def _end(self, tag: str) -> str:
        name = text_of(child(self.xml, tag))
        if name is None:
            self.report.problem(self.where, f"has no <{tag}> ({line(self.xml)})", f"add <{tag}>")
            return ""
        return WORLD if name == WORLD else self.frames.link_of(name, self.where)

    def _origin(self, link: str) -> Pose:
        """The joint frame in a link's, at zero."""
        own = self.frames.placement(self.name, self.where)
        return relative(self.frames.placement(link, self.where), own)

    def _add_to_tree(self, parent: str, moved: str) -> None:
        origin, back = self._origin(parent), self._back(moved)
        last = moved if back is None else f"{moved}_{self.name}"
        if self.kind in TWO_AXES:
            cross = f"{self.name}_cross"
            self.parts.links.append(Link(cross))
            self._add_joint(f"{self.name}_1", "revolute", "axis", (parent, cross), origin)
            self._add_joint(f"{self.name}_2", "revolute", "axis2", (cross, last), Pose())
        else:
            self._add_joint(self.name, _TREE_TYPES[self.kind], "axis", (parent, last), origin)
        if back is not None:
            self.parts.links.append(Link(last))
            self.parts.joints.append(Joint(f"{self.name}_fixed", "fixed", last, moved, back))

    def _back(self, moved: str) -> Pose | None:
        """The child's frame in the joint's; None where they are the same."""
        own, link = (self.frames.placement(name, self.where) for name in (self.name, moved))
        return None if np.abs(own - link).max() <= _NO_OFFSET else relative(own, link)

    def _add_joint(
        self, name: str, kind: JointType, tag: str, ends: tuple[str, str], origin: Pose
    ) -> None:
        """A tree joint about one axis: that in the element ``tag``."""
        axis = child(self.xml, tag)
        dynamics = None if axis is None else child(axis, "dynamics")
        mimic = None if axis is None else child(axis, "mimic")
        if mimic is not None:
            self.parts.mimics.append(self._mimic(mimic, name))
        if self._number(dynamics, "spring_stiffness", 0.0):
            self.report.warn(self.where, "its spring is left out: give it as effort")
        has_axis = kind not in ("fixed", "spherical")
        limits = self._limits(axis) if has_axis else Limits()
        if kind == "revolute" and not math.isfinite(limits.upper - limits.lower):
            kind = "continuous"
        self.parts.joints.append(
            Joint(
                name=name,
                type=kind,
                parent=ends[0],
                child=ends[1],
                origin=origin,
                axis=self._axis(tag) if has_axis else X_AXIS,
                limits=limits,
                damping=self._number(dynamics, "damping", 0.0),
                friction=self._number(dynamics, "friction", 0.0),
                pitch=self._pitch() if kind == "helical" else 0.0,
            )
        )

    def _add_cut(self, parent: str, moved: str) -> None:
        """A joint whose child has a joint already closes a loop."""
        kind = _CUT_TYPES.get(self.kind)
        if kind is None:
            self.report.problem(
                self.where,
                f"closes a loop, which a {self.kind} joint cannot",
                f"let another joint of the loop be the last for {brief(moved)}, or use one of"
                f" {', '.join(_CUT_TYPES)}",
            )
            return
        for element in self.xml.iter("dynamics", "mimic"):
            self.report.warn(
                self.where, f"closes a loop, and its <{element.tag}> is left out: a cut has none"
            )
        self.parts.cuts.append(
            CutJoint(
                self.name,
                kind,
                Attachment(parent, self._origin(parent)),
                Attachment(moved, self._origin(moved)),
                axis=X_AXIS if kind in ("fixed", "spherical") else self._axis("axis"),
                second_axis=self._axis("axis2") if kind == "universal" else None,
            )
        )

    def _add_gear(self, parent: str, moved: str) -> None:
        """``angle of parent = -ratio * angle of child``, both seen from the reference body."""
        ratio = self._number(self.xml, "gearbox_ratio", 1.0)
        self.parts.gears.append(PathCoupling(self.name, moved, parent, -ratio))
        self.parts.references.append(text_of(child(self.xml, "gearbox_reference_body")) or "")

    def _axis(self, tag: str) -> Vector3:
        """Unit axis in the joint frame, at zero."""
        axis = child(self.xml, tag)
        xyz = None if axis is None else child(axis, "xyz")
        if axis is None or xyz is None or text_of(xyz) is None:
            self.report.problem(
                self.where, f"has no <{tag}> ({line(self.xml)})", f"write <{tag}><xyz>0 0 1</xyz>"
            )
            return X_AXIS
        vector = inner(axis, "xyz", to_unit_vector, X_AXIS, self.where, self.report)
        old = text_of(child(axis, "use_parent_model_frame"))
        in_model = self.axes_in_model if old is None else old.lower() in ("true", "1")
        seen_from = xyz.get("expressed_in") or (MODEL if in_model else self.name)
        to_model = self.frames.placement(seen_from, self.where)[:3, :3]
        own = self.frames.placement(self.name, self.where)[:3, :3]
        x, y, z = (float(component) for component in own.T @ to_model @ vector)
        return (x, y, z)

    def _limits(self, axis: etree._Element | None) -> Limits:
        limit = None if axis is None else child(axis, "limit")
        lower, upper = (
            inner(limit, tag, to_bound, none, self.where, self.report)
            for tag, none in (("lower", -math.inf), ("upper", math.inf))
        )
        effort, velocity = (
            inner(limit, tag, to_bound, math.inf, self.where, self.report)
            for tag in ("effort", "velocity")
        )
        return Limits(
            lower=lower if lower > -_UNBOUNDED else -math.inf,
            upper=upper if upper < _UNBOUNDED else math.inf,
            velocity=velocity if velocity >= 0.0 else math.inf,  # -1 means none
            effort=effort if effort >= 0.0 else math.inf,
        )

    def _pitch(self) -> float:
        """Travel of a screw [m/rad]: of the element in use, or of the old one, which is inverse."""
        per_turn = self._number(self.xml, "screw_thread_pitch", 0.0)
        old = self._number(self.xml, "thread_pitch", 0.0)
        if not per_turn and not old:
            self.report.problem(
                self.where, "has no pitch", "give metres a turn in <screw_thread_pitch>"
            )
            return 1.0
        return per_turn / (2.0 * math.pi) if per_turn else -1.0 / old

    def _mimic(self, xml: etree._Element, name: str) -> Mimic:
        """``multiplier * (master - reference) + offset``."""
        master = required(xml, "joint", self.where, self.report)
        if master in self.parts.two_axes:
            master += "_2" if xml.get("axis") == "axis2" else "_1"
        multiplier = self._number(xml, "multiplier", 1.0)
        reference = self._number(xml, "reference", 0.0)
        offset = self._number(xml, "offset", 0.0) - multiplier * reference
        return Mimic(name, master, multiplier, offset)

    def _number(self, xml: etree._Element | None, tag: str, default: float) -> float:
        return inner(xml, tag, to_number, default, self.where, self.report)
