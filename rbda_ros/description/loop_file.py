"""The loop-constraint file: YAML text or a mapping becomes one frozen dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rbda_ros.description.constraint_reader import read_constraint, to_method
from rbda_ros.description.fields import Fields, to_list, to_mapping, to_name, to_names
from rbda_ros.description.model import Constraint, Method, Pose
from rbda_ros.description.report import Report
from rbda_ros.description.urdf import ZERO
from rbda_ros.description.values import brief, to_number, to_vector

KEYS = (
    "independent_joints",
    "actuated_joints",
    "constraints",
    "method",
    "assembly",
    "joints",
    "rotors",
)
LARGEST_COUNT = 10_000


@dataclass(frozen=True)
class JointOverride:
    """A joint type that URDF lacks; ``pitch`` [m/rad] is the travel of a helical joint."""

    type: Literal["helical", "spherical"]
    pitch: float = 0.0


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
    """What a loop file says, names not yet resolved.

    ``method`` is for the constraints, of either file, that do not say their own.
    """

    constraints: tuple[Constraint, ...] = ()
    method: Method | None = None
    independent_joints: tuple[str, ...] | None = None
    actuated_joints: tuple[str, ...] | None = None
    assembly: Mapping[str, float] = field(default_factory=dict)
    joints: Mapping[str, JointOverride] = field(default_factory=dict)
    rotors: tuple[RotorLine, ...] = ()


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
        joints=_joints(fields),
        rotors=_rotors(fields),
    )


def _assembly(fields: Fields) -> dict[str, float]:
    assembly = {}
    for name, value in fields.get("assembly", to_mapping, {}).items():
        try:
            assembly[name] = to_number(value)
        except ValueError as error:
            fields.report.problem("assembly", f"{name}: {error}", "give a position [rad or m]")
    return assembly


def _joints(fields: Fields) -> dict[str, JointOverride]:
    overrides = {}
    for name, value in fields.get("joints", to_mapping, {}).items():
        where = f"joints: {brief(name)}"
        entry = Fields(value, where, ("type", "pitch"), fields.report)
        kind = entry.require("type", to_name, "spherical")
        if kind == "helical":
            pitch = entry.require("pitch", to_number, 1.0)
            if pitch == 0.0:
                fields.report.problem(
                    where, "pitch is zero", "give m/rad, or use a revolute joint in the URDF"
                )
            overrides[name] = JointOverride("helical", pitch)
        elif kind == "spherical":
            overrides[name] = JointOverride("spherical")
        else:
            fields.report.problem(
                where, f"type {brief(kind)} is not set here", "use helical or spherical"
            )
    return overrides


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
            origin=Pose(entry.get("xyz", to_vector, ZERO), entry.get("rpy", to_vector, ZERO)),
        )
        if rotor.ratio == 0.0:
            fields.report.problem(where, "ratio is zero", "give rotor turns per joint turn")
        if rotor.inertia < 0.0 or rotor.mass < 0.0:
            fields.report.problem(where, "inertia or mass is negative", "give kg m^2 and kg")
        rotors.append(rotor)
    return tuple(rotors)
