"""SDF as Gazebo reads it: the links of a model, and its joints, whose loops need no other file.

SDF draws the closed mechanism, so that every loop closes with all joints at zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lxml import etree

from rbda_ros.description.link_tree import Tree
from rbda_ros.description.loop_conventions import read_drake_constraints
from rbda_ros.description.model import Attachment, Constraint, Inertia, Joint, Link, Pose
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report
from rbda_ros.description.sdf_frames import WORLD, Frames, Placement, read_pose, relative
from rbda_ros.description.sdf_joints import TWO_AXES, JointReader, Parts, grow_tree
from rbda_ros.description.sdf_nesting import flatten_model
from rbda_ros.description.urdf import bounded
from rbda_ros.description.values import brief, to_number, to_vector
from rbda_ros.description.xml_text import child, children, inner, line, required, text_of
from rbda_ros.spatial import rpy_matrix


def read_sdf(root: etree._Element, report: Report, chosen: str | None = None) -> ReadRobot:
    """Read the one model of an <sdf>; of several, that of a name, or with a link of that name."""
    model = _model(root, report, chosen)
    frames = Frames(model, report)
    joints = bounded(model, "joint", report)
    two_axes = [joint.get("name", "") for joint in joints if joint.get("type") in TWO_AXES]
    parts = Parts(two_axes=frozenset(two_axes))
    axes_in_model = _version(root) < (1, 5)
    for element in bounded(model, "link", report):
        parts.links.append(_link(element, report))
    readers = [JointReader(xml, frames, axes_in_model, parts, report) for xml in joints]
    gears = [reader for reader in readers if reader.kind == "gearbox"]
    jointed = [reader for reader in readers if reader.kind != "gearbox"]
    backwards = grow_tree([(reader.parent, reader.child) for reader in jointed], frames.links)
    for i, reader in enumerate(jointed):
        reader.read(backwards.get(i))
    if any(WORLD in (reader.parent, reader.child) for reader in jointed):
        parts.links.insert(0, Link(WORLD))
    tree = Tree(parts.joints)
    for reader in gears:
        reader.read_gear(tree)
    return ReadRobot(
        name=model.get("name", "").strip() or "robot",
        links=tuple(parts.links),
        joints=tuple(parts.joints),
        constraints=(
            *parts.cuts,
            *parts.gears,
            *read_drake_constraints(model, lambda name: _place(name, frames), report),
        ),
        mimics=tuple(parts.mimics),
        springs=tuple(parts.springs),
        root_pose=_root_pose(parts, frames),
    )


def _place(name: str, frames: Frames) -> Attachment:
    """Where a link or frame is."""
    link = frames.link_of(name, brief(name))
    return Attachment(
        link, relative(frames.placement(link, name), frames.placement(name, brief(name)))
    )


def read_gazebo_joints(
    robot: etree._Element, joints: Sequence[Joint], report: Report
) -> list[Constraint]:
    """Loops and gears of a URDF that stand as SDF joints in <gazebo>.

    Gazebo adds them to the tree of the URDF, with all joints at zero.
    """
    elements = [
        (gazebo, xml) for gazebo in children(robot, "gazebo") for xml in children(gazebo, "joint")
    ]
    if not elements:
        return []
    tree, parts = Tree(joints), Parts()
    names = {link.get("name", "") for link in children(robot, "link")}
    placed = {name: _at_zero(name, tree) for name in names}
    for gazebo, xml in elements:
        reader = JointReader(xml, Frames(gazebo, report, placed), False, parts, report)
        if reader.kind == "gearbox":
            reader.read_gear(tree)
        elif WORLD in (reader.parent, reader.child) and WORLD not in names:
            if reader.kind != "fixed" or tree.path(reader.child):
                report.problem(
                    reader.where,
                    "joins a link to the world inside <gazebo>",
                    "add a link 'world' to the URDF, and the joint as one of its own",
                )
        else:
            reader.read(None)
    return [*parts.cuts, *parts.gears]


def _at_zero(link: str, tree: Tree) -> Placement:
    """(4, 4) a link's frame in the root's, with all joints at zero."""
    placed = np.eye(4)
    for joint in tree.path(link):
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = rpy_matrix(joint.origin.rpy), joint.origin.xyz
        placed = placed @ step
    return placed


def _root_pose(parts: Parts, frames: Frames) -> Pose:
    """Where the model's pose and that of its root link have this link in the world."""
    if any(link.name == WORLD for link in parts.links):
        return Pose()
    moved = {joint.child for joint in parts.joints}
    roots = [name for name in frames.links if name not in moved]
    if not roots:
        return Pose()
    return relative(frames.placement(WORLD, "world"), frames.placement(roots[0], "<model>"))


