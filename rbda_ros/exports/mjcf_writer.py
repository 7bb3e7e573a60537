"""A robot as MJCF: the same bodies, joints, loops, springs and motors in MuJoCo.

Joint positions are our own: every MJCF joint has ``ref`` 0 at the zero of our joint, so that
equalities that are stated at MuJoCo's reference pose hold at every closed position of ours, the
home position among them, which is written as keyframe ``home``. Joints that MuJoCo lacks are
several ones: planar joints two slides and a hinge, helical joints a hinge and a slide on a
coupling, and floating joints that are not the base three slides and a ball.

MuJoCo holds points together (connect), frames together (weld), and joints and tendons on
polynomials. A revolute cut is two connects on its axis, a distance a tendon of fixed length. The
other cuts become an auxiliary body: it hangs from one link on the joints that the cut allows, and
is welded to the other link, which gives it a part of its inertia. A body without inertia would
make MuJoCo's soft weld much too soft.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from rbda_ros.cluster_tree.constraints import cut_frames, second_axis
from rbda_ros.cluster_tree.spanning_tree import Frame, SpanningTree, frame_of
from rbda_ros.description.expression import Call, Name, Node, Number
from rbda_ros.description.model import (
    Constraint,
    Coupling,
    CutJoint,
    Expression,
    Joint,
    Limits,
    Pose,
    Spring,
)
from rbda_ros.description.writers import numbers
from rbda_ros.errors import DescriptionError
from rbda_ros.exports.mjcf_elements import (
    HERE,
    HIGHEST,
    SMALLEST,
    Entry,
    Inertias,
    LinkInertia,
    MjcfElements,
    add,
    add_inertial,
    placed,
)
from rbda_ros.robot.robot import Robot
from rbda_ros.spatial import Array, align_z

HINGE_POINTS = 0.1
"""Distance of the two points that hold a revolute cut's axis [m]."""

_X, _Y, _Z = np.eye(3)
_UNIVERSAL = np.column_stack([_Z, _X, _Y])
"""Axes of an auxiliary body of a universal cut at zero: x along the first axis, z the second."""
_SLIDES = {"prismatic": (_Z,), "cylindrical": (_Z,), "planar": (_X, _Y)}
_HINGES = {"prismatic": (), "cylindrical": (_Z,), "planar": (_Z,)}


@dataclass(frozen=True)
class AuxiliaryChain:
    """The joints that stand for a cut.

    Attributes:
        cut: the constraint.
        is_swapped: whether they start from the successor.
    """

    cut: CutJoint
    is_swapped: bool

    @property
    def at_zero(self) -> Array:
        """(3, 3) axes of the auxiliary body at zero, in the frame that it hangs from."""
        return _UNIVERSAL if self.cut.type in ("universal", "perpendicular") else np.eye(3)

    @property
    def slides(self) -> tuple[Array, ...]:
        """Axes of its slides, in the frame that it hangs from."""
        if self.cut.type == "perpendicular":
            return (_X, _Y, _Z)
        return _SLIDES.get(self.cut.type, ())

    @property
    def hinges(self) -> tuple[Array, ...]:
        """Axes of its hinges, in its own frame."""
        if self.cut.type in ("universal", "perpendicular"):
            return (_X, _Z)
        return _HINGES[self.cut.type]

    def positions(self, tree: SpanningTree, q: Array) -> list[float]:
        """Positions of its joints at our closed position q (nq,)."""
        f = cut_frames(tree, self.cut, body_positions(tree, q))
        ends = [
            Frame(np.array(ca.DM(R)), np.array(ca.DM(p)).ravel())
            for R, p in ((f.Rp, f.pp), (f.Rs, f.ps))
        ]
        first, second = reversed(ends) if self.is_swapped else ends
        between = first.inverse() @ second
        M = self.at_zero.T @ between.R
        travels = [float(axis @ between.p) for axis in self.slides]
        if len(self.hinges) == 2:  # M = Rx(a) Rz(b)
            angles = [np.arctan2(-M[1, 2], M[2, 2]), np.arctan2(-M[0, 1], M[0, 0])]
        else:
            angles = [np.arctan2(M[1, 0], M[0, 0]) for _ in self.hinges]
        return travels + [float(angle) for angle in angles]


