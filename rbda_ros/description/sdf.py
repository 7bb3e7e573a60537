"""SDF as Gazebo reads it: the links of a model, and its joints, whose loops need no other file.

SDF draws the closed mechanism, so that every loop closes with all joints at zero.
"""

from __future__ import annotations

import numpy as np
from lxml import etree

from rbda_ros.description.link_tree import Tree
from rbda_ros.description.model import Inertia, Link
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import WORLD, Frames, read_pose, relative
from rbda_ros.description.sdf_joints import TWO_AXES, JointReader, Parts, grow_tree
from rbda_ros.description.urdf import bounded
from rbda_ros.description.values import brief, to_number
from rbda_ros.description.xml_text import child, children, inner, line, required, text_of


def read_sdf(root: etree._Element, report: Report) -> ReadRobot:
    """Read the one model of an <sdf>."""
    model = _model(root, report)
    frames = Frames(model, report)
    joints = bounded(model, "joint", report)
    two_axes = [joint.get("name", "") for joint in joints if joint.get("type") in TWO_AXES]
    parts = Parts(two_axes=frozenset(two_axes))
    axes_in_model = _version(root) < (1, 5)
    for element in bounded(model, "link", report):
        parts.links.append(_link(element, report))
    readers = [JointReader(xml, frames, axes_in_model, parts, report) for xml in joints]
    jointed = [reader for reader in readers if reader.kind != "gearbox"]
    tree = grow_tree([(reader.parent, reader.child) for reader in jointed], frames.links)
    moving = {jointed[i].xml for i in tree}
    for reader in readers:
        reader.read(in_tree=reader.xml in moving)
    if any(joint.parent == WORLD for joint in parts.joints):
        parts.links.insert(0, Link(WORLD))
    _check_gears(parts, report)
    return ReadRobot(
        name=model.get("name", "").strip() or "robot",
        links=tuple(parts.links),
        joints=tuple(parts.joints),
        constraints=tuple(parts.cuts),
        mimics=tuple(parts.mimics),
        path_couplings=tuple(parts.gears),
    )


def _check_gears(parts: Parts, report: Report) -> None:
    """Angles of a gear are taken from where the ways to its links part: the reference body."""
    tree = Tree(parts.joints)
    body_of = tree.body_of([WORLD, *(link.name for link in parts.links)])
    for gear, reference in zip(parts.gears, parts.references, strict=True):
        ways = tree.paths_from_common_ancestor(gear.predecessor, gear.successor)
        starts = {body_of.get(way[0].parent) for way in ways if way}
        if starts - {body_of.get(reference)}:
            report.problem(
                f"joint {brief(gear.name)}",
                f"its links do not both turn on {brief(reference)}",
                "name the link that both turn on in <gearbox_reference_body>",
            )


def _model(root: etree._Element, report: Report) -> etree._Element:
    """The model of the file, or the only one of its world that is not part of the ground."""
    models = [*children(root, "model")]
    for world in children(root, "world"):
        moving = [m for m in children(world, "model") if text_of(child(m, "static")) != "true"]
        models.extend(moving)
    if len(models) != 1:
        report.problem("<sdf>", f"has {len(models)} models that move", "give one robot's <model>")
        report.raise_problems()
    for tag in ("include", "model"):
        for element in children(models[0], tag):
            report.problem(
                f"<{tag}> ({line(element)})",
                "models inside models are not read",
                "write it out with 'gz sdf -p', and its links and joints into one <model>",
            )
    return models[0]


def _version(root: etree._Element) -> tuple[int, ...]:
    """(1, 5) for "1.5"; of the newest kind where it cannot be told."""
    parts = root.get("version", "").split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (1, 99)


def _link(xml: etree._Element, report: Report) -> Link:
    where = f"link {brief(xml.get('name', ''))}"
    name = required(xml, "name", where, report)
    inertial = child(xml, "inertial")
    if inertial is None:
        report.warn(where, "has no <inertial>; SDF gives it 1 kg and 1 kg m^2 about every axis")
    elif inertial.get("auto", "false").strip().lower() in ("true", "1"):
        report.problem(
            where, "its inertia is to be computed from shapes", "write <mass> and <inertia> out"
        )
    elif child(inertial, "fluid_added_mass") is not None:
        report.warn(where, "<fluid_added_mass> is left out")
    tensor = None if inertial is None else child(inertial, "inertia")

    def moment(tag: str) -> float:
        return inner(tensor, tag, to_number, float(tag in ("ixx", "iyy", "izz")), where, report)

    pose = None if inertial is None else child(inertial, "pose")
    return Link(
        name,
        Inertia(
            mass=inner(inertial, "mass", to_number, 1.0, where, report),
            origin=relative(np.eye(4), read_pose(pose, report)),
            ixx=moment("ixx"),
            ixy=moment("ixy"),
            ixz=moment("ixz"),
            iyy=moment("iyy"),
            iyz=moment("iyz"),
            izz=moment("izz"),
        ),
    )
