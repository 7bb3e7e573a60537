"""A robot as MJCF: the same bodies, joints, loops, springs and motors in MuJoCo.

Joint positions are our own: every MJCF joint has ``ref`` 0 at the zero of our joint, so that
equalities that are stated at MuJoCo's reference pose hold at every closed position of ours, the
home position among them, which is written as keyframe ``home``. Joints that MuJoCo lacks are
several ones: planar joints two slides and a hinge, helical joints a hinge and a slide on a
coupling, and floating joints that are not the base three slides and a ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.spanning_tree import Frame, SpanningTree, frame_of
from rbda_ros.description.model import Joint, Limits, Pose, Spring
from rbda_ros.errors import DescriptionError, Problem
from rbda_ros.exports.mjcf_elements import Entry, MjcfElements, add, numbers, placed
from rbda_ros.exports.mjcf_inertia import SMALLEST, Inertias, LinkInertia, add_inertial
from rbda_ros.exports.mjcf_loops import AuxiliaryChain, LoopWriter
from rbda_ros.robot.robot import Robot
from rbda_ros.spatial import Array, align_z

UNBOUNDED = 1e10
"""Bound of a joint that has a bound on the other side only [rad, m]."""
CONSTANT_TENSION = 1e-12
"""Stiffness per tension [1/m, 1/rad] of a spring whose tension is constant: MuJoCo has none."""
_IDENTITY = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class MjcfExport:
    """A robot as MJCF, and how its positions are MuJoCo's.

    Attributes:
        text: of the file.
        joints: of the MJCF model, in the order of qpos.
        notes: elements that stand for others, and what is left out.
    """

    text: str
    joints: tuple[str, ...]
    notes: tuple[str, ...]
    _entries: tuple[Entry, ...] = field(repr=False)
    _chains: tuple[AuxiliaryChain, ...] = field(repr=False)
    _tree: SpanningTree = field(repr=False)

    def qpos(self, q: ArrayLike) -> Array:
        """MuJoCo's position (nq of MuJoCo,) at our closed spanning position q (nq,)."""
        x = np.asarray(q, dtype=float)
        of_chains = [chain.positions(self._tree, x) for chain in self._chains]
        parts: list[Array] = [np.zeros(0)]
        for entry in self._entries:
            if entry.place is not None:
                parts.append(np.array([of_chains[entry.start][entry.place]]))
                continue
            own = x[entry.start : entry.start + entry.size]
            if entry.size >= 4:  # MuJoCo's quaternions begin with w, ours end with it
                parts.append(np.concatenate([own[:-4], own[-1:], own[-4:-1]]))
            else:
                parts.append(entry.factor * own)
        return np.concatenate(parts)


def write_mjcf(robot: Robot, *, balance_inertia: bool = False) -> MjcfExport:
    """MJCF of a robot with its payloads; it has the same forward dynamics in MuJoCo.

    Velocity limits are left out, which MuJoCo lacks, and so is the friction-free spin of rods,
    which we hold and MuJoCo does not.

    Args:
        robot: to write.
        balance_inertia: whether to make inertias larger that no body can have, and that MuJoCo
            rejects; a note names each link.

    Raises:
        DescriptionError: constraints, inertias, springs or motors that MuJoCo cannot express; it
            names each, and what to change.
    """
    return _Writer(robot, balance_inertia).write()


