"""A description as URDF text: what `robot_state_publisher` takes, and our reader reads back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from lxml import etree

from rbda_ros.description.model import Joint, Link, Pose, RobotDescription

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


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with underscores after it until nothing has it."""
    while name in taken:
        name += "_"
    return name


def _link(root: etree._Element, link: Link) -> etree._Element:
    element = etree.SubElement(root, "link", name=link.name)
    if link.inertia is not None:
        inertial = etree.SubElement(element, "inertial")
        add_origin(inertial, link.inertia.origin)
        etree.SubElement(inertial, "mass", value=repr(link.inertia.mass))
        moments = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        etree.SubElement(
            inertial, "inertia", {name: repr(getattr(link.inertia, name)) for name in moments}
        )
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


def numbers(values: Sequence[float]) -> str:
    """Numbers with spaces between them, to the last digit."""
    return " ".join(repr(float(value)) for value in values)
