"""Links, joints and mimics of a URDF, and the loops and couplings of URDF+ beside the tree.

URDF+ is as in generalized_rbda. Everything that draws or simulates the robot is ignored.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast, get_args

from lxml import etree

from rbda_ros.description.model import (
    CUT_TYPES,
    MOMENTS,
    X_AXIS,
    ZERO,
    Attachment,
    Coupling,
    CutJoint,
    CutType,
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
    Vector3,
)
from rbda_ros.description.report import Report, brief, several
from rbda_ros.description.values import to_bound, to_number, to_unit_vector, to_vector
from rbda_ros.description.xml_text import (
    attribute,
    child,
    children,
    flag,
    line,
    local_name,
    required,
    text_of,
)

URDF_TYPES = tuple(t for t in get_args(JointType) if t not in ("helical", "spherical"))


@dataclass(frozen=True)
class Mimic:
    """``joint = multiplier * master + offset``, as <mimic> says it."""

    joint: str
    master: str
    multiplier: float = 1.0
    offset: float = 0.0

    def coupling(self) -> Coupling:
        """``joint - multiplier * master = offset``."""
        terms = {self.joint: 1.0}
        if self.multiplier:
            terms[self.master] = -self.multiplier
        return Coupling(f"{self.joint}_mimic", terms, self.offset)


def read_name(xml: etree._Element, report: Report) -> str:
    """Read the robot's name; a default with a warning where there is none."""
    name = xml.get("name", "").strip()
    if not name:
        report.warn("<robot>", "has no name; it is called 'robot'")
    return name or "robot"


def read_links(xml: etree._Element, report: Report) -> tuple[Link, ...]:
    """Read all links, in the order of the file."""
    links = tuple(_link(element, report) for element in bounded(xml, "link", report))
    off = _weightless(xml)
    if weightless := [link.name for link in links if link.name in off]:
        report.warn(
            f"link {several(weightless, 1)}",
            "<gazebo> switches gravity off, for its simulation; here the weight stays; "
            f"'weights: {{{weightless[0]}: 0.0}}' in the loop file takes it off",
        )
    return links


def _weightless(xml: etree._Element) -> set[str]:
    """Links whose gravity <gazebo> switches off."""
    found = set()
    for gazebo in children(xml, "gazebo"):
        has_gravity = flag(text_of(child(gazebo, "gravity")), default=True)
        if flag(text_of(child(gazebo, "turnGravityOff"))) or not has_gravity:
            found.add(gazebo.get("reference", ""))
    return found


def read_joints(xml: etree._Element, report: Report) -> tuple[Joint, ...]:
    """Read all <joint>s, in the order of the file; what is unreadable is noted, and is ''."""
    return tuple(_joint(element, report) for element in bounded(xml, "joint", report))


def read_drake_joints(
    xml: etree._Element, report: Report
) -> Iterator[tuple[Joint, tuple[str, float]]]:
    """Joints that Drake adds to URDF, as joints of URDF, each with its type and pitch [m/rad]."""
    types = {"ball": "spherical", "universal": "universal", "screw": "helical", "planar": "planar"}
    for element in xml.iterchildren():
        if local_name(element) != "joint" or element.tag == "joint":
            continue
        where, given = f"joint {brief(element.get('name', ''))}", element.get("type", "").strip()
        if given not in types:
            report.problem(
                where,
                f"type {brief(given)} of <drake:joint> is not read ({line(element)})",
                f"use one of {', '.join(types)}",
            )
            continue
        pitch = 0.0
        for inside in element.iter():
            if local_name(inside) == "screw_thread_pitch":
                per_turn = attribute(inside, "value", to_number, 0.0, where, report)
                pitch = per_turn / (2.0 * math.pi)
        standin = copy.copy(element)
        limit = child(element, "limit")
        has_limits = limit is not None and {"lower", "upper"} & {*map(str, limit.keys())}
        turns = "revolute" if given == "screw" and has_limits else "continuous"
        standin.set("type", "planar" if given == "planar" else turns)
        yield _joint(standin, report), (types[given], pitch)


def read_mimics(xml: etree._Element, report: Report) -> tuple[Mimic, ...]:
    """Read all <mimic> elements, in the order of the file."""
    mimics = []
    for joint in children(xml, "joint"):
        mimic = child(joint, "mimic")
        name = joint.get("name", "")
        if mimic is None:
            continue
        where = f"joint {brief(name)}"
        if joint.get("type", "").strip() == "fixed":
            report.warn(where, "<mimic> is ignored, as a fixed joint does not move")
            continue
        mimics.append(read_mimic(mimic, name, where, report))
    return tuple(mimics)


def read_mimic(xml: etree._Element, joint: str, where: str, report: Report) -> Mimic:
    """Read one <mimic>."""
    return Mimic(
        joint=joint,
        master=required(xml, "joint", where, report),
        multiplier=attribute(xml, "multiplier", to_number, 1.0, where, report),
        offset=attribute(xml, "offset", to_number, 0.0, where, report),
    )


def read_pose(xml: etree._Element, where: str, report: Report) -> Pose:
    """Read the <origin> inside an element; the identity where there is none."""
    return pose_of(child(xml, "origin"), where, report)


def pose_of(xml: etree._Element | None, where: str, report: Report) -> Pose:
    """Read the attributes xyz and rpy of an element; the identity where there is none."""
    return Pose(
        xyz=attribute(xml, "xyz", to_vector, ZERO, where, report),
        rpy=attribute(xml, "rpy", to_vector, ZERO, where, report),
    )


