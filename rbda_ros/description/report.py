"""Everything wrong with a description is collected first and raised once."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Sequence
from itertools import islice

from rbda_ros.errors import DescriptionError, Problem

# Looking for similar names takes quadratic time: enough for people, bounded for broken files.
_MAX_SUGGESTIONS = 50
_MAX_CANDIDATES = 1000
_LONGEST_NAME = 100
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 120


def brief(value: object) -> str:
    """Return a short form of any value, for messages; names in quotes."""
    return _short.repr(value)


def several(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names in quotes, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(brief, names[:most])) + (f" and {more} more" if more > 0 else "")


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

    def unknown(
        self,
        element: str,
        kind: str,
        name: str,
        known: Collection[str],
        otherwise: str | None = None,
    ) -> None:
        """Note a name that nothing has, with the most similar known one as the remedy.

        Args:
            element: where the name stands.
            kind: of what it names: "link", "joint" or "frame".
            name: that is unknown.
            known: names of that kind.
            otherwise: the remedy where no known name is similar.
        """
        remedy = self.suggest(name, known, otherwise or f"name an existing {kind}")
        self.problem(element, f"unknown {kind} {brief(name)}", remedy)

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
