"""Loops that URDFs state beside the tree: <constraint> (urdfdom) and <loop_joint> (Isaac Sim).

::

    <constraint name="pin" type="revolute">            <!-- urdfdom pull request 264 -->
      <parent link="coupler"/> <parent_origin xyz="..." rpy="..."/> <parent_axis xyz="0 0 1"/>
      <child link="rocker"/>   <child_origin xyz="..." rpy="..."/>  <child_axis xyz="0 0 1"/>
    </constraint>
    <loop_joint name="ball" type="spherical">          <!-- Isaac Sim -->
      <link1 link="coupler" xyz="..." rpy="..."/>
      <link2 link="rocker" xyz="..." rpy="..."/>
    </loop_joint>

Isaac Sim's own documentation writes ``link1`` twice, so that is read too; other exporters write
the elements of <constraint> into a <loop_joint>.
"""

from __future__ import annotations

from typing import cast

from lxml import etree

from rbda_ros.description.model import Attachment, CutJoint, CutType, Pose, Vector3
from rbda_ros.description.orientation import to_rpy, turn_onto
from rbda_ros.description.report import Report
from rbda_ros.description.urdf import X_AXIS, ZERO, bounded
from rbda_ros.description.urdf_plus import CUT_TYPES, MOST
from rbda_ros.description.values import brief, to_unit_vector, to_vector
from rbda_ros.description.xml_text import attribute, child, children, line, required
from rbda_ros.spatial import rpy_matrix

_OTHER_NAMES = {"ball": "spherical", "continuous": "revolute", "hinge": "revolute"}
_ABOUT_AN_AXIS = ("revolute", "prismatic", "cylindrical", "planar")


def read_loop_elements(xml: etree._Element, report: Report) -> tuple[CutJoint, ...]:
    """Read all <constraint> and <loop_joint> elements, in the order of the file."""
    elements = (
        *bounded(xml, "constraint", report, MOST),
        *bounded(xml, "loop_joint", report, MOST),
    )
    return tuple(_cut(element, report) for element in elements)


def _cut(xml: etree._Element, report: Report) -> CutJoint:
    where = f"{xml.tag} {brief(xml.get('name', ''))}"
    kind = xml.get("type", "").strip().lower()
    kind = _OTHER_NAMES.get(kind, kind)
    if kind not in CUT_TYPES:
        report.problem(
            where,
            f"type {brief(kind)} is unknown ({line(xml)})",
            f"use one of {', '.join(CUT_TYPES)}",
        )
        kind = "spherical"
    ends = [*children(xml, "link1"), *children(xml, "link2")]
    if ends:
        predecessor, successor = _isaac_ends(ends, where, report)
    else:
        predecessor = _end(xml, "parent", where, report)
        successor = _end(xml, "child", where, report)
    axis = _axis(xml, "parent_axis", where, report) or _axis(xml, "axis", where, report) or X_AXIS
    other = _axis(xml, "child_axis", where, report)
    if other is not None and kind in _ABOUT_AN_AXIS:
        # Our cuts have one axis, with the same components in both frames.
        R = rpy_matrix(successor.origin.rpy) @ turn_onto(axis, other)
        successor = Attachment(successor.link, Pose(successor.origin.xyz, to_rpy(R)))
    return CutJoint(
        name=required(xml, "name", where, report),
        type=cast(CutType, kind),
        predecessor=predecessor,
        successor=successor,
        axis=axis,
        second_axis=other if kind == "universal" else None,
    )


def _isaac_ends(
    ends: list[etree._Element], where: str, report: Report
) -> tuple[Attachment, Attachment]:
    if len(ends) != 2:
        report.problem(where, f"joins {len(ends)} link(s)", "write <link1 .../> and <link2 .../>")
        return Attachment(""), Attachment("")
    first, second = (
        Attachment(required(end, "link", where, report), _pose(end, where, report)) for end in ends
    )
    return first, second


def _end(xml: etree._Element, tag: str, where: str, report: Report) -> Attachment:
    end = child(xml, tag)
    if end is None:
        report.problem(where, f"has no <{tag}> ({line(xml)})", f"write <{tag} link='...'/>")
        return Attachment("")
    pose = _pose(child(xml, f"{tag}_origin"), where, report)
    return Attachment(required(end, "link", where, report), pose)


def _pose(xml: etree._Element | None, where: str, report: Report) -> Pose:
    return Pose(
        attribute(xml, "xyz", to_vector, ZERO, where, report),
        attribute(xml, "rpy", to_vector, ZERO, where, report),
    )


def _axis(xml: etree._Element, tag: str, where: str, report: Report) -> Vector3 | None:
    return attribute(child(xml, tag), "xyz", to_unit_vector, None, where, report)
