"""A description as URDF text, which `robot_state_publisher` takes, and as our loop file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from lxml import etree

from rbda_ros.description.model import (
    MOMENTS,
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Joint,
    Link,
    Pose,
    RobotDescription,
    Spring,
)
from rbda_ros.description.values import unused

UNBOUNDED = 1e9
"""Number written for an effort or velocity without bound: URDF wants a number there."""


def write_urdf(
    description: RobotDescription,
    drawn: Mapping[str, Sequence[etree._Element]] | None = None,
) -> str:
    """URDF text of the links and joints; numbers are written to the last digit.

    Types that URDF lacks are written as continuous joints: the loop file says what they are.

    Args:
        description: the robot.
        drawn: for link names, <visual> and <collision> elements to put in.
    """
    root = etree.Element("robot", name=description.name)
    if description.root_pose != Pose():
        _place_root(root, description)
    for link in description.links:
        element = _link(root, link)
        element.extend((drawn or {}).get(link.name, ()))
    for joint in description.joints:
        _joint(root, joint)
    return etree.tostring(root, pretty_print=True, encoding="unicode")


def _place_root(root: etree._Element, description: RobotDescription) -> None:
    """Fix the root link to a new one, which stands where the world is."""
    world = unused("world", {link.name for link in description.links})
    joint = unused("world_fixed", {joint.name for joint in description.joints})
    etree.SubElement(root, "link", name=world)
    fixed = Joint(joint, "fixed", world, description.root, description.root_pose)
    _joint(root, fixed)


def _link(root: etree._Element, link: Link) -> etree._Element:
    element = etree.SubElement(root, "link", name=link.name)
    if link.inertia is not None:
        inertial = etree.SubElement(element, "inertial")
        add_origin(inertial, link.inertia.origin)
        etree.SubElement(inertial, "mass", value=repr(link.inertia.mass))
        moments = {name: repr(getattr(link.inertia, name)) for name in MOMENTS}
        etree.SubElement(inertial, "inertia", moments)
    return element


def _joint(root: etree._Element, joint: Joint) -> None:
    bounded = math.isfinite(joint.limits.lower) or math.isfinite(joint.limits.upper)
    kind: str = joint.type
    if kind in ("helical", "spherical") or (kind == "revolute" and not bounded):
        kind = "continuous"
    element = etree.SubElement(root, "joint", name=joint.name, type=kind)
    if joint.independent is not None:
        element.set("independent", str(joint.independent).lower())
    add_origin(element, joint.origin)
    etree.SubElement(element, "parent", link=joint.parent)
    etree.SubElement(element, "child", link=joint.child)
    if kind not in ("fixed", "floating"):
        etree.SubElement(element, "axis", xyz=numbers(joint.axis))
    if kind in ("revolute", "prismatic", "continuous"):
        limit = etree.SubElement(element, "limit")
        if bounded and kind != "continuous":
            limit.set("lower", repr(joint.limits.lower))
            limit.set("upper", repr(joint.limits.upper))
        limit.set("effort", repr(min(joint.limits.effort, UNBOUNDED)))
        limit.set("velocity", repr(min(joint.limits.velocity, UNBOUNDED)))
    if joint.damping or joint.friction:
        etree.SubElement(
            element, "dynamics", damping=repr(joint.damping), friction=repr(joint.friction)
        )


def add_origin(parent: etree._Element, pose: Pose) -> None:
    """Add an <origin>."""
    etree.SubElement(parent, "origin", xyz=numbers(pose.xyz), rpy=numbers(pose.rpy))


def numbers(values: Iterable[float]) -> str:
    """Numbers with spaces between them, to the last digit."""
    return " ".join(repr(float(value)) for value in values)


def write_loop_file(description: RobotDescription) -> str:
    """YAML text with everything that the URDF of `write_urdf` cannot say."""
    contents: dict[str, Any] = {}
    if description.independent_joints is not None:
        contents["independent_joints"] = list(description.independent_joints)
    if description.actuated_joints is not None:
        contents["actuated_joints"] = list(description.actuated_joints)
    if description.constraints:
        contents["constraints"] = [_constraint(c) for c in description.constraints]
    if description.assembly:
        contents["assembly"] = {
            name: list(guess) if isinstance(guess, tuple) else guess
            for name, guess in description.assembly.items()
        }
    if description.idle_freedoms:
        contents["idle_freedoms"] = dict(description.idle_freedoms)
    joints = {joint.name: _joint_entry(joint) for joint in description.joints}
    joints = {name: entry for name, entry in joints.items() if entry}
    if joints:
        contents["joints"] = joints
    springs = [_spring(spring) for spring in description.springs]
    if springs:
        contents["springs"] = springs
    weights = {link.name: link.weight for link in description.links if link.weight != 1.0}
    if weights:
        contents["weights"] = weights
    return yaml.safe_dump(contents, sort_keys=False, default_flow_style=None, width=100)


def write_constraints(constraints: Iterable[Constraint]) -> str:
    """YAML text of ``constraints`` alone, to be pasted into a loop file."""
    contents = {"constraints": [_constraint(constraint) for constraint in constraints]}
    return yaml.safe_dump(contents, sort_keys=False, default_flow_style=None, width=100)


def _spring(spring: Spring) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": spring.name, "stiffness": spring.stiffness}
    if spring.joint is not None:
        return entry | {"joint": spring.joint, "reference": list(spring.reference)}
    if spring.segments:
        segments = [
            {
                "predecessor": _attachment(segment.predecessor),
                "successor": _attachment(segment.successor),
                "coefficient": segment.coefficient,
            }
            for segment in spring.segments
        ]
        entry["segments"] = segments
    else:
        entry["terms"] = dict(spring.terms)
    lower, upper = spring.rest
    entry["rest"] = lower if lower == upper else [lower, upper]
    if spring.pretension:
        entry["pretension"] = spring.pretension
    return entry


def _constraint(constraint: Constraint) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": constraint.name, "type": constraint.type}
    if isinstance(constraint, Coupling):
        entry |= {"terms": dict(constraint.terms), "offset": constraint.offset}
    elif isinstance(constraint, CutJoint):
        entry |= {
            "predecessor": _attachment(constraint.predecessor),
            "successor": _attachment(constraint.successor),
            "axis": list(constraint.axis),
        }
        if constraint.second_axis is not None and constraint.type in (
            "universal",
            "perpendicular",
        ):
            entry["second_axis"] = list(constraint.second_axis)
        if constraint.length is not None and constraint.type == "distance":
            entry["length"] = constraint.length
    else:
        entry["equation"] = constraint.equation
    if constraint.method is not None:
        entry["method"] = constraint.method
    return entry


def _attachment(end: Attachment) -> dict[str, Any]:
    return {"link": end.link, "xyz": list(end.origin.xyz), "rpy": list(end.origin.rpy)}


def _joint_entry(joint: Joint) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if joint.type in ("helical", "spherical"):
        entry["type"] = joint.type
    if joint.type == "helical":
        entry["pitch"] = joint.pitch
    if joint.armature:
        entry["armature"] = joint.armature
    return entry