def _model(root: etree._Element, report: Report, chosen: str | None) -> etree._Element:
    """The model of the file, the only one of its world that is not static, or the chosen one."""
    models = [*children(root, "model")]
    for world in children(root, "world"):
        _warn_of_gravity(world, report)
        moving = [
            m for m in children(world, "model") if text_of(child(m, "static")) not in ("true", "1")
        ]
        models.extend(moving)
    if len(models) > 1 and chosen is not None:
        named = [m for m in models if m.get("name") == chosen]
        models = named or [m for m in models if _has(m, chosen)] or models
    if len(models) != 1:
        names = [model.get("name", "") for model in models]
        remedy = f"write 'root: {names[0]}' into the loop file" if names else "add a <model>"
        found = f" ({', '.join(map(brief, names[:5]))})" if names else ""
        report.problem("<sdf>", f"has {len(models)} models that move{found}", remedy)
        report.raise_problems()
    if text_of(child(models[0], "static")) in ("true", "1"):
        report.warn("<model>", "is static in the simulator; its joints move here")
    pose = child(models[0], "pose")
    if pose is not None and pose.get("relative_to", WORLD) not in ("", WORLD):
        report.warn("<pose>", "of the model is taken as relative to the world")
    for element in models[0].iter("include"):
        report.problem(
            f"<include> ({line(element)})",
            "models of other files are not read",
            "write them out with 'gz sdf -p'",
        )
    flatten_model(models[0], report)
    return models[0]


def _warn_of_gravity(world: etree._Element, report: Report) -> None:
    down = (0.0, 0.0, -9.81)
    g = inner(world, "gravity", to_vector, down, "<world>", report)
    if not np.allclose(g, down, atol=2e-2):
        given = " ".join(f"{component:g}" for component in g)
        report.warn("<world>", f"gravity {given} is left to the argument 'gravity'")


def _has(model: etree._Element, name: str) -> bool:
    """Whether a model has a link or joint of that name."""
    return any(element.get("name") == name for element in model.iterchildren("link", "joint"))


def _version(root: etree._Element) -> tuple[int, ...]:
    """(1, 5) for "1.5"; of the newest kind where it cannot be told."""
    parts = root.get("version", "").split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (1, 99)


def _link(xml: etree._Element, report: Report) -> Link:
    where = f"link {brief(xml.get('name', ''))}"
    name = required(xml, "name", where, report)
    inertial = child(xml, "inertial")
    has_weight = (text_of(child(xml, "gravity")) or "true").lower() not in ("false", "0")
    if (text_of(child(xml, "kinematic")) or "false").lower() in ("true", "1"):
        report.warn(where, "<kinematic> is true, so that no force moves it; forces do here")
    if inertial is None:
        report.warn(where, "has no <inertial>; SDF gives it 1 kg and 1 kg m^2 about every axis")
    elif inertial.get("auto", "false").strip().lower() in ("true", "1"):
        report.problem(
            where, "its inertia is to be computed from shapes", "write <mass> and <inertia> out"
        )
    tensor = None if inertial is None else child(inertial, "inertia")

    def moment(tag: str) -> float:
        return inner(tensor, tag, to_number, float(tag in ("ixx", "iyy", "izz")), where, report)

    pose = None if inertial is None else child(inertial, "pose")
    if pose is not None and pose.get("relative_to"):
        report.warn(where, "the pose of <inertial> is taken as relative to the link")
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
        weight=float(has_weight),
    )
