"""Everything wrong with a description is collected first and raised once."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import islice

from rbda_ros.errors import DescriptionError, Problem

# Looking for similar names takes quadratic time: enough for people, bounded for broken files.
_MAX_SUGGESTIONS = 50
_MAX_CANDIDATES = 1000
_LONGEST_NAME = 100


class Report:
    """Collects problems and warnings while a description is read."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}
        self._warnings: dict[str, None] = {}
        self._suggestions = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings: odd but usable, in the order found."""
        return tuple(self._warnings)

    def problem(self, element: str, reason: str, remedy: str) -> None:
        """Note something that cannot be used; noting it again changes nothing."""
        texts = (_printable(text) for text in (element, reason, remedy))
        self._problems[Problem(*texts)] = None

    def warn(self, element: str, text: str) -> None:
        """Note something that is odd but usable."""
        self._warnings[_printable(f"{element}: {text}")] = None

    def suggest(self, name: str, known: Collection[str], otherwise: str) -> str:
        """Return a remedy for an unknown name: the most similar known one, if there is any."""
        self._suggestions += 1
        if self._suggestions <= _MAX_SUGGESTIONS and len(name) <= _LONGEST_NAME:
            candidates = islice(known, _MAX_CANDIDATES)
            short = [candidate for candidate in candidates if len(candidate) <= _LONGEST_NAME]
            similar = difflib.get_close_matches(name, short, n=1)
            if similar:
                return f"did you mean {similar[0]!r}?"
        return otherwise

    def raise_problems(self) -> None:
        """Raise DescriptionError if anything cannot be used."""
        if self._problems:
            raise DescriptionError(self._problems)


def _printable(text: str) -> str:
    """Escape what would garble a terminal or cannot be encoded at all."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
