"""Numbers and vectors as files and mappings give them, checked."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from numbers import Real

import numpy as np

from rbda_ros.description.model import Vector3

# Beyond this the squares and cubes that dynamics forms leave the range of a double.
LARGEST = 1e50
# A direction shorter than this is taken as no direction at all.
SHORTEST_AXIS = 1e-9


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 120


def brief(value: object) -> str:
    """Return a short form of any value, for messages; names in quotes."""
    return _short.repr(value)


def to_number(value: object, *, allow_infinite: bool = False) -> float:
    """Return the value as a finite float; ValueError says why it is none.

    Args:
        value: a number or its text.
        allow_infinite: accept any magnitude and infinity, for bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (str, Real)):
        raise ValueError(f"{brief(value)} is not a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{brief(value)} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and not allow_infinite):
        raise ValueError(f"{brief(value)} is not finite")
    if abs(number) > LARGEST and not allow_infinite:
        raise ValueError(f"{brief(value)} is too large")
    return number


def to_bound(value: object) -> float:
    """Return a limit, which may be infinite; ValueError says why it is none."""
    return to_number(value, allow_infinite=True)


def to_vector(value: object) -> Vector3:
    """Return three numbers of a list or of text such as ``"0 0 1"``; ValueError says why not."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    parts = value.split() if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or len(parts) != 3:
        raise ValueError(f"{brief(value)} is not three numbers")
    x, y, z = (to_number(part) for part in parts)
    return (x, y, z)


def to_unit_vector(value: object) -> Vector3:
    """Return a direction of length one from three numbers; ValueError says why not."""
    vector = to_vector(value)
    length = math.hypot(*vector)
    if length < SHORTEST_AXIS:
        raise ValueError("has zero length")
    x, y, z = (component / length for component in vector)
    return (x, y, z)
