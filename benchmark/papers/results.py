"""A paper's claim, judged; rows of numbers, and whether they are still the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np

Row = dict[str, object]
Verdict = Literal["reproduced", "better", "not", "different metric"]
Scope = Literal["day", "night", "all"]
"""How much of a figure to run: a few counts in a second or two; all counts and accuracies, without
times; everything."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper beside our finding.

    Attributes:
        says: the claim, in a line.
        paper: the paper's value.
        ours: our value.
        metric: the unit of both values.
        verdict: our finding, from the rows.
        expected: the verdict when this was written; a claim whose verdict differs has flipped.
        why: why it is not reproduced, or why values differ.
        checked: ``day`` where `make test` computes all of its numbers again, ``night`` where it
            does so with some of them and `make nightly` with all, ``no`` for times.
    """

    says: str
    paper: str
    ours: str
    metric: str
    verdict: Verdict
    expected: Verdict
    why: str = ""
    checked: Literal["day", "night", "no"] = "night"

    @property
    def flipped(self) -> bool:
        """Whether the verdict is not the one that was expected."""
        return self.verdict != self.expected


def judge(reproduced: bool, better: bool = False) -> Verdict:
    """The verdict for two findings."""
    return "better" if better else "reproduced" if reproduced else "not"


def near(ours: float, paper: float, within: float) -> bool:
    """Whether a value is the paper's within a share of it."""
    return abs(ours / paper - 1.0) <= within


def number(row: Row, key: str) -> float:
    """A number of a row."""
    return float(str(row[key]))


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size that costs grow with: slope of the line through their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def straightness(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Largest distance of costs from the best line, as a share of the largest cost."""
    line = np.polyval(np.polyfit(sizes, costs, 1), sizes)
    return float(np.abs(line - costs).max() / np.max(costs))


def differences(module: ModuleType, published: list[Row], now: list[Row]) -> list[str]:
    """Counts that are not those of the page, one line each.

    Args:
        module: a figure's; ``KEYS`` are the columns that identify a row, ``COUNTS`` those that must
            be equal.
        published: rows of the page.
        now: rows of a new run; any of them, with empty cells where nothing was counted.
    """
    if not module.COUNTS:
        return []
    by_key = {tuple(str(row[key]) for key in module.KEYS): row for row in published}
    found = []
    for row in now:
        key = tuple(str(row[k]) for k in module.KEYS)
        if key not in by_key:
            found.append(f"{', '.join(key)}: not on the page")
            continue
        for column in module.COUNTS:
            then, value = str(by_key[key][column]), str(row[column])
            if value not in ("", then):
                found.append(f"{', '.join(key)}: {column} is {value}, the page has {then}")
    return found
