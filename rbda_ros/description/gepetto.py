"""Loops as Gepetto's example-parallel-robots writes them, put in terms of our loop file.

A YAML file of frame pairs beside a URDF::

    closed_loop: [[frame_a, frame_b], ...]   # links, or joints, whose frames coincide
    type: [6d, 3d, ...]                      # whole frames, or their origins; 6d where left out
    name_mot: [motor_1, ...]                 # actuated joints
    joint_name: [ball_1, cross_1, ...]       # joints whose URDF type is only a stand-in
    joint_type: [SPHERICAL, UJOINT_XY, FIXED, ...]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rbda_ros.description.report import Report
from rbda_ros.description.values import Fields, brief, to_list, to_names

KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_CUTS = {"6d": "fixed", "3d": "spherical"}
_AXES = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}


def is_gepetto(value: object) -> bool:
    """Whether a loop file is in this form."""
    return isinstance(value, Mapping) and not {"closed_loop", "name_mot"}.isdisjoint(value)


def to_loop_file(
    value: object, link_names: Sequence[str], child_of: Mapping[str, str], report: Report
) -> dict[str, Any]:
    """The same in the keys of our loop file.

    Args:
        value: the file, parsed.
        link_names: of the URDF; a frame is a link first.
        child_of: for each joint of the URDF the link that it moves, whose frame is its own.
        report: takes the problems.
    """
    fields = Fields(value, "loop file", KEYS, report)
    pairs = fields.get("closed_loop", to_list, ())
    types = fields.get("type", to_list, ["6d"] * len(pairs))
    if len(types) != len(pairs):
        reason = f"has {len(pairs)} closed_loop and {len(types)} type"
        report.problem("loop file", reason, "give one type for each pair of frames")
        types = ["6d"] * len(pairs)
    links = set(link_names)
    ends = {link: link for link in links} | {j: c for j, c in child_of.items() if j not in links}
    numbered = enumerate(zip(pairs, types, strict=True), start=1)
    found = (_constraint(number, pair, kind, ends, report) for number, (pair, kind) in numbered)
    constraints = [constraint for constraint in found if constraint is not None]
    motors = fields.get("name_mot", to_names, None)
    joints = _joints(fields, report)
    # Gepetto's own loader passes over unknown names, and its files have some.
    for key, names in (("name_mot", motors or ()), ("joint_name", joints)):
        for name in names:
            if name not in child_of:
                report.warn(key, f"there is no joint {brief(name)}; it is ignored")
    translated: dict[str, Any] = {
        "constraints": constraints,
        "joints": {name: joint for name, joint in joints.items() if name in child_of},
    }
    if motors is not None:
        translated["actuated_joints"] = _moving(motors, joints, child_of)
    return translated


def _constraint(
    number: int, pair: object, kind: object, link_of: Mapping[str, str], report: Report
) -> dict[str, Any] | None:
    """One pair of frames as an entry of ``constraints``; None after noting what is wrong."""
    where = f"closed_loop {number}"
    cut = _CUTS.get(str(kind).lower())
    if cut is None:
        report.problem(where, f"type {brief(kind)} is unknown", "use 6d or 3d")
        return None
    try:
        ends = to_names(pair)
    except ValueError as error:
        report.problem(where, str(error), "name two frames")
        return None
    if len(ends) != 2:
        report.problem(where, f"names {len(ends)} frames", "name two frames")
        return None
    return {
        "name": f"{ends[0]}C{ends[1]}",
        "type": cut,
        "predecessor": {"link": link_of.get(ends[0], ends[0])},
        "successor": {"link": link_of.get(ends[1], ends[1])},
    }


def _moving(
    motors: Sequence[str], joints: Mapping[str, Mapping[str, Any]], child_of: Mapping[str, str]
) -> list[str]:
    """The motors that are joints; both halves of one that became a universal joint."""
    names: list[str] = []
    for name in motors:
        suffixes = joints.get(name, {}).get("suffixes")
        if name in child_of:
            names.extend(f"{name}_{suffix}" for suffix in suffixes) if suffixes else names.append(
                name
            )
    return names


def _joints(fields: Fields, report: Report) -> dict[str, dict[str, Any]]:
    names = fields.get("joint_name", to_names, ())
    kinds = fields.get("joint_type", to_names, ())
    if len(names) != len(kinds):
        reason = f"has {len(names)} joint_name and {len(kinds)} joint_type"
        report.problem("loop file", reason, "give one joint_type for each joint_name")
        return {}
    joints: dict[str, dict[str, Any]] = {}
    for name, kind in zip(names, kinds, strict=True):
        letters = kind.removeprefix("UJOINT_").upper()
        if kind in ("SPHERICAL", "FIXED"):
            joints[name] = {"type": kind.lower()}
        elif kind.startswith("UJOINT_") and len(letters) == 2 and set(letters) <= set(_AXES):
            first, second = (_AXES[letter] for letter in letters)
            suffixes = [letters[0], letters[1]]
            joints[name] = {"type": "universal", "axis": first, "second_axis": second}
            joints[name]["suffixes"] = suffixes
        else:
            report.problem(
                f"joint_name {brief(name)}",
                f"joint_type {brief(kind)} is unknown",
                "use SPHERICAL, FIXED or UJOINT_XY with any two of X, Y and Z",
            )
    return joints
