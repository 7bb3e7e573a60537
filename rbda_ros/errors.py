"""The named errors of rbda_ros: each says which element is wrong and what to change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a description: where it is, why it is wrong, what to change.

    Attributes:
        element: what the user wrote, e.g. ``joint 'knee'`` or ``constraint 'knee_gear'``.
        reason: why it cannot be used.
        remedy: what to change.
    """

    element: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.element}: {self.reason}; {self.remedy}"


class ModelError(Exception):
    """A robot cannot be built from its description."""


class DescriptionError(ModelError):
    """The URDF or the loop file is wrong; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ClosureError(ModelError):
    """No position satisfies the loops for the joints that were given."""


class FarError(ClosureError):
    """No position that satisfies the loops is near the last one; a search may find one."""


class InputError(ValueError):
    """An argument has the wrong names, the wrong length, or a value that is not finite."""


class NotFiniteError(InputError):
    """A measured or desired number is infinite or NaN."""


class SingularityError(InputError):
    """A loop is at, or too close to, a dead point, where its velocities are not determined.

    Attributes:
        rows: robots of a simulated batch that cannot go on; empty elsewhere.
    """

    def __init__(self, *values: object, rows: tuple[int, ...] = ()) -> None:
        super().__init__(*values)
        self.rows = rows


MAX_LISTED = 100
"""Names that a message lists; nobody reads more, and clients may send any number."""
LONGEST_NAME = 100
"""Characters of a name that a message shows."""
LONGEST_MESSAGE = 10_000
"""Characters of a message that may quote what a client, or a file, has said."""


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, shortened to a line of readable length."""
    every = list(names)
    more = len(every) - MAX_LISTED
    return ", ".join(map(shown, every[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun: "1 joint", "2 joints"."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def shown(name: str) -> str:
    """A name from a user for a message: shortened, on one line."""
    return printable(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def readable(text: str) -> str:
    """A message of readable length, whatever it quotes; its lines stay."""
    short = text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."
    return "\n".join(printable(line) for line in short.split("\n"))


def one_line(error: BaseException | None) -> str:
    """The text of an error on one line, of readable length."""
    return " | ".join(line.strip() for line in readable(str(error)).split("\n") if line.strip())


def printable(text: str) -> str:
    """A text without control characters and characters that cannot be encoded."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
