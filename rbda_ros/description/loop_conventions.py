"""Loops as other tools write them: frames by name, elements beside the tree, or a YAML file.

- onshape-to-robot ends each loop in two frames, links ``closing_NAME_1`` and ``closing_NAME_2`` on
  fixed joints. Where there are ``closing_NAME_1_z`` and ``closing_NAME_2_z`` too, the loop was a
  hinge about z, otherwise a ball: what its own MJCF files and PlaCo make of them.
- Drake has ``drake:ball_constraint``, ``drake:distance_constraint``, ``drake:tendon_constraint``,
  and stiff ``drake:linear_bushing_rpy`` in the place of joints that would close a loop.
- urdfdom has <constraint>, Isaac Sim <loop_joint>::

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

Gepetto's example-parallel-robots has a YAML file of frame pairs beside a URDF::

    closed_loop: [[frame_a, frame_b], ...]   # links, or joints, whose frames coincide
    type: [6d, 3d, ...]                      # whole frames, or their origins; 6d where left out
    name_mot: [motor_1, ...]                 # actuated joints
    joint_name: [ball_1, cross_1, ...]       # joints whose URDF type is only a stand-in
    joint_type: [SPHERICAL, UJOINT_XY, FIXED, ...]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lxml import etree

from rbda_ros.description.model import (
    AXES,
    X_AXIS,
    ZERO,
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    CutType,
    Pose,
    Vector3,
)
from rbda_ros.description.orientation import to_rpy, turn_onto
from rbda_ros.description.report import Report, brief
from rbda_ros.description.urdf import MAX_LOOPS, bounded, cut_type, pose_of, read_end
from rbda_ros.description.values import (
    Fields,
    converted,
    to_bound,
    to_list,
    to_names,
    to_number,
    to_unit_vector,
    to_vector,
)
from rbda_ros.description.xml_text import (
    attribute,
    child,
    children,
    line,
    local_name,
    required,
    text_of,
)
from rbda_ros.spatial import rpy_matrix

T = TypeVar("T")
_CLOSING = re.compile(r"(closing_.+)_1")
_OTHER_NAMES = {"ball": "spherical", "continuous": "revolute", "hinge": "revolute"}
_ABOUT_AN_AXIS = ("revolute", "prismatic", "cylindrical", "planar")


def closing_frames(
    links: Sequence[str], stated: Iterable[Constraint], report: Report
) -> list[CutJoint]:
    """The loops that pairs of onshape-to-robot's frames mean.

    Args:
        links: names of all links, in the order of the file.
        stated: constraints that the files state; frames that these name are theirs.
        report: takes a note of each loop that was found.
    """
    used = {link for constraint in stated for link in constraint.links}
    named, found = set(links), []
    for link in links:
        match = _CLOSING.fullmatch(link)
        other = f"{match.group(1)}_2" if match else ""
        if match is None or other not in named or not used.isdisjoint((link, other)):
            continue
        is_hinge = f"{link}_z" in named and f"{other}_z" in named
        kind: CutType = "revolute" if is_hinge else "spherical"
        cut = CutJoint(match.group(1), kind, Attachment(link), Attachment(other), axis=AXES[2])
        found.append(cut)
        report.warn(
            f"constraint {brief(cut.name)}",
            f"frames {brief(link)} and {brief(other)} of onshape-to-robot are a {kind} loop here;"
            " the loop file may state another type",
        )
    return found


_PAIR = re.compile(r"(.+?)[_-]?([12abAB])")
_OTHERS = {"1": "2", "a": "b", "A": "B"}


def frames_by_pairs(links: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs of links whose names differ in a last 1 and 2, or a and b; with what they share."""
    named = set(links)
    for link in links:
        match = _PAIR.fullmatch(link)
        if match and match[2] in _OTHERS:
            other = link[:-1] + _OTHERS[match[2]]
            if other in named:
                yield match[1], link, other


