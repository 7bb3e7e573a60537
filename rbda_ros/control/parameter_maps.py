"""Parameters that map names to values: numbers by joint, and points on links, as YAML text."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import yaml

GAIN_FORM = "{<joint>: <number>, ...}"
POINT_FORM = "{<name>: {link: <link>, xyz: [x, y, z]}, ...}"

Point = tuple[str, list[float]]
"""A link, and where on it [m, in its frame]."""


@lru_cache
def joint_gains(name: str, text: str, *, signed: bool = False) -> dict[str, float]:
    """Read the YAML text of a parameter: numbers by joint name, of zero or more unless signed.

    Raises:
        ValueError: it is not of that form; says which entry, and what to write.
    """
    given = _read_mapping(name, text, GAIN_FORM)
    for joint, gain in given.items():
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not math.isfinite(gain) or (gain < 0.0 and not signed):
            more = "" if signed else " of zero or more"
            raise ValueError(f"{name}: '{joint}' is {gain}; give a finite number{more}")
    return {str(joint): float(gain) for joint, gain in given.items()}


@lru_cache
def end_effectors(text: str) -> dict[str, Point]:
    """Read the YAML text of the parameter ``end_effectors``: points by name.

    Raises:
        ValueError: it is not of that form; says which entry, and what to write.
    """
    given = _read_mapping("end_effectors", text, POINT_FORM)
    return {str(name): _point(name, entry) for name, entry in given.items()}


def _point(name: Any, entry: Any) -> Point:
    if isinstance(entry, dict) and set(entry) <= {"link", "xyz"}:
        link, xyz = entry.get("link"), entry.get("xyz", [0.0, 0.0, 0.0])
        if isinstance(link, str) and isinstance(xyz, list) and len(xyz) == 3:
            numbers = [x for x in xyz if isinstance(x, int | float) and math.isfinite(x)]
            if len(numbers) == 3:
                return link, [float(x) for x in numbers]
    raise ValueError(f"end_effectors: '{name}' is {entry}; write {POINT_FORM}")


def _read_mapping(parameter: str, text: str, form: str) -> dict[Any, Any]:
    """The mapping that a parameter holds as YAML text; empty text is an empty one."""
    try:
        given = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{parameter}: not YAML ({error}); write {form}") from error
    if not isinstance(given, dict):
        raise ValueError(f"{parameter}: '{text}' is no mapping; write {form}")
    return given
