"""Counts that the library of Chignoli 2024 publishes, where ``../shared`` has them."""

from __future__ import annotations

import csv
from functools import cache

from benchmark.papers.models import SHARED

ABSENT = "../shared/reference is absent, with the counts of the published library"


@cache
def library_counts() -> dict[tuple[str, str], dict[str, int]]:
    """Instructions of generalized_rbda, by family and name; empty where the file is absent."""
    source = SHARED / "reference" / "instruction_counts.csv"
    if not source.is_file():
        return {}
    rows = list(csv.DictReader(source.read_text().splitlines()))
    return {
        (row["family"], row["name"]): {
            key: int(value) for key, value in row.items() if key not in ("family", "name")
        }
        for row in rows
    }


@cache
def pinocchio_counts() -> dict[str, dict[str, int]]:
    """Instructions of Pinocchio's algorithms, by name as in the file."""
    source = SHARED / "reference" / "instruction_counts_pinocchio.csv"
    if not source.is_file():
        return {}
    rows = list(csv.DictReader(source.read_text().splitlines()))
    return {row["name"]: {k: int(v) for k, v in row.items() if k != "name"} for row in rows}


def shared_robot(name: str) -> str | None:
    """The text of a robot of ``../shared/robots``; None where it is absent."""
    path = SHARED / "robots" / f"{name}.urdf"
    return path.read_text() if path.is_file() else None
