"""Numbers by joint name, from parameters such as ``stiffness`` and ``joint_offsets``."""

from __future__ import annotations

import math
from functools import lru_cache

from rbda_ros.node.parameter_yaml import read_mapping

GAIN_FORM = "{<joint>: <number>, ...}"


@lru_cache
def joint_gains(name: str, text: str, *, signed: bool = False) -> dict[str, float]:
    """Read the YAML text of a parameter: numbers by joint name, of zero or more unless signed.

    Raises:
        ValueError: it is not of that form; says which entry, and what to write.
    """
    given = read_mapping(name, text, GAIN_FORM)
    for joint, gain in given.items():
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not math.isfinite(gain) or (gain < 0.0 and not signed):
            more = "" if signed else " of zero or more"
            raise ValueError(f"{name}: '{joint}' is {gain}; give a finite number{more}")
    return {str(joint): float(gain) for joint, gain in given.items()}
