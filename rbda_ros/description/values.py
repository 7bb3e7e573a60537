"""Numbers and vectors as files and mappings give them, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from typing import TypeVar

import numpy as np

from rbda_ros.description.model import Vector3, vector3
from rbda_ros.description.report import Report, brief

# Beyond this the squares and cubes that dynamics forms leave the range of a double.
LARGEST = 1e50
# A direction shorter than this is taken as no direction at all.
SHORTEST_AXIS = 1e-9


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
    return vector3(to_number(part) for part in parts)


def to_unit_vector(value: object) -> Vector3:
    """Return a direction of length one from three numbers; ValueError says why not."""
    vector = to_vector(value)
    length = math.hypot(*vector)
    if length < SHORTEST_AXIS:
        raise ValueError("has zero length")
    return vector3(component / length for component in vector)


S = TypeVar("S")
T = TypeVar("T")
D = TypeVar("D")


def converted(
    value: S, convert: Callable[[S], T], default: D, where: str, place: str, report: Report
) -> T | D:
    """Convert a value; return the default after noting why it cannot be converted.

    Args:
        value: a text, or an entry of a mapping.
        convert: raises ValueError with a reason.
        default: where it does.
        where: what the user calls the element that has the value, for messages.
        place: what the value is of that element.
        report: takes the problem.
    """
    try:
        return convert(value)
    except ValueError as error:
        report.problem(where, f"{place}: {error}", "correct it")
        return default


class Fields:
    """Reads the keys of a mapping, and notes those that are unknown, missing or wrong."""

    def __init__(self, value: object, where: str, keys: Collection[str], report: Report) -> None:
        self.where = where
        self.report = report
        self._values: dict[str, object] = {}
        self._is_mapping = isinstance(value, Mapping)
        if not isinstance(value, Mapping):
            report.problem(
                where, f"{brief(value)} is not a mapping", f"give the keys {', '.join(keys)}"
            )
            return
        for key, item in value.items():
            if not isinstance(key, str) or key not in keys:
                remedy = report.suggest(str(key), keys, f"use {', '.join(keys)}")
                report.problem(where, f"unknown key {brief(key)}", remedy)
            elif item is not None:
                self._values[key] = item

    def get(self, key: str, convert: Callable[[object], T], default: D) -> T | D:
        """Convert a value; return the default where it is absent, or after noting what is wrong."""
        if key not in self._values:
            return default
        return converted(self._values[key], convert, default, self.where, key, self.report)

    def require(self, key: str, convert: Callable[[object], T], default: D) -> T | D:
        """Like get, but notes where it is absent."""
        if key not in self._values and self._is_mapping:
            self.report.problem(self.where, f"has no {key}", f"add {key}")
        return self.get(key, convert, default)


def to_name(value: object) -> str:
    """Return a name; ValueError says why it is none."""
    if not isinstance(value, str):
        raise ValueError(f"{brief(value)} is not a name")
    if not value.strip():
        raise ValueError("a name is empty")
    return value


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with underscores after it until nothing has it."""
    while name in taken:
        name += "_"
    return name


def to_names(value: object) -> tuple[str, ...]:
    """Return a tuple of names; ValueError says why it is none."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{brief(value)} is not a list of names")
    return tuple(to_name(item) for item in value)


def to_mapping(value: object) -> Mapping[str, object]:
    """Return a mapping with names as keys; ValueError says why it is none."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{brief(value)} is not a mapping")
    return {to_name(key): item for key, item in value.items()}


def to_list(value: object) -> Sequence[object]:
    """Return a list of anything; ValueError says why it is none."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{brief(value)} is not a list")
    return value
