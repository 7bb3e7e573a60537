"""Named points on links, from the parameter ``end_effectors``."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from rbda_ros.node.parameter_yaml import read_mapping

FORM = "{<name>: {link: <link>, xyz: [x, y, z]}, ...}"

Point = tuple[str, list[float]]
"""A link, and where on it [m, in its frame]."""


@lru_cache
def end_effectors(text: str) -> dict[str, Point]:
    """Read the YAML text of the parameter: points by name.

    Raises:
        ValueError: it is not of that form; says which entry, and what to write.
    """
    given = read_mapping("end_effectors", text, FORM)
    return {str(name): _point(name, entry) for name, entry in given.items()}


def _point(name: Any, entry: Any) -> Point:
    if isinstance(entry, dict) and set(entry) <= {"link", "xyz"}:
        link, xyz = entry.get("link"), entry.get("xyz", [0.0, 0.0, 0.0])
        if isinstance(link, str) and isinstance(xyz, list) and len(xyz) == 3:
            numbers = [x for x in xyz if isinstance(x, int | float) and math.isfinite(x)]
            if len(numbers) == 3:
                return link, [float(x) for x in numbers]
    raise ValueError(f"end_effectors: '{name}' is {entry}; write {FORM}")