def body_positions(tree: SpanningTree, q: Array) -> dict[int, ca.DM]:
    """A position q (nq,) by body number."""
    return {
        tree.body_of_joint[joint]: ca.DM(q[place.start : place.stop])
        for joint, place in tree.coordinates.positions.items()
    }


class LoopWriter:
    """Writes constraints, one after the other.

    Args:
        elements: the document.
        tree: the spanning tree.
        inertias: of the links; those that are welded to auxiliary bodies give from theirs.
        home: (nq,) the closed position.
        drawn: (nq,) MuJoCo's qpos0 in our coordinates.
    """

    def __init__(
        self,
        elements: MjcfElements,
        tree: SpanningTree,
        inertias: Inertias,
        home: Array,
        drawn: Array,
    ) -> None:
        self._elements, self._tree, self._inertias = elements, tree, inertias
        self._home, self._drawn = home, drawn
        self.chains: list[AuxiliaryChain] = []

    def write(self, constraint: Constraint) -> None:
        """Add the elements that hold a constraint, or a problem."""
        name = constraint.name
        if isinstance(constraint, Coupling):
            self._linear(name, constraint.terms, constraint.offset)
        elif isinstance(constraint, Expression):
            self._expression(constraint)
        elif constraint.type in ("spherical", "fixed"):
            kind = "connect" if constraint.type == "spherical" else "weld"
            self._pair(kind, name, constraint, np.zeros(3))
        elif constraint.type == "revolute":
            self._pair("connect", name, constraint, np.zeros(3))
            along = HINGE_POINTS * np.array(constraint.axis) / np.linalg.norm(constraint.axis)
            self._pair("connect", name, constraint, along)
        elif constraint.type == "distance":
            self._distance(constraint)
        else:
            self._auxiliary(constraint)

    def _pair(self, kind: str, name: str, cut: CutJoint, offset: Array) -> None:
        """Hold two sites together, both moved by an offset in their own frames."""
        site1, site2 = self._elements.site_pair(cut, name, Frame(np.eye(3), offset))
        self._elements.equality(kind, name, site1=site1, site2=site2)

    def _distance(self, cut: CutJoint) -> None:
        sites = self._elements.site_pair(cut, cut.name)
        tendon = self._elements.spatial_tendon(cut.name, [(1.0, sites)])
        length = cut.length if cut.length is not None else self._length(cut, self._home)
        beyond = length - self._length(cut, self._drawn)
        self._elements.equality("tendon", cut.name, [beyond], tendon1=tendon)

    def _length(self, cut: CutJoint, q: Array) -> float:
        f = cut_frames(self._tree, cut, body_positions(self._tree, q))
        return float(ca.norm_2(ca.DM(f.pp - f.ps)))

    def _auxiliary(self, cut: CutJoint) -> None:
        """Hang a body from one link on the joints of the cut, and weld it to the other."""
        elements = self._elements
        donor = self._inertias.donor(cut.successor.link)
        is_swapped = donor is None and self._inertias.donor(cut.predecessor.link) is not None
        chain = AuxiliaryChain(cut, is_swapped)
        base, welded = cut.predecessor, cut.successor
        axis, other_axis = cut.axis, cut.axis
        if cut.type in ("universal", "perpendicular"):
            other_axis = second_axis(cut)
        if is_swapped:
            donor = self._inertias.donor(cut.predecessor.link)
            base, welded, axis, other_axis = welded, base, other_axis, axis
        at_base = frame_of(base.origin) @ Frame(align_z(np.array(axis)), np.zeros(3))
        at_weld = frame_of(welded.origin) @ Frame(align_z(np.array(other_axis)), np.zeros(3))
        R = chain.at_zero
        name = elements.unused("body", f"{cut.name}_cut")
        place = placed(at_base @ Frame(R, np.zeros(3)))
        body = add(elements.bodies[base.link], "body", {"name": name} | place)
        joints = [("slide", R.T @ each) for each in chain.slides]
        joints += [("hinge", each) for each in chain.hinges]
        for k, (kind, along) in enumerate(joints):
            entry = Entry(1, len(self.chains), place=k)
            elements.joint(body, f"{cut.name}_{kind}", entry, type=kind, axis=numbers(along))
        site1 = elements.site_in(body, f"{cut.name}_cut", HERE)
        site2 = elements.site(welded.link, f"{cut.name}_weld", at_weld)
        elements.equality("weld", cut.name, site1=site1, site2=site2)
        if donor is None:
            inertia = LinkInertia(SMALLEST, np.zeros(3), SMALLEST * np.eye(3))
        else:
            inertia = self._inertias.give(donor, 0.5, at_weld, welded.link)
        add_inertial(elements, body, welded.link, inertia)
        self.chains.append(chain)
        elements.notes.append(
            f"constraint {cut.name!r}: a {cut.type} cut is written as body {name!r}, which is"
            f" welded to {welded.link!r} and has a part of its mass"
        )

    def _linear(self, name: str, given: Mapping[str, float], offset: float) -> None:
        """Hold the sum of coefficient * joint position at the offset."""
        terms = {joint: float(c) for joint, c in given.items() if c}
        elements = self._elements
        if len(terms) > 2:
            tendon = elements.fixed_tendon(name, terms)
            elements.equality("tendon", name, [offset], tendon1=tendon)
            return
        first = max(terms, key=lambda joint: abs(terms[joint]))
        others = [joint for joint in terms if joint != first]
        ratio = -terms[others[0]] / terms[first] if others else 0.0
        second = {"joint2": others[0]} if others else {}
        elements.equality("joint", name, [offset / terms[first], ratio], joint1=first, **second)

    def _expression(self, constraint: Expression) -> None:
        """``linear part + powers of one joint = 0``, where the expression is that."""
        found = polynomial(constraint.tree)
        if found is None:
            self._reject(constraint, "is no polynomial of degree four or less")
            return
        bent = {
            joint for monomial in found for joint, power in monomial if power > 1 or monomial[1:]
        }
        linear = {
            monomial[0][0]: value
            for monomial, value in found.items()
            if len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0] not in bent
        }
        if not bent:
            self._linear(constraint.name, linear, -found.get((), 0.0))
            return
        if len(bent) > 1 or not linear:
            self._reject(constraint, "has powers of several joints, or of all its joints")
            return
        (joint,) = bent
        scale = next(iter(linear.values())) if len(linear) == 1 else 1.0
        powers = [found.get((), 0.0)]
        powers += [found.get(((joint, power),), 0.0) for power in range(1, HIGHEST + 1)]
        polycoef = [-value / scale for value in powers]
        elements, name = self._elements, constraint.name
        if len(linear) == 1:
            first = next(iter(linear))
            elements.equality("joint", name, polycoef, joint1=first, joint2=joint)
        else:
            one = elements.fixed_tendon(name, linear)
            other = elements.fixed_tendon(f"{name}_{joint}", {joint: 1.0})
            elements.equality("tendon", name, polycoef, tendon1=one, tendon2=other)

    def _reject(self, constraint: Constraint, reason: str) -> None:
        self._elements.reject(
            f"constraint {constraint.name!r}",
            f"MuJoCo has no equality for this {constraint.type}: it {reason}",
            "write it as a coupling, a cut joint, or a joint on a polynomial of another one",
        )


