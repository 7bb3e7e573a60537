"""SDF as Gazebo reads it: the links of a model, and its joints, whose loops need no other file.

SDF draws the closed mechanism, so that every loop closes with all joints at zero. One joint for
each link moves it, any other closes a loop.

The tree is grown from the root, joints in the order of the file where there is a choice. A joint
whose frame is not that of the link it moves gets a massless link between, so that the frames of
links stay what the file says. Gears come last: they couple joints of the tree.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lxml import etree

from rbda_ros.description.link_tree import Tree
from rbda_ros.description.loop_conventions import read_drake_constraints
from rbda_ros.description.model import (
    MOMENTS,
    X_AXIS,
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    CutType,
    Inertia,
    Joint,
    JointType,
    Limits,
    Link,
    Pose,
    Spring,
    Vector3,
    vector3,
)
from rbda_ros.description.read_robot import ReadRobot
from rbda_ros.description.report import Report, brief
from rbda_ros.description.sdf_frames import (
    MODEL,
    WORLD,
    Frames,
    Placement,
    flatten_model,
    read_pose,
    relative,
)
from rbda_ros.description.sdf_shapes import inertia_of_shapes
from rbda_ros.description.urdf import Mimic, bounded, read_mimic
from rbda_ros.description.values import converted, to_bound, to_number, to_unit_vector, to_vector
from rbda_ros.description.xml_text import (
    child,
    children,
    flag,
    inner,
    line,
    local_name,
    required,
    text_of,
)
from rbda_ros.spatial import rpy_matrix

_TREE_TYPES: dict[str, JointType] = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "screw": "helical",
}
_CUT_TYPES: dict[str, CutType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
}
TWO_AXES = ("universal", "revolute2")
_UNBOUNDED = 1e16
"""Number that SDF writes for a missing bound."""
_NO_OFFSET = 1e-15
"""Frames this near [m, or of a rotation matrix] are the same."""
_PARALLEL = 1.0 - 1e-6
"""Cosine of the angle between the axes of a gearbox and of a joint that it turns: files round."""


@dataclass
class Parts:
    """Content read so far, and which joints have two axes."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    cuts: list[CutJoint] = field(default_factory=list)
    mimics: list[Mimic] = field(default_factory=list)
    gears: list[Coupling] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    two_axes: frozenset[str] = frozenset()


def grow_tree(ends: Sequence[tuple[str, str]], links: Sequence[str]) -> dict[int, bool]:
    """The joints that move a link, by their place in ``ends``: whether they are followed backwards.

    The tree starts at the world, or else at the first link that is no joint's child. Joints are
    followed from parent to child, in the order of the file, as long as one of them reaches a new
    link; then from child to parent. Joints between links that were both reached are cuts.
    Links that no joint ties to the root start trees of their own.

    Args:
        ends: parent and child link of each joint.
        links: in the order of the file.
    """
    at: dict[str, list[int]] = {}
    for i, pair in enumerate(ends):
        for link in pair:
            at.setdefault(link, []).append(i)
    children = {child for _, child in ends}
    heads = [link for link in links if link not in children]
    tree: dict[int, bool] = {}
    reached: set[str] = set()
    for start in (WORLD, *heads, *links):
        if start in reached or start not in at:
            continue
        reached.add(start)
        ready = [(start != ends[i][0], i) for i in at[start]]
        heapq.heapify(ready)
        while ready:
            backwards, i = heapq.heappop(ready)
            link = ends[i][0 if backwards else 1]
            if link not in reached:
                tree[i] = backwards
                reached.add(link)
                for j in at[link]:
                    heapq.heappush(ready, (link != ends[j][0], j))
    return tree