def read_drake_constraints(
    xml: etree._Element, place_of: Callable[[str], Attachment], report: Report
) -> Iterator[Constraint]:
    """The loops among Drake's own elements of a <robot> or <model>.

    Args:
        xml: the <robot> or <model>.
        place_of: where a body or frame is.
        report: takes the problems.
    """
    readers: dict[str, Callable[[_Fields], Constraint | None]] = {
        "ball_constraint": _ball,
        "distance_constraint": _distance,
        "tendon_constraint": _tendon,
        "linear_bushing_rpy": _bushing,
    }
    count = 0
    for element in xml.iterchildren():
        kind = local_name(element)
        if kind not in readers:
            continue
        count += 1
        made = readers[kind](_Fields(element, f"{kind}_{count}", place_of, report))
        if made is not None:
            yield made


def drake_frames(robot: etree._Element, report: Report) -> Callable[[str], Attachment]:
    """Where a name of a URDF is: a link, or a <frame>, which Drake adds to URDF."""
    frames: dict[str, Attachment] = {}
    for element in robot.iterchildren("frame"):
        where = f"frame {brief(element.get('name', ''))}"
        place = Attachment(element.get("link", ""), pose_of(element, where, report))
        frames[element.get("name", "")] = place

    def place_of(name: str) -> Attachment:
        place = frames.get(name, Attachment(name))
        if not place.link:
            report.problem(f"frame {brief(name)}", "is on no link", "write <frame link='...'/>")
        return place

    return place_of


class _Fields:
    """Values nested in an element of Drake: attributes in a URDF, text in an SDF."""

    def __init__(
        self, xml: etree._Element, name: str, place_of: Callable[[str], Attachment], report: Report
    ) -> None:
        self.xml, self.name, self.place_of, self.report = xml, name, place_of, report
        self.where = f"<drake:{local_name(xml)}> ({line(xml)})"

    def get(self, tag: str, convert: Callable[[str], T], default: T) -> T:
        for element in self.xml.iterchildren():
            if local_name(element) == tag:
                text = element.get("value") or element.get("name") or text_of(element) or ""
                place = f"<drake:{tag}>"
                return converted(text, convert, default, self.where, place, self.report)
        return default

    def end(self, body: str, point: str) -> Attachment:
        name = self.get(body, str.strip, "")
        if not name:
            self.report.problem(self.where, f"has no <drake:{body}>", "name a link")
            return Attachment("")
        return Attachment(self.place_of(name).link, Pose(self.get(point, to_vector, ZERO)))

    def ends(self) -> tuple[Attachment, Attachment]:
        tag = local_name(self.xml)
        return self.end(f"{tag}_body_A", f"{tag}_p_AP"), self.end(f"{tag}_body_B", f"{tag}_p_BQ")


def _ball(fields: _Fields) -> Constraint:
    return CutJoint(fields.name, "spherical", *fields.ends())


def _distance(fields: _Fields) -> Constraint:
    length = fields.get("distance_constraint_distance", to_number, 0.0)
    if length <= 0.0:
        fields.report.problem(fields.where, "its distance is not positive", "give it in m")
        length = 1.0
    if fields.get("distance_constraint_stiffness", to_bound, float("inf")) < float("inf"):
        fields.report.warn(fields.where, "is a spring in Drake; it is rigid here")
    return CutJoint(fields.name, "distance", *fields.ends(), length=length)


def _tendon(fields: _Fields) -> Coupling | None:
    """``lower <= sum a q + offset <= upper``: a coupling where both limits are the same."""
    terms: dict[str, float] = {}
    for element in fields.xml.iterchildren():
        if local_name(element) == "tendon_constraint_joint":
            try:
                terms[element.get("name", "")] = to_number(element.get("a", ""))
            except ValueError as error:
                fields.report.problem(fields.where, f"a: {error}", "give a number")
    offset = fields.get("tendon_constraint_offset", to_number, 0.0)
    lower = fields.get("tendon_constraint_lower_limit", to_bound, -float("inf"))
    upper = fields.get("tendon_constraint_upper_limit", to_bound, float("inf"))
    if lower != upper:
        fields.report.warn(fields.where, "limits the length of a tendon, and is left out")
        return None
    return Coupling(fields.name, {j: a for j, a in terms.items() if a}, offset=lower - offset)


