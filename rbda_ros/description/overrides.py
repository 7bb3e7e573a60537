"""Properties of joints that the loop file sets: types that URDF lacks, and armature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from rbda_ros.description.loop_file import JointOverride
from rbda_ros.description.model import Joint, Limits, Link, Pose, Vector3
from rbda_ros.description.orientation import about, to_pose
from rbda_ros.description.report import Report
from rbda_ros.description.values import brief
from rbda_ros.spatial import rpy_matrix


def override_joints(
    joints: Iterable[Joint], overrides: Mapping[str, JointOverride], report: Report
) -> tuple[tuple[Joint, ...], tuple[Link, ...]]:
    """The joints as the loop file sets them, and the links between halves of universal joints."""
    joints = tuple(joints)
    known = {joint.name for joint in joints}
    for name in overrides:
        if name not in known:
            remedy = report.suggest(name, known, "name an existing joint")
            report.problem(f"joints: {brief(name)}", "unknown joint", remedy)
    changed: list[Joint] = []
    crosses: list[Link] = []
    for joint in joints:
        override = overrides.get(joint.name)
        if override is None:
            changed.append(joint)
        elif override.type == "universal":
            cross = Link(f"{joint.name}_cross")
            changed.extend(_halves(joint, override, cross.name))
            crosses.append(cross)
        else:
            changed.append(_changed(joint, override, report))
    return tuple(changed), tuple(crosses)


def _changed(joint: Joint, override: JointOverride, report: Report) -> Joint:
    if override.type == "fixed" and override.position:
        joint = replace(joint, origin=_held(joint, override.position, report))
    if override.type is not None and override.type != "universal":
        limits = joint.limits
        if override.type in ("spherical", "fixed"):  # one number bounds no orientation
            limits = Limits(velocity=limits.velocity, effort=limits.effort)
        joint = replace(joint, type=override.type, pitch=override.pitch, limits=limits)
    if override.armature:
        if joint.type in ("fixed", "planar"):
            report.problem(
                f"joints: {brief(joint.name)}",
                f"a {joint.type} joint has no armature",
                "give it to a joint with an axis, a spherical or a floating one",
            )
        joint = replace(joint, armature=override.armature)
    return joint


def _held(joint: Joint, position: float, report: Report) -> Pose:
    """Where a joint has its child at a position."""
    R, p = rpy_matrix(joint.origin.rpy), np.array(joint.origin.xyz)
    if joint.type == "prismatic":
        return to_pose(R, p + position * (R @ joint.axis))
    if joint.type in ("revolute", "continuous"):
        return to_pose(R @ about(joint.axis, position), p)
    report.problem(
        f"joints: {brief(joint.name)}",
        f"a {joint.type} joint is not held at one number",
        "leave 'position' out",
    )
    return joint.origin


def halves_of(joint: str, override: JointOverride) -> tuple[str, str]:
    """Names of the two joints that a universal one becomes."""
    first, second = (f"{joint}_{suffix}" for suffix in override.suffixes)
    return first, second


def _halves(joint: Joint, override: JointOverride, cross: str) -> tuple[Joint, Joint]:
    """A universal joint as two revolute ones with a massless link between them."""
    first = override.axis or joint.axis
    limits = Limits(velocity=joint.limits.velocity, effort=joint.limits.effort)
    names = halves_of(joint.name, override)
    half = replace(joint, type="revolute", limits=limits, armature=override.armature or 0.0)
    return (
        replace(half, name=names[0], child=cross, axis=first),
        replace(
            half,
            name=names[1],
            parent=cross,
            origin=Pose(),
            axis=override.second_axis or _perpendicular(first),
        ),
    )


def _perpendicular(axis: Vector3) -> Vector3:
    """A unit vector at right angles to the axis: the coordinate axis that is farthest from it."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    across = np.cross(axis, other)
    x, y, z = (float(component) for component in across / np.linalg.norm(across))
    return (x, y, z)
