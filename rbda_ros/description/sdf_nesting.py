"""Models inside SDF models: their links, joints and frames become those of the outer model.

A name ``arm`` of the inner model ``left`` is ``left::arm`` outside, as the specification scopes it.
The frame of the inner model becomes a <frame> with the model's name.
"""

from __future__ import annotations

from lxml import etree

from rbda_ros.description.orientation import to_pose
from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import MODEL, WORLD, Frames, inverse, read_pose
from rbda_ros.description.values import brief
from rbda_ros.description.xml_text import child, children, line, required, text_of

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
        if (text_of(child(xml, "use_parent_model_frame")) or "").lower() in ("true", "1"):
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