@dataclass
class JointReader:
    """Reads one joint."""

    xml: etree._Element
    frames: Frames
    axes_in_model: bool
    parts: Parts
    report: Report

    def __post_init__(self) -> None:
        self.where = f"joint {brief(self.xml.get('name', ''))}"
        self.name = required(self.xml, "name", self.where, self.report)
        self.kind = self.xml.get("type", "").strip()
        self.parent, self.child = self._end("parent"), self._end("child")

    def read(self, backwards: bool | None) -> None:
        """Add the joint to the parts: to the tree or as a cut. Gears are read by `read_gear`.

        Args:
            backwards: whether the tree follows the joint from child to parent; None for a cut.
        """
        if self.kind not in (*_TREE_TYPES, *TWO_AXES):
            known = (*_TREE_TYPES, *TWO_AXES, "gearbox")
            self.report.problem(
                self.where,
                f"type {brief(self.kind)} is unknown ({line(self.xml)})",
                f"use one of {', '.join(known)}",
            )
        elif backwards is not None:
            self._add_to_tree(backwards)
        else:
            self._add_cut()

    def _end(self, tag: str) -> str:
        name = text_of(child(self.xml, tag))
        if name is None:
            self.report.problem(self.where, f"has no <{tag}> ({line(self.xml)})", f"add <{tag}>")
            return ""
        return WORLD if name == WORLD else self.frames.link_of(name, self.where)

    def _origin(self, link: str) -> Pose:
        """The joint frame in a link's, at zero."""
        own = self.frames.placement(self.name, self.where)
        return relative(self.frames.placement(link, self.where), own)

    def _add_to_tree(self, backwards: bool) -> None:
        """Backwards, the axes are reversed, so that positions mean what the file says."""
        parent, moved = self.parent, self.child
        halves = [(f"{self.name}_1", "axis"), (f"{self.name}_2", "axis2")]
        if backwards:
            parent, moved = moved, parent
            halves.reverse()
        origin, back = self._origin(parent), self._back(moved)
        last = moved if back is None else f"{moved}_{self.name}"
        if self.kind in TWO_AXES:
            cross = f"{self.name}_cross"
            self.parts.links.append(Link(cross))
            (first, axis), (second, axis2) = halves
            self._add_joint(first, "revolute", axis, (parent, cross), origin, backwards)
            self._add_joint(second, "revolute", axis2, (cross, last), Pose(), backwards)
        else:
            kind = _TREE_TYPES[self.kind]
            self._add_joint(self.name, kind, "axis", (parent, last), origin, backwards)
        if back is not None:
            self.parts.links.append(Link(last))
            self.parts.joints.append(Joint(f"{self.name}_fixed", "fixed", last, moved, back))

    def _back(self, moved: str) -> Pose | None:
        """The child's frame in the joint's; None where they are the same."""
        own, link = (self.frames.placement(name, self.where) for name in (self.name, moved))
        return None if np.abs(own - link).max() <= _NO_OFFSET else relative(own, link)

    def _add_joint(
        self,
        name: str,
        kind: JointType,
        tag: str,
        ends: tuple[str, str],
        origin: Pose,
        backwards: bool,
    ) -> None:
        """A tree joint about one axis: that in the element ``tag``."""
        axis = child(self.xml, tag)
        dynamics = None if axis is None else child(axis, "dynamics")
        mimic = None if axis is None else child(axis, "mimic")
        if mimic is not None:
            self.parts.mimics.append(self._mimic(mimic, name))
        elif tag == "axis" and (drake := self._drake("mimic")) is not None:
            self.parts.mimics.append(read_mimic(drake, name, self.where, self.report))
        stiffness = self._number(dynamics, "spring_stiffness", 0.0)
        if stiffness and kind not in ("fixed", "spherical"):
            rest = self._number(dynamics, "spring_reference", 0.0)
            spring = Spring(f"{name}_spring", stiffness, (rest, rest), terms={name: 1.0})
            self.parts.springs.append(spring)
        has_axis = kind not in ("fixed", "spherical")
        limits = self._limits(axis) if has_axis else Limits()
        direction = self._axis(tag) if has_axis else X_AXIS
        if backwards and has_axis:
            x, y, z = direction
            direction = (-x, -y, -z)
        if kind == "revolute" and not math.isfinite(limits.upper - limits.lower):
            kind = "continuous"
        self.parts.joints.append(
            Joint(
                name=name,
                type=kind,
                parent=ends[0],
                child=ends[1],
                origin=origin,
                axis=direction,
                limits=limits,
                damping=self._number(dynamics, "damping", 0.0),
                friction=self._number(dynamics, "friction", 0.0),
                pitch=self._pitch() if kind == "helical" else 0.0,
                armature=self._armature() if kind != "fixed" and tag == "axis" else 0.0,
            )
        )

    def _drake(self, tag: str) -> etree._Element | None:
        """An element of Drake's inside the joint."""
        named = (element for element in self.xml.iterchildren() if local_name(element) == tag)
        return next((element for element in named if element.tag != tag), None)

    def _drake_number(self, tag: str, default: float) -> float:
        element = self._drake(tag)
        if element is None:
            return default
        text, place = text_of(element) or "", f"<drake:{tag}>"
        return converted(text, to_number, default, self.where, place, self.report)

    def _armature(self) -> float:
        """Inertia of Drake's rotor, reflected through its gear: ``ratio^2 inertia``."""
        ratio = self._drake_number("gear_ratio", 1.0)
        inertia = self._drake_number("rotor_inertia", 0.0)
        if inertia < 0.0:
            self.report.problem(self.where, "its rotor inertia is negative", "give it in kg m^2")
        return ratio**2 * max(inertia, 0.0)

    def _add_cut(self) -> None:
        """A joint whose child has a joint already closes a loop."""
        kind = _CUT_TYPES.get(self.kind)
        if kind is None:
            self.report.problem(
                self.where,
                f"closes a loop, which a {self.kind} joint cannot",
                f"let another joint of the loop be the last for {brief(self.child)}, or use one of"
                f" {', '.join(_CUT_TYPES)}",
            )
            return
        for tag in ("dynamics", "mimic", "rotor_inertia"):
            if any(local_name(element) == tag for element in self.xml.iter()):
                self.report.warn(
                    self.where, f"closes a loop, and its <{tag}> is left out: a cut has none"
                )
        self.parts.cuts.append(
            CutJoint(
                self.name,
                kind,
                Attachment(self.parent, self._origin(self.parent)),
                Attachment(self.child, self._origin(self.child)),
                axis=X_AXIS if kind in ("fixed", "spherical") else self._axis("axis"),
                second_axis=self._axis("axis2") if kind == "universal" else None,
            )
        )

    def _axis(self, tag: str) -> Vector3:
        """Unit axis in the joint frame, at zero."""
        axis = child(self.xml, tag)
        xyz = None if axis is None else child(axis, "xyz")
        if axis is None or xyz is None or text_of(xyz) is None:
            self.report.problem(
                self.where, f"has no <{tag}> ({line(self.xml)})", f"write <{tag}><xyz>0 0 1</xyz>"
            )
            return X_AXIS
        vector = inner(axis, "xyz", to_unit_vector, X_AXIS, self.where, self.report)
        old = text_of(child(axis, "use_parent_model_frame"))
        in_model = self.axes_in_model if old is None else flag(old)
        seen_from = xyz.get("expressed_in") or (MODEL if in_model else self.name)
        to_model = self.frames.placement(seen_from, self.where)[:3, :3]
        own = self.frames.placement(self.name, self.where)[:3, :3]
        return vector3(own.T @ to_model @ vector)

    def _limits(self, axis: etree._Element | None) -> Limits:
        limit = None if axis is None else child(axis, "limit")
        lower, upper, effort, velocity = (
            inner(limit, tag, to_bound, sign * math.inf, self.where, self.report)
            for tag, sign in (("lower", -1.0), ("upper", 1.0), ("effort", 1.0), ("velocity", 1.0))
        )
        return Limits(
            lower=lower if lower > -_UNBOUNDED else -math.inf,
            upper=upper if upper < _UNBOUNDED else math.inf,
            velocity=velocity if velocity >= 0.0 else math.inf,  # -1 means none
            effort=effort if effort >= 0.0 else math.inf,
        )

    def _pitch(self) -> float:
        """Travel of a screw [m/rad]: of the element in use, or of the old one, which is inverse."""
        per_turn = self._number(self.xml, "screw_thread_pitch", 0.0)
        old = self._number(self.xml, "thread_pitch", 0.0)
        if not per_turn and not old:
            self.report.problem(
                self.where, "has no pitch", "give metres a turn in <screw_thread_pitch>"
            )
            return 1.0
        return per_turn / (2.0 * math.pi) if per_turn else -1.0 / old

    def _mimic(self, xml: etree._Element, name: str) -> Mimic:
        """``multiplier * (master - reference) + offset``."""
        master = required(xml, "joint", self.where, self.report)
        if master in self.parts.two_axes:
            master += "_2" if xml.get("axis") == "axis2" else "_1"
        multiplier = self._number(xml, "multiplier", 1.0)
        reference = self._number(xml, "reference", 0.0)
        offset = self._number(xml, "offset", 0.0) - multiplier * reference
        return Mimic(name, master, multiplier, offset)

    def _number(self, xml: etree._Element | None, tag: str, default: float) -> float:
        return inner(xml, tag, to_number, default, self.where, self.report)

    def read_gear(self, tree: Tree) -> None:
        """Add the coupling of a gearbox, once the tree is complete.

        ``theta_2 = -gearbox_ratio theta_1``: theta_1 is the angle of the parent about <axis>,
        theta_2 that of the child about <axis2>, both against <gearbox_reference_body>.
        """
        reference = text_of(child(self.xml, "gearbox_reference_body"))
        if reference is None:
            self.report.problem(
                self.where,
                "has no <gearbox_reference_body>",
                "name the link that both links turn on",
            )
            return
        reference = self.frames.link_of(reference, self.where)
        ratio = self._number(self.xml, "gearbox_ratio", 1.0)
        if ratio == 0.0:
            self.report.problem(self.where, "<gearbox_ratio> is zero", "give theta_2 / -theta_1")
        terms: dict[str, float] = {}
        for link, tag, factor in ((self.parent, "axis", ratio), (self.child, "axis2", 1.0)):
            for name, sign in self._angle(tree, reference, link, tag).items():
                terms[name] = terms.get(name, 0.0) + factor * sign
        terms = {name: value for name, value in terms.items() if value}
        if terms:
            self.parts.gears.append(Coupling(self.name, terms))

    def _angle(self, tree: Tree, reference: str, link: str, tag: str) -> dict[str, float]:
        """Joints whose signed sum is the angle of a link against a reference.

        It is about the axis in the element ``tag``; where there is none, about the joints' own.
        """
        axis = None
        if child(self.xml, tag) is None:
            self.report.warn(
                self.where,
                f"has no <{tag}>: angles of {brief(link)} are about its joint's own axis",
            )
        else:
            axis = self.frames.placement(self.name, self.where)[:3, :3] @ self._axis(tag)
        signs: dict[str, float] = {}
        to_model = self.frames.placement(link, self.where)[:3, :3]
        to_reference, to_link = tree.paths_from_common_ancestor(reference, link)
        for path, direction in ((to_link, 1.0), (to_reference, -1.0)):
            for joint in path:
                if joint.type == "fixed":
                    continue
                own = to_model @ tree.axis_in(joint, link)
                axis = own if axis is None else axis
                along = float(own @ axis)
                if joint.type not in ("revolute", "continuous") or abs(along) < _PARALLEL:
                    self.report.problem(
                        self.where,
                        f"{brief(link)} and {brief(reference)} do not turn to each other about its"
                        f" axis: joint {brief(joint.name)} is between them",
                        "name the link that both turn on in <gearbox_reference_body>, and their"
                        " axes in <axis> and <axis2>",
                    )
                    return {}
                signs[joint.name] = direction * math.copysign(1.0, along)
        return signs


