"""The loop-constraint file: YAML text or a mapping becomes one frozen dataclass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast, get_args

from rbda_ros.description.expression import parse
from rbda_ros.description.model import (
    CUT_TYPES,
    X_AXIS,
    ZERO,
    Attachment,
    Constraint,
    Coupling,
    CutJoint,
    CutType,
    Expression,
    Guess,
    IdleChoice,
    Method,
    Pose,
    Segment,
    Spring,
    Vector3,
)
from rbda_ros.description.report import Report, brief
from rbda_ros.description.values import (
    SHORTEST_AXIS,
    Fields,
    to_list,
    to_mapping,
    to_name,
    to_names,
    to_number,
    to_unit_vector,
    to_vector,
)

LARGEST_COUNT = 10_000
LARGEST_GUESS = 8
"""Entries of a position that are read: one more than any joint has."""
CONSTRAINT_TYPES = ("coupling", *CUT_TYPES, "expression")
METHODS = get_args(Method)
_CUT_KEYS = ("predecessor", "successor", "axis")


@dataclass(frozen=True)
class JointOverride:
    """Properties of a joint that the loop file sets.

    Attributes:
        type: a joint type that URDF lacks, or fixed; None leaves the URDF's.
        pitch: travel of a helical joint [m/rad].
        axis: first axis of a universal joint, in the joint frame; None for the URDF's.
        second_axis: its other axis; None for one at right angles to the first.
        position: of a fixed joint, where it is fixed [rad or m].
        suffixes: what is added to a universal joint's name for its two halves.
        armature: reflected inertia on the joint's own diagonal [kg m^2 or kg].
    """

    type: Literal["helical", "spherical", "universal", "fixed"] | None = None
    pitch: float = 0.0
    axis: Vector3 | None = None
    second_axis: Vector3 | None = None
    position: float = 0.0
    suffixes: tuple[str, str] = ("1", "2")
    armature: float | None = None


@dataclass(frozen=True)
class RotorLine:
    """One line of ``rotors``; a ratio of None is to be taken from the URDF's transmission."""

    joint: str
    ratio: float | None
    inertia: float
    mass: float = 0.0
    on_link: str | None = None
    origin: Pose = field(default_factory=Pose)


