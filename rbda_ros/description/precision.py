"""How precisely a file states where its frames are: the digits that its writer kept."""

from __future__ import annotations

import re
from statistics import median_low

_FRAMES = re.compile(
    r"\b(?:xyz|rpy|pos|quat|euler|axis|axisangle|anchor|relpose)\s*=\s*[\"']([^\"']*)[\"']"
    r"|<(?:pose|xyz)\b[^>]*>([^<]*)<"
)
_NUMBER = re.compile(r"[-+]?(\d*\.?\d+)(?:[eE][-+]?\d+)?")
FEWEST_DIGITS = 5
"""Numbers with fewer digits are somebody's own, and exact."""
LARGEST_LOOK = 2_000_000
"""Characters of a file that are looked at."""


def significant_digits(text: str) -> int | None:
    """Digits of most numbers in frames and axes, of those that are not short; None without any.

    An exporter that keeps six digits gives six, or fewer where a number ends in a zero.
    """
    digits = []
    for attribute, element in _FRAMES.findall(text[:LARGEST_LOOK]):
        for number in _NUMBER.findall(attribute or element):
            count = len(number.replace(".", "").lstrip("0"))
            if count >= FEWEST_DIGITS:
                digits.append(count)
    return median_low(digits) if digits else None
