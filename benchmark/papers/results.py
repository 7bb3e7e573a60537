"""What a figure gives: rows of numbers, and what they say about the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Row = dict[str, object]
Verdict = Literal["reproduced", "better", "not"]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper beside what we find.

    Attributes:
        says: the claim, in a line.
        paper: the paper's value, "" where it gives none.
        ours: our value.
        verdict: what we find now.
        expected: what we found when this was written; a claim whose verdict differs has flipped.
        why: why it is not reproduced, or why values differ.
    """

    says: str
    paper: str
    ours: str
    verdict: Verdict
    expected: Verdict
    why: str = ""

    @property
    def flipped(self) -> bool:
        """Whether the verdict is not the one that was expected."""
        return self.verdict != self.expected


@dataclass(frozen=True)
class Result:
    """One figure or table.

    Attributes:
        rows: what is written to its CSV file.
        claims: the paper's, judged.
        text: what a reader should know about how it was done.
        skipped: why it could not be done; "" where it could.
    """

    rows: list[Row]
    claims: list[Claim]
    text: str = ""
    skipped: str = ""


def judge(better: bool, reproduced: bool = False) -> Verdict:
    """The verdict that two findings amount to."""
    return "better" if better else "reproduced" if reproduced else "not"


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
