"""Links and joints of a URDF; everything that draws or simulates it is ignored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import get_args

from lxml import etree

from rbda_ros.description.model import (
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
)
from rbda_ros.description.report import Report
from rbda_ros.description.values import brief, to_number, to_unit_vector, to_vector
from rbda_ros.description.xml import attribute, child, children

LARGEST_COUNT = 10_000
URDF_TYPES = tuple(t for t in get_args(JointType) if t not in ("helical", "spherical"))
ZERO = (0.0, 0.0, 0.0)
X_AXIS = (1.0, 0.0, 0.0)
to_bound = partial(to_number, allow_infinite=True)


@dataclass(frozen=True)
class Mimic:
    """``joint = multiplier * master + offset``, as <mimic> says it."""

    joint: str
    master: str
    multiplier: float = 1.0
    offset: float = 0.0


def read_name(xml: etree._Element, report: Report) -> str:
    """The robot's name; a default with a warning where there is none."""
    name = xml.get("name", "").strip()
    if not name:
        report.warn("<robot>", "has no name; it is called 'robot'")
    return name or "robot"


def read_links(xml: etree._Element, report: Report) -> tuple[Link, ...]:
    """All links, in the order of the file."""
    elements = list(children(xml, "link"))
    if len(elements) > LARGEST_COUNT:
        report.problem(
            "URDF", f"has {len(elements)} links", f"use at most {LARGEST_COUNT} links"
        )
        return ()
    return tuple(_link(element, report) for element in elements)


def read_joints(xml: etree._Element, report: Report) -> tuple[Joint, ...]:
    """All joints that can be made out, in the order of the file."""
    elements = list(children(xml, "joint"))
    if len(elements) > LARGEST_COUNT:
        report.problem(
            "URDF", f"has {len(elements)} joints", f"use at most {LARGEST_COUNT} joints"
        )
        return ()
    joints = (_joint(element, report) for element in elements)
    return tuple(joint for joint in joints if joint is not None)


def read_mimics(xml: etree._Element, report: Report) -> tuple[Mimic, ...]:
    """All <mimic> elements, in the order of the file."""
    mimics = []
    for element in children(xml, "joint"):
        mimic = child(element, "mimic")
        if mimic is None:
            continue
        where = f"joint {element.get('name', '')!r}"
        mimics.append(
            Mimic(
                joint=element.get("name", ""),
                master=required(mimic, "joint", where, report),
                multiplier=attribute(mimic, "multiplier", to_number, 1.0, where, report),
                offset=attribute(mimic, "offset", to_number, 0.0, where, report),
            )
        )
    return tuple(mimics)


def required(xml: etree._Element, name: str, where: str, report: Report) -> str:
    """An attribute that must be there and not be empty; '' after noting that it is not."""
    value = xml.get(name, "")
    if not value.strip():
        place = f"<{xml.tag}> on line {xml.sourceline} has no {name}"
        report.problem(where, place, f"write <{xml.tag} {name}='...'>")
        return ""
    return value


def read_pose(xml: etree._Element | None, where: str, report: Report) -> Pose:
    """The <origin> inside an element; the identity where there is none."""
    origin = None if xml is None else child(xml, "origin")
    return Pose(
        xyz=attribute(origin, "xyz", to_vector, ZERO, where, report),
        rpy=attribute(origin, "rpy", to_vector, ZERO, where, report),
    )


def _link(xml: etree._Element, report: Report) -> Link:
    where = f"link {xml.get('name', '')!r}"
    name = required(xml, "name", where, report)
    inertial = child(xml, "inertial")
    return Link(name, None if inertial is None else _inertia(inertial, where, report))


def _inertia(xml: etree._Element, where: str, report: Report) -> Inertia:
    mass = child(xml, "mass")
    if mass is None or mass.get("value") is None:
        report.problem(
            where, f"<inertial> on line {xml.sourceline} has no mass", "write <mass value='...'/>"
        )
    moments = child(xml, "inertia")
    if moments is None:
        report.warn(where, "<inertial> has no <inertia>; it is taken as a point mass")

    def moment(name: str) -> float:
        return attribute(moments, name, to_number, 0.0, where, report)

    return Inertia(
        mass=attribute(mass, "value", to_number, 0.0, where, report),
        origin=read_pose(xml, where, report),
        ixx=moment("ixx"),
        ixy=moment("ixy"),
        ixz=moment("ixz"),
        iyy=moment("iyy"),
        iyz=moment("iyz"),
        izz=moment("izz"),
    )


def _joint(xml: etree._Element, report: Report) -> Joint | None:
    where = f"joint {xml.get('name', '')!r}"
    name = required(xml, "name", where, report)
    kind = xml.get("type", "").strip()
    if kind not in URDF_TYPES:
        report.problem(
            where,
            f"type {brief(kind)} (line {xml.sourceline}) is unknown",
            f"use one of {', '.join(URDF_TYPES)}; helical and spherical are set in the loop file",
        )
    parent = _end(xml, "parent", where, report)
    joint_child = _end(xml, "child", where, report)
    if kind not in URDF_TYPES or not (name and parent and joint_child):
        return None
    dynamics = child(xml, "dynamics")
    moves_along_axis = kind not in ("fixed", "floating")
    return Joint(
        name=name,
        type=kind,  # type: ignore[arg-type]  # checked against URDF_TYPES above
        parent=parent,
        child=joint_child,
        origin=read_pose(xml, where, report),
        axis=read_axis(xml, where, report) if moves_along_axis else X_AXIS,
        limits=_limits(child(xml, "limit"), kind, where, report),
        damping=attribute(dynamics, "damping", to_number, 0.0, where, report),
        friction=attribute(dynamics, "friction", to_number, 0.0, where, report),
        independent=attribute(xml, "independent", _to_bool, None, where, report),
    )


def read_axis(xml: etree._Element, where: str, report: Report) -> tuple[float, float, float]:
    """The unit <axis> inside an element; x where there is none."""
    return attribute(child(xml, "axis"), "xyz", to_unit_vector, X_AXIS, where, report)


def _end(xml: etree._Element, tag: str, where: str, report: Report) -> str:
    end = child(xml, tag)
    if end is None:
        report.problem(
            where, f"has no <{tag}> (line {xml.sourceline})", f"write <{tag} link='...'/>"
        )
        return ""
    return required(end, "link", where, report)


def _limits(xml: etree._Element | None, kind: str, where: str, report: Report) -> Limits:
    """Bounds; where a <limit> leaves a position bound out, URDF means zero."""
    none = Limits()
    if xml is None:
        return none
    bounded = kind in ("revolute", "prismatic")
    lower = attribute(xml, "lower", to_bound, 0.0, where, report) if bounded else none.lower
    upper = attribute(xml, "upper", to_bound, 0.0, where, report) if bounded else none.upper
    return Limits(
        lower=lower,
        upper=upper,
        velocity=attribute(xml, "velocity", to_bound, none.velocity, where, report),
        effort=attribute(xml, "effort", to_bound, none.effort, where, report),
    )


def _to_bool(text: str) -> bool | None:
    """URDF+ writes true and false, xacro writes True and False."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in values:
        raise ValueError(f"{brief(text)} is neither true nor false")
    return values[text.strip().lower()]
