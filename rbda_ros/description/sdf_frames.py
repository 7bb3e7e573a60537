"""Frames of an SDF model: every link, joint and <frame>, placed in the model at zero configuration.

Models inside a model become part of it: a name ``arm`` of the inner model ``left`` is ``left::arm``
outside, as the specification scopes it. Its frame becomes a <frame> with the model's name.

Poses are relative to the model, a joint's to its child, unless ``relative_to`` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from rbda_ros.description.model import Pose
from rbda_ros.description.orientation import from_quaternion, to_pose
from rbda_ros.description.report import Report, brief
from rbda_ros.description.values import SHORTEST_AXIS, to_number
from rbda_ros.description.xml_text import child, children, flag, line, required, text_of
from rbda_ros.spatial import rpy_matrix

MODEL, WORLD = "__model__", "world"
Placement = NDArray[np.float64]
"""(4, 4) axes and origin of a frame in another one."""


class Frames:
    """Where everything with a name is.

    Args:
        model: the <model>, or another element with joints in it.
        report: takes the problems.
        placed: links beside those of the model, placed in it.
    """

    def __init__(
        self,
        model: etree._Element,
        report: Report,
        placed: Mapping[str, Placement] | None = None,
    ) -> None:
        self._report = report
        self._placed: dict[str, Placement] = {**(placed or {}), MODEL: np.eye(4)}
        self._own: dict[str, tuple[str, Placement]] = {}
        self._on: dict[str, str] = {}
        self.links: list[str] = list(placed or ())
        for element in children(model, "link"):
            name = element.get("name", "")
            self.links.append(name)
            self._add(name, element, MODEL)
        for element in children(model, "frame"):
            on = element.get("attached_to") or MODEL
            self._on.setdefault(element.get("name", ""), on)
            self._add(element.get("name", ""), element, on)
        for element in children(model, "joint"):
            on = text_of(child(element, "child")) or MODEL
            self._on.setdefault(element.get("name", ""), on)
            self._add(element.get("name", ""), element, on)
        # The pose of a model is that of its placement frame.
        placed_by = model.get("placement_frame") or MODEL
        self._own.setdefault(WORLD, (placed_by, inverse(read_pose(child(model, "pose"), report))))
        self._canonical = model.get("canonical_link") or next(iter(self.links), None)

    def _add(self, name: str, element: etree._Element, default: str) -> None:
        pose = child(element, "pose")
        relative_to = default if pose is None else pose.get("relative_to") or default
        self._own.setdefault(name, (relative_to, read_pose(pose, self._report)))

    def placement(self, name: str, where: str) -> Placement:
        """A frame in the model; where it cannot be found, the model's own, with a note."""
        chain: list[str] = []
        while name not in self._placed:
            if name not in self._own or name in chain:
                self._note(name, chain, where)
                self._placed[name] = np.eye(4)
                break
            chain.append(name)
            name = self._own[name][0]
        placed = self._placed[name]
        for inner in reversed(chain):
            placed = placed @ self._own[inner][1]
            self._placed[inner] = placed
        return self._placed[chain[0]] if chain else placed

    def link_of(self, name: str, where: str) -> str:
        """The link that a link, frame or joint is on; itself where it is unknown."""
        for step in self._attachments(name):
            if step == MODEL and self._canonical is not None:
                step = self._canonical
            if step in self.links or step == WORLD:
                return step
        remedy = self._report.suggest(name, self.links, "name a link or a frame of the model")
        self._report.problem(where, f"{brief(name)} is on no link", remedy)
        return name

    def _attachments(self, name: str) -> Iterator[str]:
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            yield name
            if name in self.links or name not in self._on:
                return
            name = self._on[name]

    def _note(self, name: str, chain: list[str], where: str) -> None:
        if name in chain:
            self._report.problem(
                where, f"the pose of {brief(name)} is relative to itself", "break the circle"
            )
        else:
            self._report.unknown(where, "frame", name, self._own, "name a link, joint or frame")


