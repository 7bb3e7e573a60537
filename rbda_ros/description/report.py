"""Everything wrong with a description is collected first and raised once."""

from __future__ import annotations

from rbda_ros.errors import DescriptionError, Problem


class Report:
    """Collects problems and warnings while a description is read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def problem(self, element: str, reason: str, remedy: str) -> None:
        """Note something that cannot be used; a repeated note counts once."""
        problem = Problem(element, reason, remedy)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, element: str, text: str) -> None:
        """Note something that is odd but usable."""
        self.warnings.append(f"{element}: {text}")

    def raise_problems(self) -> None:
        """Raise DescriptionError if anything cannot be used."""
        if self.problems:
            raise DescriptionError(self.problems)
