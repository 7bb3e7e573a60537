"""URDF+: loops and couplings beside the tree (as in generalized_rbda)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, get_args

from lxml import etree

from rbda_ros.description.model import Attachment, CutJoint, CutType
from rbda_ros.description.report import Report
from rbda_ros.description.urdf import bounded, read_axis, read_pose
from rbda_ros.description.values import brief, to_number
from rbda_ros.description.xml_text import attribute, child, line, required

CUT_TYPES = get_args(CutType)
MOST = 2000


@dataclass(frozen=True)
class PathCoupling:
    """``ratio * sum(joints towards predecessor) = sum(joints towards successor)``.

    Both paths start at the nearest common ancestor of the two links.
    """

    name: str
    predecessor: str
    successor: str
    ratio: float


def read_loops(xml: etree._Element, report: Report) -> tuple[CutJoint, ...]:
    """Read all <loop> elements, in the order of the file."""
    return tuple(_loop(element, report) for element in bounded(xml, "loop", report, MOST))


def read_path_couplings(xml: etree._Element, report: Report) -> tuple[PathCoupling, ...]:
    """Read all <coupling> elements, in the order of the file."""
    return tuple(
        _path_coupling(element, report) for element in bounded(xml, "coupling", report, MOST)
    )


def _loop(xml: etree._Element, report: Report) -> CutJoint:
    where = f"loop {brief(xml.get('name', ''))}"
    kind = xml.get("type", "").strip()
    if kind not in CUT_TYPES:
        report.problem(
            where,
            f"type {brief(kind)} is unknown ({line(xml)})",
            f"use one of {', '.join(CUT_TYPES)}",
        )
    return CutJoint(
        name=required(xml, "name", where, report),
        type=cast(CutType, kind if kind in CUT_TYPES else "revolute"),
        predecessor=_attachment(xml, "predecessor", where, report),
        successor=_attachment(xml, "successor", where, report),
        axis=read_axis(xml, where, report),
    )


def _path_coupling(xml: etree._Element, report: Report) -> PathCoupling:
    where = f"coupling {brief(xml.get('name', ''))}"
    ratio = child(xml, "ratio")
    if ratio is None or ratio.get("value") is None:
        report.problem(where, f"has no ratio ({line(xml)})", "write <ratio value='...'/>")
    return PathCoupling(
        name=required(xml, "name", where, report),
        predecessor=_attachment(xml, "predecessor", where, report).link,
        successor=_attachment(xml, "successor", where, report).link,
        ratio=attribute(ratio, "value", to_number, 1.0, where, report),
    )


def _attachment(xml: etree._Element, tag: str, where: str, report: Report) -> Attachment:
    end = child(xml, tag)
    if end is None:
        report.problem(where, f"has no <{tag}> ({line(xml)})", f"write <{tag} link='...'>")
        return Attachment("")
    return Attachment(required(end, "link", where, report), read_pose(end, where, report))
