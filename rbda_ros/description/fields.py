"""One mapping of the loop file: its keys checked, its values converted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from rbda_ros.description.report import Report
from rbda_ros.description.values import brief

T = TypeVar("T")
D = TypeVar("D")


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
        try:
            return convert(self._values[key])
        except ValueError as error:
            self.report.problem(self.where, f"{key}: {error}", "correct it")
            return default

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