Monomial = tuple[tuple[str, int], ...]
"""Joints and their powers, by name; empty for the constant."""
Polynomial = Mapping[Monomial, float]


def polynomial(node: Node) -> Polynomial | None:
    """Coefficients by monomial; None where an expression is no polynomial, or of high degree."""
    match node:
        case Number(value):
            return {(): float(value)}
        case Name(joint):
            return {((joint, 1),): 1.0}
        case Call(function, arguments):
            parts = [polynomial(argument) for argument in arguments]
            given = [part for part in parts if part is not None]
            return _called(function, given) if len(given) == len(parts) else None
    return None


def _called(function: str, parts: list[Polynomial]) -> Polynomial | None:
    match function:
        case "neg":
            return _scaled(parts[0], -1.0)
        case "add":
            return _sum(parts[0], parts[1])
        case "sub":
            return _sum(parts[0], _scaled(parts[1], -1.0))
        case "mul":
            return _product(parts[0], parts[1])
        case "div":
            divisor = _constant(parts[1])
            return _scaled(parts[0], 1.0 / divisor) if divisor else None
        case "pow":
            power = _constant(parts[1])
            if power is None or power != int(power) or not 0 <= power <= HIGHEST:
                return None
            result: Polynomial | None = {(): 1.0}
            for _ in range(int(power)):
                result = None if result is None else _product(result, parts[0])
            return result
    return None


