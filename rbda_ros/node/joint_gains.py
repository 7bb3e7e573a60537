"""Numbers by joint name, from parameters such as ``stiffness``."""

from __future__ import annotations

import math
from functools import lru_cache

from rbda_ros.node.parameter_yaml import read_mapping

GAIN_FORM = "{<joint>: <number>, ...}"


@lru_cache
def joint_gains(name: str, text: str) -> dict[str, float]:
    """Read the YAML text of a parameter: numbers of zero or more by joint name.

    Raises:
        ValueError: it is not of that form; says which entry, and what to write.
    """
    given = read_mapping(name, text, GAIN_FORM)
    for joint, gain in given.items():
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not math.isfinite(gain) or gain < 0.0:
            raise ValueError(f"{name}: '{joint}' is {gain}; give a finite number of zero or more")
    return {str(joint): float(gain) for joint, gain in given.items()}