def read_sdf(root: etree._Element, report: Report, chosen: str | None = None) -> ReadRobot:
    """Read the one model of an <sdf>; of several, that of a name, or with a link of that name."""
    model = _model(root, report, chosen)
    frames = Frames(model, report)
    joints = bounded(model, "joint", report)
    two_axes = [joint.get("name", "") for joint in joints if joint.get("type") in TWO_AXES]
    parts = Parts(two_axes=frozenset(two_axes))
    axes_in_model = _version(root) < (1, 5)
    for element in bounded(model, "link", report):
        parts.links.append(_link(element, frames, report))
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
    """(1, 5) for "1.5"; a new version if the text is no version."""
    parts = root.get("version", "").split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (1, 99)


def _link(xml: etree._Element, frames: Frames, report: Report) -> Link:
    where = f"link {brief(xml.get('name', ''))}"
    name = required(xml, "name", where, report)
    inertial = child(xml, "inertial")
    has_weight = flag(text_of(child(xml, "gravity")), default=True)
    if flag(text_of(child(xml, "kinematic"))):
        report.warn(where, "<kinematic> is true, so that no force moves it; forces do here")
    if inertial is None:
        report.warn(where, "has no <inertial>; SDF gives it 1 kg and 1 kg m^2 about every axis")
    elif flag(inertial.get("auto")):
        return Link(name, inertia_of_shapes(xml, frames, where, report), float(has_weight))
    tensor = None if inertial is None else child(inertial, "inertia")
    pose = None if inertial is None else child(inertial, "pose")
    if pose is not None and pose.get("relative_to"):
        report.warn(where, "the pose of <inertial> is taken as relative to the link")
    return Link(
        name,
        Inertia(
            mass=inner(inertial, "mass", to_number, 1.0, where, report),
            origin=relative(np.eye(4), read_pose(pose, report)),
            **{
                tag: inner(tensor, tag, to_number, float(tag[1] == tag[2]), where, report)
                for tag in MOMENTS
            },
        ),
        weight=float(has_weight),
    )