def _bushing(fields: _Fields) -> CutJoint | None:
    """A bushing that is stiff in all directions but for turns about one axis, or about any."""
    frames = [fields.get(f"bushing_frame{side}", str.strip, "") for side in "AC"]
    force = fields.get("bushing_force_stiffness", to_vector, ZERO)
    torque = fields.get("bushing_torque_stiffness", to_vector, ZERO)
    free = [axis for axis, stiffness in zip(AXES, torque, strict=True) if not stiffness]
    kinds: dict[int, CutType] = {0: "fixed", 1: "revolute", 3: "spherical"}
    if 0.0 in force or len(free) not in kinds or "" in frames:
        fields.report.warn(fields.where, "is a spring and damper, and is left out")
        return None
    fields.report.warn(fields.where, f"is stiff in Drake; it is a {kinds[len(free)]} cut here")
    first, second = (fields.place_of(frame) for frame in frames)
    return CutJoint(fields.name, kinds[len(free)], first, second, axis=(free or AXES)[0])


def read_loop_elements(xml: etree._Element, report: Report) -> tuple[CutJoint, ...]:
    """Read all <constraint> and <loop_joint> elements, in the order of the file."""
    elements = (
        *bounded(xml, "constraint", report, MAX_LOOPS),
        *bounded(xml, "loop_joint", report, MAX_LOOPS),
    )
    return tuple(_cut(element, report) for element in elements)


def _cut(xml: etree._Element, report: Report) -> CutJoint:
    where = f"{xml.tag} {brief(xml.get('name', ''))}"
    named = xml.get("type", "").strip().lower()
    kind = cut_type(_OTHER_NAMES.get(named, named), xml, where, report) or "spherical"
    ends = [*children(xml, "link1"), *children(xml, "link2")]
    if ends:
        predecessor, successor = _isaac_ends(ends, where, report)
    else:
        predecessor, successor = (
            Attachment(
                read_end(xml, tag, where, report),
                pose_of(child(xml, f"{tag}_origin"), where, report),
            )
            for tag in ("parent", "child")
        )
    axis = _axis(xml, "parent_axis", where, report) or _axis(xml, "axis", where, report) or X_AXIS
    other = _axis(xml, "child_axis", where, report)
    if other is not None and kind in _ABOUT_AN_AXIS:
        # Our cuts have one axis, with the same components in both frames.
        R = rpy_matrix(successor.origin.rpy) @ turn_onto(axis, other)
        successor = Attachment(successor.link, Pose(successor.origin.xyz, to_rpy(R)))
    return CutJoint(
        name=required(xml, "name", where, report),
        type=kind,
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
        Attachment(required(end, "link", where, report), pose_of(end, where, report))
        for end in ends
    )
    return first, second


def _axis(xml: etree._Element, tag: str, where: str, report: Report) -> Vector3 | None:
    return attribute(child(xml, tag), "xyz", to_unit_vector, None, where, report)


GEPETTO_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_GEPETTO_CUTS = {"6d": "fixed", "3d": "spherical"}
_UNIT_VECTORS = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}


def is_gepetto(value: object) -> bool:
    """Whether a loop file is in this form."""
    return isinstance(value, Mapping) and not {"closed_loop", "name_mot"}.isdisjoint(value)


