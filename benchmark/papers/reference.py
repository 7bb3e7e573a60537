"""Counts that the library of Chignoli 2024 publishes, where ``../shared`` has them."""

from __future__ import annotations

import csv
from functools import cache

from benchmark.papers.models import SHARED

ABSENT = "../shared/reference is absent, with the counts of the published library"


@cache
def library_counts() -> dict[tuple[str, str], dict[str, int]]:
    """Instructions of generalized_rbda, by family and name; empty where the file is absent."""
    rows = _rows("instruction_counts.csv")
    return {(row.pop("family"), row.pop("name")): _numbers(row) for row in rows}


@cache
def pinocchio_counts() -> dict[str, dict[str, int]]:
    """Instructions of Pinocchio's algorithms, by name as in the file."""
    return {row.pop("name"): _numbers(row) for row in _rows("instruction_counts_pinocchio.csv")}


def _rows(file: str) -> list[dict[str, str]]:
    source = SHARED / "reference" / file
    return list(csv.DictReader(source.read_text().splitlines())) if source.is_file() else []


def _numbers(row: dict[str, str]) -> dict[str, int]:
    return {key: int(value) for key, value in row.items()}


def shared_robot(name: str) -> str | None:
    """The text of a robot of ``../shared/robots``; None where it is absent."""
    path = SHARED / "robots" / f"{name}.urdf"
    return path.read_text() if path.is_file() else None
