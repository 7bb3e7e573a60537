"""The table that a run ends with: printed, and kept in docs/hardening.md."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hardening.md"


class LoadedError(Exception):
    """Other work makes this machine too slow to judge; says what was found."""


def loaded() -> bool:
    """Whether more wants to run on this machine than it has cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


@dataclass(frozen=True)
class Verdict:
    """One line: what was tried, whether it went well (None: it could not be tried), and how."""

    what: str
    ok: bool | None
    found: str

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: "not tried"}[self.ok]


def conclude(
    name: str,
    conditions: str,
    verdicts: Sequence[Verdict],
    write: bool,
    kept: Sequence[Verdict] | None = None,
) -> None:
    """Print the table, write it into the page where asked for, and end with its exit code.

    ``kept`` are the lines of the page, where these are fewer than those that are printed.
    """
    width = max(len(verdict.what) for verdict in verdicts)
    print(f"\n{name}: {conditions}")
    for verdict in verdicts:
        print(f"  {verdict.word:<9}  {verdict.what:<{width}}  {verdict.found}")
    failed = sum(verdict.ok is False for verdict in verdicts)
    print(f"{name}: {'FAIL' if failed else 'pass'}, {failed} of {len(verdicts)} failed", flush=True)
    if write:
        _write(name, conditions, verdicts if kept is None else kept)
    sys.exit(1 if failed else 0)


def counted(what: str, verdicts: Sequence[Verdict]) -> Verdict:
    """One line for many mutants: how many were noticed."""
    ok = sum(verdict.ok is True for verdict in verdicts)
    return Verdict(what, ok == len(verdicts), f"{ok} of {len(verdicts)} noticed")


def _write(name: str, conditions: str, verdicts: Sequence[Verdict]) -> None:
    rows = [f"| {v.what} | {v.word} | {v.found} |" for v in verdicts]
    table = "\n".join([conditions, "", "| what | verdict | found |", "|---|---|---|", *rows])
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = PAGE.read_text()
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{table}\n{end}", page))