def gepetto_to_loop_file(
    value: object, link_names: Sequence[str], child_of: Mapping[str, str], report: Report
) -> dict[str, Any]:
    """The same in the keys of our loop file.

    Args:
        value: the file, parsed.
        link_names: of the URDF; a frame is a link first.
        child_of: for each joint of the URDF the link that it moves, whose frame is its own.
        report: takes the problems.
    """
    fields = Fields(value, "loop file", GEPETTO_KEYS, report)
    pairs = fields.get("closed_loop", to_list, ())
    types = fields.get("type", to_list, ["6d"] * len(pairs))
    if len(types) != len(pairs):
        reason = f"has {len(pairs)} closed_loop and {len(types)} type"
        report.problem("loop file", reason, "give one type for each pair of frames")
        types = ["6d"] * len(pairs)
    links = set(link_names)
    ends = {link: link for link in links} | {j: c for j, c in child_of.items() if j not in links}
    numbered = enumerate(zip(pairs, types, strict=True), start=1)
    found = (_constraint(number, pair, kind, ends, report) for number, (pair, kind) in numbered)
    constraints = [constraint for constraint in found if constraint is not None]
    motors = fields.get("name_mot", to_names, None)
    joints = _joints(fields, report)
    # Gepetto's own loader passes over unknown names, and its files have some.
    for key, names in (("name_mot", motors or ()), ("joint_name", joints)):
        for name in names:
            if name not in child_of:
                report.warn(key, f"there is no joint {brief(name)}; it is ignored")
    translated: dict[str, Any] = {
        "constraints": constraints,
        "joints": {name: joint for name, joint in joints.items() if name in child_of},
    }
    if motors is not None:
        translated["actuated_joints"] = _moving(motors, joints, child_of)
    return translated


def _constraint(
    number: int, pair: object, kind: object, link_of: Mapping[str, str], report: Report
) -> dict[str, Any] | None:
    """One pair of frames as an entry of ``constraints``; None after noting what is wrong."""
    where = f"closed_loop {number}"
    cut = _GEPETTO_CUTS.get(str(kind).lower())
    if cut is None:
        report.problem(where, f"type {brief(kind)} is unknown", "use 6d or 3d")
        return None
    try:
        ends = to_names(pair)
    except ValueError as error:
        report.problem(where, str(error), "name two frames")
        return None
    if len(ends) != 2:
        report.problem(where, f"names {len(ends)} frames", "name two frames")
        return None
    return {
        "name": f"{ends[0]}C{ends[1]}",
        "type": cut,
        "predecessor": {"link": link_of.get(ends[0], ends[0])},
        "successor": {"link": link_of.get(ends[1], ends[1])},
    }


def _moving(
    motors: Sequence[str], joints: Mapping[str, Mapping[str, Any]], child_of: Mapping[str, str]
) -> list[str]:
    """The motors that are joints; both halves of one that became a universal joint."""
    names: list[str] = []
    for name in motors:
        suffixes = joints.get(name, {}).get("suffixes")
        if name in child_of:
            names.extend(f"{name}_{suffix}" for suffix in suffixes) if suffixes else names.append(
                name
            )
    return names


def _joints(fields: Fields, report: Report) -> dict[str, dict[str, Any]]:
    names = fields.get("joint_name", to_names, ())
    kinds = fields.get("joint_type", to_names, ())
    if len(names) != len(kinds):
        reason = f"has {len(names)} joint_name and {len(kinds)} joint_type"
        report.problem("loop file", reason, "give one joint_type for each joint_name")
        return {}
    joints: dict[str, dict[str, Any]] = {}
    for name, kind in zip(names, kinds, strict=True):
        letters = kind.removeprefix("UJOINT_").upper()
        if kind in ("SPHERICAL", "FIXED"):
            joints[name] = {"type": kind.lower()}
        elif kind.startswith("UJOINT_") and len(letters) == 2 and {*letters} <= {*_UNIT_VECTORS}:
            first, second = (_UNIT_VECTORS[letter] for letter in letters)
            suffixes = [letters[0], letters[1]]
            joints[name] = {"type": "universal", "axis": first, "second_axis": second}
            joints[name]["suffixes"] = suffixes
        else:
            report.problem(
                f"joint_name {brief(name)}",
                f"joint_type {brief(kind)} is unknown",
                "use SPHERICAL, FIXED or UJOINT_XY with any two of X, Y and Z",
            )
    return joints