def closed_poses(
    robot: Robot, export: MjcfExport, count: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Random closed positions inside the limits, to reset a simulation to.

    Returns:
        ``qpos`` (count, nq of MuJoCo), ``q`` (count, nq), and ``joints``, names in the order of
        qpos.

    Raises:
        ClosureError: there is no position inside the limits near the assembly.
    """
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_state(rng).q for _ in range(count)]).reshape(count, robot.nq)
    qpos = [export.qpos(each) for each in q]
    return {
        "qpos": np.array(qpos).reshape(count, len(export.qpos(robot.neutral()))),
        "q": q,
        "joints": np.array(export.joints, dtype=str),
    }


class _Writer:
    def __init__(self, robot: Robot, balance_inertia: bool) -> None:
        self._robot, self._tree = robot, robot.spanning_tree
        self._description = robot.description
        self._elements = MjcfElements(etree.Element("mujoco", model=robot.name), balance_inertia)
        payloads = tuple(robot.payloads.values())
        self._inertias = Inertias(self._description, self._tree, payloads)
        self._places = robot.coordinates.positions
        self._single: dict[str, tuple[float, float]] = {}
        self._springs: list[Spring] = []
        self._weights = {link.name: link.weight for link in self._description.links}
        self._free = self._free_joint()

    def write(self) -> MjcfExport:
        robot, elements = self._robot, self._elements
        root = elements.root
        settings = {"angle": "radian", "autolimits": "true", "balanceinertia": "false"}
        settings |= {"inertiafromgeom": "false", "fusestatic": "false", "boundmass": "0"}
        add(root, "compiler", settings | {"boundinertia": "0"})
        add(root, "option", {"gravity": numbers(robot.gravity)})
        self._sort_springs()
        self._write_bodies(elements.section("worldbody"))
        loops = LoopWriter(
            elements, self._tree, self._inertias, robot.neutral(), self._drawn_position()
        )
        frozen = {idle.lock.name for idle in robot.tree.idle_freedoms}
        for constraint in self._description.constraints:
            if constraint.name not in frozen:
                loops.write(constraint)
        for spring in self._springs:
            self._write_spring(spring)
        self._write_inertias()
        self._write_actuators()
        if elements.problems:
            raise DescriptionError(elements.problems)
        if frozen:
            names = ", ".join(repr(idle.link) for idle in robot.tree.idle_freedoms)
            elements.notes.append(f"links that spin about themselves are free to do so: {names}")
        joints = tuple(
            str(each.get("name")) for each in elements.section("worldbody").iter("joint")
        )
        entries = tuple(elements.entries[name] for name in joints)
        export = MjcfExport(
            "", joints, tuple(elements.notes), entries, tuple(loops.chains), self._tree
        )
        key = {"name": "home", "qpos": numbers(export.qpos(robot.neutral()))}
        add(elements.section("keyframe"), "key", key)
        text = etree.tostring(root, pretty_print=True, encoding="unicode")
        return MjcfExport(text, joints, export.notes, entries, tuple(loops.chains), self._tree)

    def _free_joint(self) -> Joint | None:
        """The joint of the floating base, where MuJoCo's free joint has the same positions."""
        if not self._tree.floating_base:
            return None
        joint = self._tree.bodies[0].joint
        described = joint.child != self._description.root
        place = frame_of(self._description.root_pose) @ frame_of(joint.origin)
        at_world = np.array_equal(place.R, np.eye(3)) and not np.any(place.p)
        return joint if at_world or not described else None

    def _drawn_position(self) -> Array:
        """(nq,) MuJoCo's qpos0: every joint at zero, a free base where it is drawn."""
        parts: list[Array] = [np.zeros(0)]
        for body in self._tree.bodies:
            free = self._free is not None and body.joint.name == self._free.name
            parts.append(self._drawn_base() if free else np.array(body.model.neutral))
        return np.concatenate(parts)

    def _drawn_base(self) -> Array:
        """(7,) where a free base's spring rests, or at home."""
        for spring in self._description.springs:
            if self._free is not None and spring.joint == self._free.name:
                return np.array(spring.reference, dtype=float)
        return self._robot.neutral()[:7]

    def _write_bodies(self, world: etree._Element) -> None:
        description, elements = self._description, self._elements
        root = description.root
        elements.unused("body", "world")
        fixed = not self._tree.floating_base or self._free is None or self._free.child != root
        pose = description.root_pose if fixed else Pose()
        if root == "world" and fixed and pose == Pose():
            elements.bodies[root] = world
        else:
            self._add_body(world, root, frame_of(pose), None if fixed else self._free)
        children: dict[str, list[Joint]] = {}
        for joint in description.joints:
            children.setdefault(joint.parent, []).append(joint)
        pending = [root]
        while pending:
            link = pending.pop()
            for joint in children.get(link, []):
                parent = elements.bodies[link]
                if self._free is not None and joint.name == self._free.name:
                    parent = world
                self._add_body(parent, joint.child, frame_of(joint.origin), joint)
                pending.append(joint.child)

    def _add_body(
        self, parent: etree._Element, link: str, frame: Frame, joint: Joint | None
    ) -> None:
        elements = self._elements
        name = elements.unused("body", link)
        body = add(parent, "body", {"name": name})
        elements.bodies[link] = body
        if (weight := self._weights[link]) != 1.0:
            body.set("gravcomp", repr(1.0 - weight))
        if name != link:
            elements.notes.append(f"link {link!r} is body {name!r}")
        if joint is not None and self._free is not None and joint.name == self._free.name:
            *p, x, y, z, w = self._drawn_base()
            place = {"pos": numbers(p), "quat": numbers([w, x, y, z])}
        else:
            place = placed(frame)
        for key, value in place.items():
            body.set(key, value)
        if joint is not None and joint.type != "fixed":
            self._write_joint(body, joint)

    def _write_joint(self, body: etree._Element, joint: Joint) -> None:
        elements, name, kind = self._elements, joint.name, joint.type
        start = self._places[name].start
        shared: dict[str, str] = {}
        for key, value in (
            ("armature", joint.armature),
            ("damping", joint.damping),
            ("frictionloss", joint.friction),
        ):
            if value:
                shared[key] = repr(float(value))
        one, ball = Entry(1, start), Entry(4, start)
        spring = self._spring_of(joint)
        if self._free is not None and name == self._free.name:
            elements.joint(body, name, Entry(7, start), type="free", **shared, **spring)
        elif kind in ("revolute", "continuous", "prismatic", "helical"):
            shared |= _bounds(joint.limits, turns_freely=kind == "continuous") | spring
            mjcf = "slide" if kind == "prismatic" else "hinge"
            axis = numbers(joint.axis)
            elements.joint(body, name, one, type=mjcf, axis=axis, **shared)
            if kind == "helical":
                travel = Entry(1, start, factor=joint.pitch)
                slide = elements.joint(body, f"{name}_travel", travel, type="slide", axis=axis)
                coefficients = numbers([0, joint.pitch, 0, 0, 0])
                elements.equality(
                    "joint", f"{name}_pitch", joint1=slide, joint2=name, polycoef=coefficients
                )
        elif kind == "planar":
            x, y, normal = align_z(np.array(joint.axis)).T
            for k, (suffix, mjcf, axis) in enumerate(
                (("x", "slide", x), ("y", "slide", y), ("yaw", "hinge", normal))
            ):
                entry = Entry(1, start + k)
                elements.joint(
                    body, f"{name}_{suffix}", entry, type=mjcf, axis=numbers(axis), **shared
                )
        elif kind == "spherical":
            elements.joint(body, name, ball, type="ball", **shared, **spring)
        else:
            if spring:
                self._reject_spring(name)
            for k, suffix in enumerate("xyz"):
                axis = numbers(np.eye(3)[k])
                entry = Entry(1, start + k)
                elements.joint(body, f"{name}_{suffix}", entry, type="slide", axis=axis, **shared)
            elements.joint(body, name, Entry(4, start + 3), type="ball", **shared)

    def _sort_springs(self) -> None:
        """Springs of one joint are the joint's own, as far as MuJoCo's joints can have them."""
        kinds = {body.joint.name: body.joint.type for body in self._tree.bodies}
        for spring in self._description.springs:
            terms = {joint: c for joint, c in spring.terms.items() if c}
            joint = next(iter(terms), None)
            is_own = (
                spring.joint is None
                and not spring.segments
                and len(terms) == 1
                and spring.rest[0] == spring.rest[1]
                and spring.stiffness > 0.0
                and joint not in self._single
                and kinds.get(str(joint)) in ("revolute", "continuous", "prismatic", "helical")
            )
            if is_own and joint is not None:
                c = terms[joint]
                rest = (spring.rest[0] - spring.pretension / spring.stiffness) / c
                self._single[joint] = (spring.stiffness * c**2, rest)
            elif spring.joint is None:
                self._springs.append(spring)

    def _spring_of(self, joint: Joint) -> dict[str, str]:
        """Attributes of a joint with a spring of its own."""
        if joint.name in self._single:
            stiffness, rest = self._single[joint.name]
            return {"stiffness": repr(float(stiffness)), "springref": repr(float(rest))}
        for spring in self._description.springs:
            if spring.joint == joint.name:
                free = self._free is not None and joint.name == self._free.name
                if not free and tuple(spring.reference) != _IDENTITY:
                    self._reject_spring(joint.name)
                return {"stiffness": repr(float(spring.stiffness))}
        return {}

    def _reject_spring(self, joint: str) -> None:
        self._elements.problems.append(
            Problem(
                f"joint {joint!r}",
                "MuJoCo has a spring there only if it rests at the joint's zero",
                "turn the joint's frame to where the spring rests",
            )
        )

    def _write_spring(self, spring: Spring) -> None:
        """Add a tendon with stiffness, over joints or between two points."""
        elements = self._elements
        stiffness, (lower, upper) = spring.stiffness, spring.rest
        if spring.pretension:
            if stiffness and lower != upper:
                elements.problems.append(
                    Problem(
                        f"spring {spring.name!r}",
                        "MuJoCo has no spring with a pretension and a range of rest",
                        "give one of them",
                    )
                )
            if not stiffness:
                stiffness = CONSTANT_TENSION * abs(spring.pretension)
            lower = upper = (lower if spring.stiffness else 0.0) - spring.pretension / stiffness
        if not stiffness:
            return
        if lower == upper == -1.0:  # which means the length at qpos0
            lower = upper = math.nextafter(-1.0, 0.0)
        attributes = {
            "stiffness": repr(float(stiffness)),
            "springlength": numbers([lower, upper]),
        }
        if any(segment.coefficient <= 0.0 for segment in spring.segments):
            elements.problems.append(
                Problem(
                    f"spring {spring.name!r}",
                    "MuJoCo has no segment whose coefficient is not positive",
                    "give a positive one",
                )
            )
        elif spring.segments:
            lines = [
                (
                    segment.coefficient,
                    [
                        elements.site(end.link, f"{spring.name}_{side}", frame_of(end.origin))
                        for side, end in (
                            ("predecessor", segment.predecessor),
                            ("successor", segment.successor),
                        )
                    ],
                )
                for segment in spring.segments
            ]
            elements.spatial_tendon(spring.name, lines, **attributes)
        else:
            terms = {joint: float(c) for joint, c in spring.terms.items() if c}
            elements.fixed_tendon(spring.name, terms, **attributes)

    def _write_inertias(self) -> None:
        """Inertia that remains on each link once auxiliary bodies have their parts."""
        places, elements = self._tree.links, self._elements
        moved = {body.joint.child for body in self._tree.bodies}
        for link, body in elements.bodies.items():
            inertia = self._inertias.of.get(link)
            if inertia is not None and places[link].body:
                add_inertial(elements, body, link, inertia)
            elif link in moved and self._inertias.donor(link) is None:
                nothing = LinkInertia(SMALLEST, np.zeros(3), SMALLEST * np.eye(3))
                add_inertial(elements, body, link, nothing)

    def _write_actuators(self) -> None:
        robot, elements = self._robot, self._elements
        velocities = robot.coordinates.velocities
        joints = {body.joint.name: body.joint for body in self._tree.bodies}
        for j in robot.actuated_coordinates:
            name = robot.coordinates.owners[j]
            joint, k = joints[name], j - velocities[name].start
            attributes = {"name": robot.coordinate_names[j], "joint": name}
            if joint.type == "planar":
                attributes["joint"] = f"{name}_{('x', 'y', 'yaw')[k]}"
            elif joint.type == "spherical":
                attributes["gear"] = numbers([*np.eye(3)[k], 0, 0, 0])
            elif joint.type == "floating":
                reason = "MuJoCo has no motor on a floating joint that acts in the child's axes"
                remedy = "leave it out of actuated_joints"
                elements.problems.append(Problem(f"joint {name!r}", reason, remedy))
                continue
            if math.isfinite(joint.limits.effort):
                bound = float(joint.limits.effort)
                attributes["ctrlrange"] = numbers([-bound, bound])
            add(elements.section("actuator"), "motor", attributes)


def _bounds(limits: Limits, turns_freely: bool) -> dict[str, str]:
    """Attributes of a joint's range; empty where it has none."""
    lower, upper = limits.lower, limits.upper
    if turns_freely or not (math.isfinite(lower) or math.isfinite(upper)):
        return {}
    lower, upper = max(lower, -UNBOUNDED), min(upper, UNBOUNDED)
    if lower >= upper:
        upper = math.nextafter(lower, math.inf)
    return {"range": numbers([lower, upper])}
