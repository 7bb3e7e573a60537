"""Loop constraints as MuJoCo's equalities.

MuJoCo holds points together (connect), frames together (weld), and joints and tendons on
polynomials. A revolute cut is two connects on its axis, a distance a tendon of fixed length. The
other cuts become an auxiliary body: it hangs from one link on the joints that the cut allows, and
is welded to the other link, which gives it a part of its inertia. A body without inertia would
make MuJoCo's soft weld much too soft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.constraints import cut_frames, second_axis
from rbda_ros.cluster_tree.spanning_tree import Frame, SpanningTree, frame_of
from rbda_ros.description.expression import Call, Name, Node, Number
from rbda_ros.description.model import (
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    Expression,
    constraint_type,
)
from rbda_ros.errors import Problem
from rbda_ros.exports.mjcf_elements import Entry, MjcfElements, add, numbers, placed
from rbda_ros.exports.mjcf_inertia import SMALLEST, Inertias, LinkInertia, add_inertial
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
        shift = Frame(np.eye(3), offset)
        sites = [
            self._elements.site(end.link, f"{name}_{side}", frame_of(end.origin) @ shift)
            for side, end in _ends(cut)
        ]
        self._elements.equality(kind, name, site1=sites[0], site2=sites[1])

    def _distance(self, cut: CutJoint) -> None:
        sites = [
            self._elements.site(end.link, f"{cut.name}_{side}", frame_of(end.origin))
            for side, end in _ends(cut)
        ]
        tendon = self._elements.spatial_tendon(cut.name, [(1.0, sites)])
        length = cut.length if cut.length is not None else self._length(cut, self._home)
        beyond = length - self._length(cut, self._drawn)
        self._elements.equality(
            "tendon", cut.name, tendon1=tendon, polycoef=numbers([beyond, 0, 0, 0, 0])
        )

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
        site1 = elements.site_in(body, f"{cut.name}_cut", Frame(np.eye(3), np.zeros(3)))
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
            elements.equality(
                "tendon", name, tendon1=tendon, polycoef=numbers([offset, 0, 0, 0, 0])
            )
            return
        first = max(terms, key=lambda joint: abs(terms[joint]))
        others = [joint for joint in terms if joint != first]
        ratio = -terms[others[0]] / terms[first] if others else 0.0
        polycoef = numbers([offset / terms[first], ratio, 0, 0, 0])
        second = {"joint2": others[0]} if others else {}
        elements.equality("joint", name, joint1=first, polycoef=polycoef, **second)

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
        polycoef = numbers([-value / scale for value in powers])
        elements, name = self._elements, constraint.name
        if len(linear) == 1:
            first = next(iter(linear))
            elements.equality("joint", name, joint1=first, joint2=joint, polycoef=polycoef)
        else:
            one = elements.fixed_tendon(name, linear)
            other = elements.fixed_tendon(f"{name}_{joint}", {joint: 1.0})
            elements.equality("tendon", name, tendon1=one, tendon2=other, polycoef=polycoef)

    def _reject(self, constraint: Constraint, reason: str) -> None:
        self._elements.problems.append(
            Problem(
                f"constraint {constraint.name!r}",
                f"MuJoCo has no equality for this {constraint_type(constraint)}: it {reason}",
                "write it as a coupling, a cut joint, or a joint on a polynomial of another one",
            )
        )


def _ends(cut: CutJoint) -> tuple[tuple[str, Attachment], tuple[str, Attachment]]:
    return ("predecessor", cut.predecessor), ("successor", cut.successor)


HIGHEST = 4
"""Degree of the polynomials that MuJoCo's equalities have."""

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