def read_pose(xml: etree._Element | None, report: Report) -> Placement:
    """A <pose>: x y z, then roll pitch yaw or a quaternion; the identity where there is none."""
    text = text_of(xml)
    if xml is None or text is None:
        return np.eye(4)
    if xml.get("frame"):
        where = f"<pose> ({line(xml)})"
        report.warn(where, f"frame {brief(xml.get('frame', ''))} is ignored; use relative_to")
    quaternion = xml.get("rotation_format", "euler_rpy") == "quat_xyzw"
    try:
        values = [to_number(part) for part in text.split()]
        if len(values) != (7 if quaternion else 6):
            raise ValueError(f"{brief(text)} is not {7 if quaternion else 6} numbers")
        placed = np.eye(4)
        placed[:3, 3] = values[:3]
        if quaternion:
            placed[:3, :3] = _from_quaternion(values[3:])
        else:
            degrees = flag(xml.get("degrees"))
            roll, pitch, yaw = (math.radians(a) if degrees else a for a in values[3:])
            placed[:3, :3] = rpy_matrix((roll, pitch, yaw))
    except ValueError as error:
        report.problem(f"<pose> ({line(xml)})", str(error), "correct it")
        return np.eye(4)
    return placed


def _from_quaternion(values: list[float]) -> NDArray[np.float64]:
    if math.hypot(*values) < SHORTEST_AXIS:
        raise ValueError("its quaternion has zero length")
    x, y, z, w = values
    return from_quaternion((w, x, y, z))


def inverse(placed: Placement) -> Placement:
    """The other frame in this one."""
    R = placed[:3, :3].T
    back = np.eye(4)
    back[:3, :3], back[:3, 3] = R, -R @ placed[:3, 3]
    return back


def relative(outer: Placement, inner: Placement) -> Pose:
    """One frame in another, both placed in the model."""
    placed = inverse(outer) @ inner
    return to_pose(placed[:3, :3], placed[:3, 3])


_NAMES_IN_TEXT = ("parent", "child", "gearbox_reference_body")
_NAMES_IN_ATTRIBUTES = ("relative_to", "attached_to", "expressed_in")
_MOVED = ("link", "joint", "frame")


def flatten_model(model: etree._Element, report: Report) -> None:
    """Move what the models inside a <model> have into it, in place, at any depth."""
    for inner in list(children(model, "model")):
        flatten_model(inner, report)
        name = required(inner, "name", f"<model> ({line(inner)})", report)
        frame = _frame_of(inner, name, report)
        for element in list(inner.iterchildren()):
            if "drake" in str(element.tag):
                report.problem(
                    f"<{element.tag}> ({line(element)})",
                    "constraints of Drake inside a nested model are not read",
                    "move it into the outer <model>",
                )
            elif element.tag in _MOVED:
                _scope(element, name)
                model.append(element)
        model.append(frame)
        model.remove(inner)


def _frame_of(inner: etree._Element, name: str, report: Report) -> etree._Element:
    """The inner model's own frame, as a <frame> of the outer one.

    The pose of a model is that of its placement frame, where it names one.
    """
    given = child(inner, "pose")
    placed = read_pose(given, report)
    if placement_frame := inner.get("placement_frame"):
        where = f"model {brief(name)}"
        placed = placed @ inverse(Frames(inner, report).placement(placement_frame, where))
    frame = etree.Element("frame", name=name)
    first = child(inner, "link")
    canonical = inner.get("canonical_link") or ("" if first is None else first.get("name", ""))
    if canonical:
        frame.set("attached_to", f"{name}::{canonical}")
    at = to_pose(placed[:3, :3], placed[:3, 3])
    pose = etree.SubElement(frame, "pose")
    pose.set("relative_to", (None if given is None else given.get("relative_to")) or MODEL)
    pose.text = " ".join(repr(float(x)) for x in (*at.xyz, *at.rpy))
    return frame


def _scope(element: etree._Element, name: str) -> None:
    """Give an element and all that it names the names that they have outside."""

    def outside(inside: str) -> str:
        inside = inside.strip()
        if inside in ("", WORLD):
            return inside
        return name if inside == MODEL else f"{name}::{inside}"

    for xml in element.iter():
        if xml.tag in _NAMES_IN_TEXT and xml.getparent() is element:
            xml.text = outside(xml.text or "")
        if xml.tag == "mimic" and xml.get("joint"):
            xml.set("joint", outside(xml.get("joint", "")))
        if flag(text_of(child(xml, "use_parent_model_frame"))):
            for xyz in children(xml, "xyz"):
                xyz.set("expressed_in", MODEL)
        for attribute in _NAMES_IN_ATTRIBUTES:
            if xml.get(attribute):
                xml.set(attribute, outside(xml.get(attribute, "")))
    element.set("name", outside(element.get("name", "")))
    pose = child(element, "pose")
    if element.tag == "frame" and not element.get("attached_to"):
        element.set("attached_to", name)
    elif element.tag == "link" and (pose is None or not pose.get("relative_to")):
        if pose is None:
            pose = etree.SubElement(element, "pose")
            pose.text = "0 0 0 0 0 0"
        pose.set("relative_to", name)