def _constant(part: Polynomial) -> float | None:
    return part.get((), 0.0) if all(not monomial for monomial in part) else None


def _scaled(part: Polynomial, factor: float) -> Polynomial:
    return {monomial: factor * value for monomial, value in part.items()}


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    total = dict(one)
    for monomial, value in other.items():
        total[monomial] = total.get(monomial, 0.0) + value
    return {monomial: value for monomial, value in total.items() if value or not monomial}


def _product(one: Polynomial, other: Polynomial) -> Polynomial | None:
    total: Polynomial = {}
    for first, a in one.items():
        for second, b in other.items():
            powers = dict(first)
            for joint, power in second:
                powers[joint] = powers.get(joint, 0) + power
            if sum(powers.values()) > HIGHEST:
                return None
            total = _sum(total, {tuple(sorted(powers.items())): a * b})
    return total


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
        frozen = {lock.name for lock in robot.tree.idle_locks}
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
            names = ", ".join(map(repr, robot.idle_links))
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
        return replace(export, text=etree.tostring(root, pretty_print=True, encoding="unicode"))

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
        given = {"armature": joint.armature, "damping": joint.damping}
        given["frictionloss"] = joint.friction
        shared = {key: repr(float(value)) for key, value in given.items() if value}
        spring = self._spring_of(joint)
        if self._free is not None and name == self._free.name:
            elements.joint(body, name, Entry(7, start), type="free", **shared, **spring)
        elif kind in ("revolute", "continuous", "prismatic", "helical"):
            shared |= _bounds(joint.limits, turns_freely=kind == "continuous") | spring
            mjcf = "slide" if kind == "prismatic" else "hinge"
            axis = numbers(joint.axis)
            elements.joint(body, name, Entry(1, start), type=mjcf, axis=axis, **shared)
            if kind == "helical":
                travel = Entry(1, start, factor=joint.pitch)
                slide = elements.joint(body, f"{name}_travel", travel, type="slide", axis=axis)
                pitch = [0.0, joint.pitch]
                elements.equality("joint", f"{name}_pitch", pitch, joint1=slide, joint2=name)
        elif kind == "planar":
            parts = zip(("x", "y", "yaw"), align_z(np.array(joint.axis)).T, strict=True)
            for k, (suffix, along) in enumerate(parts):
                mjcf, entry = "hinge" if suffix == "yaw" else "slide", Entry(1, start + k)
                axis = numbers(along)
                elements.joint(body, f"{name}_{suffix}", entry, type=mjcf, axis=axis, **shared)
        elif kind == "spherical":
            elements.joint(body, name, Entry(4, start), type="ball", **shared, **spring)
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
        self._elements.reject(
            f"joint {joint!r}",
            "MuJoCo has a spring there only if it rests at the joint's zero",
            "turn the joint's frame to where the spring rests",
        )

    def _write_spring(self, spring: Spring) -> None:
        """Add a tendon with stiffness, over joints or between two points."""
        elements = self._elements
        stiffness, (lower, upper) = spring.stiffness, spring.rest
        if spring.pretension:
            if stiffness and lower != upper:
                elements.reject(
                    f"spring {spring.name!r}",
                    "MuJoCo has no spring with a pretension and a range of rest",
                    "give one of them",
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
            elements.reject(
                f"spring {spring.name!r}",
                "MuJoCo has no segment whose coefficient is not positive",
                "give a positive one",
            )
        elif spring.segments:
            lines = [
                (segment.coefficient, elements.site_pair(segment, spring.name))
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
                elements.reject(f"joint {name!r}", reason, remedy)
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