@dataclass(frozen=True)
class LoopFile:
    """Content of a loop file, names not yet resolved.

    ``method`` is for the constraints, of either file, that do not say their own. ``root`` is a link
    or joint of the tree to keep, of a file with several.
    """

    root: str | None = None
    independent_joints: tuple[str, ...] | None = None
    actuated_joints: tuple[str, ...] | None = None
    constraints: tuple[Constraint, ...] = ()
    method: Method | None = None
    assembly: Mapping[str, Guess] = field(default_factory=dict)
    idle_freedoms: Mapping[str, IdleChoice] = field(default_factory=dict)
    joints: Mapping[str, JointOverride] = field(default_factory=dict)
    rotors: tuple[RotorLine, ...] = ()
    springs: tuple[Spring, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


KEYS = tuple(field.name for field in fields(LoopFile))
"""Keys of a loop file."""


def read_loop_file(value: object, report: Report) -> LoopFile:
    """Check the keys and values of a loop file; None is an empty one."""
    if value is None:
        return LoopFile()
    fields = Fields(value, "loop file", KEYS, report)
    entries = fields.get("constraints", to_list, ())
    if len(entries) > LARGEST_COUNT:
        report.problem("loop file", "has too many constraints", f"use at most {LARGEST_COUNT}")
        entries = ()
    constraints = [
        read_constraint(entry, number, report) for number, entry in enumerate(entries, start=1)
    ]
    return LoopFile(
        constraints=tuple(entry for entry in constraints if entry is not None),
        method=fields.get("method", to_method, None),
        independent_joints=fields.get("independent_joints", to_names, None),
        actuated_joints=fields.get("actuated_joints", to_names, None),
        assembly=_assembly(fields),
        idle_freedoms=_idle_freedoms(fields),
        joints=_joints(fields),
        rotors=_rotors(fields),
        springs=_springs(fields),
        weights=_weights(fields),
        root=fields.get("root", to_name, None),
    )


def _assembly(fields: Fields) -> dict[str, Guess]:
    assembly: dict[str, Guess] = {}
    for name, value in fields.get("assembly", to_mapping, {}).items():
        try:
            assembly[name] = _to_guess(value)
        except ValueError as error:
            fields.report.problem("assembly", f"{name}: {error}", "give a position [rad or m]")
    return assembly


def _idle_freedoms(fields: Fields) -> dict[str, IdleChoice]:
    chosen: dict[str, IdleChoice] = {}
    for link, value in fields.get("idle_freedoms", to_mapping, {}).items():
        if value in get_args(IdleChoice):
            chosen[link] = cast(IdleChoice, value)
        else:
            fields.report.problem(
                f"idle_freedoms: {brief(link)}", f"{brief(value)} is unknown", "use frozen or free"
            )
    return chosen


def _weights(fields: Fields) -> dict[str, float]:
    """Shares of the weight of links."""
    weights: dict[str, float] = {}
    for link, value in fields.get("weights", to_mapping, {}).items():
        try:
            weights[link] = to_number(value)
        except ValueError as error:
            fields.report.problem(
                f"weights: {brief(link)}", str(error), "give the share of its weight that acts"
            )
    return weights


def _to_guess(value: object) -> Guess:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return to_number(value)
    return tuple(to_number(entry) for entry in value[:LARGEST_GUESS])


_JOINT_TYPES = ("helical", "spherical", "ball", "universal", "fixed")
_KEYS_OF_TYPE = {
    "helical": {"pitch"},
    "universal": {"axis", "second_axis", "suffixes"},
    "fixed": {"position"},
}
"""Keys of one type of joint; ``armature`` is for all."""
_JOINT_KEYS = tuple(field.name for field in fields(JointOverride))


def _joints(fields: Fields) -> dict[str, JointOverride]:
    overrides = {}
    for name, value in fields.get("joints", to_mapping, {}).items():
        where = f"joints: {brief(name)}"
        entry = Fields(value, where, _JOINT_KEYS, fields.report)
        armature = entry.get("armature", _to_armature, None)
        required = entry.get if armature is not None else entry.require
        kind = required("type", to_name, None)
        if kind is not None and kind not in _JOINT_TYPES:
            fields.report.problem(
                where,
                f"type {brief(kind)} is not set here",
                f"use {', '.join(_JOINT_TYPES[:-1])} or {_JOINT_TYPES[-1]}",
            )
            continue
        own = _KEYS_OF_TYPE.get(kind or "", set()) | {"type", "armature"}
        given = value if isinstance(value, Mapping) else {}
        complete = kind is not None or armature is not None
        for key in _JOINT_KEYS if complete else ():
            if key in given and key not in own:
                of_kind = f"a {kind} joint" if kind else "the URDF's joint"
                fields.report.problem(where, f"{key} is not read for {of_kind}", "leave it out")
        pitch = entry.require("pitch", to_number, 1.0) if kind == "helical" else 0.0
        if kind == "helical" and pitch == 0.0:
            fields.report.problem(
                where, "pitch is zero", "give m/rad, or use a revolute joint in the URDF"
            )
        overrides[name] = JointOverride(
            type=cast(Any, "spherical" if kind == "ball" else kind),
            pitch=pitch,
            axis=entry.get("axis", to_unit_vector, None),
            second_axis=entry.get("second_axis", to_unit_vector, None),
            position=entry.get("position", to_number, 0.0),
            suffixes=entry.get("suffixes", _to_suffixes, ("1", "2")),
            armature=armature,
        )
    return overrides


def _to_armature(value: object) -> float:
    armature = to_number(value)
    if armature < 0.0:
        raise ValueError(f"{armature} is negative")
    return armature


def _to_suffixes(value: object) -> tuple[str, str]:
    names = to_names(value)
    if len(set(names)) != 2 or len(names) != 2:
        raise ValueError(f"{brief(value)} are not two suffixes that differ")
    return names[0], names[1]


def _rotors(fields: Fields) -> tuple[RotorLine, ...]:
    keys = ("ratio", "inertia", "mass", "on_link", "xyz", "rpy")
    rotors = []
    for joint, value in fields.get("rotors", to_mapping, {}).items():
        where = f"rotor {brief(joint)}"
        entry = Fields(value, where, keys, fields.report)
        rotor = RotorLine(
            joint=joint,
            ratio=entry.get("ratio", to_number, None),
            inertia=entry.require("inertia", to_number, 0.0),
            mass=entry.get("mass", to_number, 0.0),
            on_link=entry.get("on_link", to_name, None),
            origin=_pose(entry),
        )
        if rotor.ratio == 0.0:
            fields.report.problem(where, "ratio is zero", "give rotor turns per joint turn")
        if rotor.inertia < 0.0 or rotor.mass < 0.0:
            fields.report.problem(where, "inertia or mass is negative", "give kg m^2 and kg")
        rotors.append(rotor)
    return tuple(rotors)


_SPRING_KEYS = (
    "name", "joint", "reference", "terms", "predecessor", "successor", "segments", "stiffness",
    "rest", "pretension",
)  # fmt: skip


def _springs(fields: Fields) -> tuple[Spring, ...]:
    springs = []
    for number, value in enumerate(fields.get("springs", to_list, ()), start=1):
        given = value if isinstance(value, Mapping) else {}
        where = f"spring {brief(given.get('name', f'spring_{number}'))}"
        entry = Fields(value, where, _SPRING_KEYS, fields.report)
        ways = sum(key in given for key in ("joint", "terms", "predecessor", "segments"))
        if ways != 1 or ("predecessor" in given) != ("successor" in given):
            fields.report.problem(
                where,
                "does not say what it is between",
                "give 'joint', or 'terms', or 'predecessor' and 'successor', or 'segments'",
            )
            continue
        stiffness = entry.require("stiffness", to_number, 0.0)
        if stiffness < 0.0:
            fields.report.problem(where, f"stiffness {stiffness} is negative", "give N m/rad, N/m")
        segments = _segments(entry, given)
        joint = entry.get("joint", to_name, None)
        reference = entry.get("reference", _to_reference, ())
        read = entry.require if segments else entry.get
        springs.append(
            Spring(
                name=entry.get("name", to_name, f"spring_{number}"),
                stiffness=stiffness,
                rest=read("rest", _to_rest, (0.0, 0.0)),
                pretension=entry.get("pretension", to_number, 0.0),
                terms=entry.get("terms", to_terms, {})
                if joint is None
                else ({} if reference else {joint: 1.0}),
                segments=segments,
                joint=joint if reference else None,
                reference=reference,
            )
        )
    return tuple(springs)


def _segments(entry: Fields, given: Mapping[Any, Any]) -> tuple[Segment, ...]:
    """Straight lines of a spring: the one between its two ends, or those that are listed."""
    if "predecessor" in given:
        return (Segment(to_attachment(entry, "predecessor"), to_attachment(entry, "successor")),)
    keys = ("predecessor", "successor", "coefficient")
    segments = []
    for number, value in enumerate(entry.get("segments", to_list, ()), start=1):
        each = Fields(value, f"{entry.where} segment {number}", keys, entry.report)
        ends = to_attachment(each, "predecessor"), to_attachment(each, "successor")
        segments.append(Segment(*ends, each.get("coefficient", to_number, 1.0)))
    if "segments" in given and not segments:
        entry.report.problem(entry.where, "has no segments", "list one at least")
    return tuple(segments)


def _to_rest(value: object) -> tuple[float, float]:
    """One length, or the least and the greatest at which a spring is slack."""
    bounds = value if isinstance(value, (list, tuple)) else (value, value)
    if len(bounds) != 2:
        raise ValueError(
            f"{brief(value)} is neither a number nor two; "
            "give one length, or the least and the greatest"
        )
    lower, upper = (to_number(bound) for bound in bounds)
    if lower > upper:
        raise ValueError(f"{brief(value)} is not in ascending order; exchange the two")
    return lower, upper


def _to_reference(value: object) -> tuple[float, ...]:
    """Position of a spherical or floating joint, with a quaternion of length one at its end."""
    numbers = tuple(to_number(each) for each in to_list(value))
    length = math.hypot(*numbers[-4:])
    if len(numbers) not in (4, 7) or length < SHORTEST_AXIS:
        raise ValueError(
            f"{brief(value)} does not end in a quaternion qx qy qz qw; "
            "give four numbers, or seven with the position in front, not all zero at the end"
        )
    return (*numbers[:-4], *(each / length for each in numbers[-4:]))


def read_constraint(value: object, number: int, report: Report) -> Constraint | None:
    """Read one entry of ``constraints``; None after noting why it cannot be made out.

    Args:
        value: the entry, a mapping.
        number: its place in the list from 1, which names it where it has no name.
        report: takes the problems.
    """
    if not isinstance(value, Mapping):
        report.problem(
            f"constraint {number}", f"{brief(value)} is not a mapping", "give name, type, ..."
        )
        return None
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in CONSTRAINT_TYPES:
        where = f"constraint {brief(value.get('name', f'constraint_{number}'))}"
        remedy = f"use one of {', '.join(CONSTRAINT_TYPES)}"
        if isinstance(kind, str):
            remedy = report.suggest(kind, CONSTRAINT_TYPES, remedy)
        report.problem(where, f"type {brief(kind)} is unknown", remedy)
        return None
    keys: tuple[str, ...] = {
        "coupling": ("terms", "offset"),
        "expression": ("equation",),
        "universal": (*_CUT_KEYS, "second_axis"),
        "perpendicular": (*_CUT_KEYS, "second_axis"),
        "distance": (*_CUT_KEYS, "length"),
    }.get(kind, _CUT_KEYS)
    default_name = f"{kind}_{number}"
    where = f"constraint {brief(value.get('name', default_name))}"
    fields = Fields(value, where, ("name", "type", "method", *keys), report)
    name = fields.get("name", to_name, default_name)
    method = fields.get("method", to_method, None)
    if kind == "coupling":
        terms = fields.require("terms", to_terms, {})
        return Coupling(name, terms, fields.get("offset", to_number, 0.0), method)
    if kind == "expression":
        equation = fields.require("equation", _to_text, "")
        tree = fields.get("equation", lambda text: parse(_to_text(text)), None)
        return None if tree is None else Expression(name, equation, tree, method)
    return CutJoint(
        name=name,
        type=cast(CutType, kind),
        predecessor=to_attachment(fields, "predecessor"),
        successor=to_attachment(fields, "successor"),
        axis=fields.get("axis", to_unit_vector, X_AXIS),
        second_axis=fields.get("second_axis", to_unit_vector, None),
        length=fields.get("length", _to_length, None),
        method=method,
    )


def to_attachment(fields: Fields, key: str) -> Attachment:
    """Read a frame on a link."""
    value = fields.require(key, to_mapping, None)
    if value is None:
        return Attachment("")
    end = Fields(value, f"{fields.where} {key}", ("link", "xyz", "rpy"), fields.report)
    return Attachment(end.require("link", to_name, ""), _pose(end))


def _pose(entry: Fields) -> Pose:
    return Pose(entry.get("xyz", to_vector, ZERO), entry.get("rpy", to_vector, ZERO))


def to_method(value: object) -> Method:
    """Read a method, or raise ValueError."""
    if value not in METHODS:
        raise ValueError(f"method {brief(value)} is unknown; use {', '.join(METHODS)}")
    return cast(Method, value)


def _to_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{brief(value)} is not text")
    return value


def to_terms(value: object) -> Mapping[str, float]:
    """Read coefficients of joints, or raise ValueError."""
    terms = {name: to_number(coefficient) for name, coefficient in to_mapping(value).items()}
    if not terms:
        raise ValueError("there are no terms")
    for name, coefficient in terms.items():
        if coefficient == 0.0:
            raise ValueError(f"the coefficient of {brief(name)} is zero")
    return terms


def _to_length(value: object) -> float | None:
    length = to_number(value)
    if length <= 0.0:
        raise ValueError(f"{length} is not positive (a spherical cut holds two points together)")
    return length
