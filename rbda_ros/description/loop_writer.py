"""A description's loops as our loop file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from rbda_ros.description.model import (
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Joint,
    RobotDescription,
    Spring,
)


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
    joints = {joint.name: _joint(joint) for joint in description.joints}
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
    entry: dict[str, Any] = {"name": constraint.name}
    if isinstance(constraint, Coupling):
        entry |= {"type": "coupling", "terms": dict(constraint.terms), "offset": constraint.offset}
    elif isinstance(constraint, CutJoint):
        entry |= {
            "type": constraint.type,
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
        entry |= {"type": "expression", "equation": constraint.equation}
    if constraint.method is not None:
        entry["method"] = constraint.method
    return entry


def _attachment(end: Attachment) -> dict[str, Any]:
    return {"link": end.link, "xyz": list(end.origin.xyz), "rpy": list(end.origin.rpy)}


def _joint(joint: Joint) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if joint.type in ("helical", "spherical"):
        entry["type"] = joint.type
    if joint.type == "helical":
        entry["pitch"] = joint.pitch
    if joint.armature:
        entry["armature"] = joint.armature
    return entry