def read_axis(xml: etree._Element, where: str, report: Report) -> Vector3:
    """Read the unit <axis> inside an element; x where there is none."""
    return attribute(child(xml, "axis"), "xyz", to_unit_vector, X_AXIS, where, report)


def bounded(
    xml: etree._Element, tag: str, report: Report, most: int = 10_000
) -> list[etree._Element]:
    """Return the children of that tag; none, with a note, where there are too many."""
    elements = list(children(xml, tag))
    if len(elements) > most:
        report.problem("URDF", f"has {len(elements)} {tag}s", f"use at most {most}")
        return []
    return elements


def _link(xml: etree._Element, report: Report) -> Link:
    where = f"link {brief(xml.get('name', ''))}"
    name = required(xml, "name", where, report)
    inertial = child(xml, "inertial")
    return Link(name, None if inertial is None else _inertia(inertial, where, report))


def _inertia(xml: etree._Element, where: str, report: Report) -> Inertia:
    mass = child(xml, "mass")
    if mass is None or mass.get("value") is None:
        report.problem(where, f"<inertial> has no mass ({line(xml)})", "write <mass value='...'/>")
    tensor = child(xml, "inertia")
    if tensor is None:
        report.warn(where, "<inertial> has no <inertia>; it is taken as a point mass")
    return Inertia(
        mass=attribute(mass, "value", to_number, 0.0, where, report),
        origin=read_pose(xml, where, report),
        **{name: attribute(tensor, name, to_number, 0.0, where, report) for name in MOMENTS},
    )


def _joint(xml: etree._Element, report: Report) -> Joint:
    where = f"joint {brief(xml.get('name', ''))}"
    dynamics = child(xml, "dynamics")
    kind = _joint_type(xml, where, report)
    has_axis = kind not in ("fixed", "floating")
    return Joint(
        name=required(xml, "name", where, report),
        type=kind,
        parent=read_end(xml, "parent", where, report),
        child=read_end(xml, "child", where, report),
        origin=read_pose(xml, where, report),
        axis=read_axis(xml, where, report) if has_axis else X_AXIS,
        limits=_limits(child(xml, "limit"), kind, where, report),
        damping=attribute(dynamics, "damping", to_number, 0.0, where, report),
        friction=attribute(dynamics, "friction", to_number, 0.0, where, report),
        independent=attribute(xml, "independent", _to_bool, None, where, report),
    )


def _joint_type(xml: etree._Element, where: str, report: Report) -> JointType:
    kind = xml.get("type", "").strip()
    if kind in URDF_TYPES:
        return cast(JointType, kind)
    report.problem(
        where,
        f"type {brief(kind)} is unknown ({line(xml)})",
        f"use one of {', '.join(URDF_TYPES)}; the loop file sets helical and spherical",
    )
    return "revolute"  # so that what names this joint is still checked


def read_end(xml: etree._Element, tag: str, where: str, report: Report) -> str:
    """Read the link that a <parent> or <child> inside an element names; '' if there is none."""
    end = child(xml, tag)
    if end is None:
        report.problem(where, f"has no <{tag}> ({line(xml)})", f"write <{tag} link='...'/>")
        return ""
    return required(end, "link", where, report)


def _limits(xml: etree._Element | None, kind: JointType, where: str, report: Report) -> Limits:
    """Bounds; positions are bounded for revolute and prismatic joints only."""
    none = Limits()
    bounded = kind in ("revolute", "prismatic")
    given = () if xml is None else xml.keys()
    if bounded and "lower" not in given and "upper" not in given:
        report.warn(where, "has no position limits; it is taken as unbounded")
        bounded = False
    # URDF: a bound that is left out beside the other is zero.
    lower = attribute(xml, "lower", to_bound, 0.0, where, report) if bounded else none.lower
    upper = attribute(xml, "upper", to_bound, 0.0, where, report) if bounded else none.upper
    return Limits(
        lower=lower,
        upper=upper,
        velocity=attribute(xml, "velocity", to_bound, none.velocity, where, report),
        effort=attribute(xml, "effort", to_bound, none.effort, where, report),
    )


def _to_bool(text: str) -> bool | None:
    """URDF+ writes true and false; files that come from xacro, True and False."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in values:
        raise ValueError(f"{brief(text)} is neither true nor false")
    return values[text.strip().lower()]


MAX_LOOPS = 2000


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
    return tuple(_loop(element, report) for element in bounded(xml, "loop", report, MAX_LOOPS))


def read_path_couplings(xml: etree._Element, report: Report) -> tuple[PathCoupling, ...]:
    """Read all <coupling> elements, in the order of the file."""
    return tuple(
        _path_coupling(element, report) for element in bounded(xml, "coupling", report, MAX_LOOPS)
    )


def _loop(xml: etree._Element, report: Report) -> CutJoint:
    where = f"loop {brief(xml.get('name', ''))}"
    kind = cut_type(xml.get("type", "").strip(), xml, where, report)
    return CutJoint(
        name=required(xml, "name", where, report),
        type=kind or "revolute",
        predecessor=_attachment(xml, "predecessor", where, report),
        successor=_attachment(xml, "successor", where, report),
        axis=read_axis(xml, where, report),
    )


def cut_type(kind: str, xml: etree._Element, where: str, report: Report) -> CutType | None:
    """The type of a cut; None after noting that it is unknown."""
    if kind in CUT_TYPES:
        return cast(CutType, kind)
    remedy = f"use one of {', '.join(CUT_TYPES)}"
    report.problem(where, f"type {brief(kind)} is unknown ({line(xml)})", remedy)
    return None


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
