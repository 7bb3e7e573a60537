"""Run the figures and tables, write their CSV files and pictures, and ``docs/papers.md``.

``python -m benchmark.papers`` runs all, with times; names, or parts of them, choose some.
``--counts`` counts again and keeps the times of the last run. ``--page`` writes the page from the
CSV files alone.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmark.papers import report
from benchmark.papers.data import (
    FOLDER,
    commit,
    read_rows,
    read_stamps,
    stamp,
    write_rows,
    write_stamp,
)
from benchmark.papers.results import Row, Scope


def main() -> int:
    """Returns the exit code: 1 where a claim flipped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", action="store_true", help="no times: keep those of before")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("names", nargs="*", help="parts of the names of figures to run")
    args = parser.parse_args()
    chosen = [m for m in report.MODULES if not args.names or any(name in m for name in args.names)]
    console = Console()
    began = time.perf_counter()
    if not args.page:
        _run(chosen, "night" if args.counts else "all", console)
    report.write()
    console.print(_table(chosen))
    flipped = [c for name in chosen for c in report.claims_of(name) if c.flipped]
    for claim in flipped:
        console.print(f"[red]flipped[/]: {claim.says}: {claim.verdict}, not {claim.expected}")
    console.print(f"{time.perf_counter() - began:.0f} s")
    return 1 if flipped else 0


def _run(chosen: list[str], scope: Scope, console: Console) -> None:
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=len(chosen))
        for name in chosen:
            progress.update(task, description=name)
            module = importlib.import_module(f"benchmark.papers.{name}")
            began, worked = time.perf_counter(), time.process_time()
            rows = module.run(scope)
            seconds, worked = time.perf_counter() - began, time.process_time() - worked
            if rows:
                write_rows(name, rows if scope == "all" else _with_times(module, name, rows))
                made = stamp(seconds, worked) if scope == "all" else {"counted": commit()}
                write_stamp(name, read_stamps().get(name, {}) | made)
                if hasattr(module, "plot"):
                    module.plot(read_rows(name), FOLDER / f"{name}.svg")
            else:
                console.print(f"nothing to run for {name}: {getattr(module, 'NEEDS', 'no rows')}")
            progress.advance(task)


def _with_times(module: ModuleType, name: str, rows: list[Row]) -> list[Row]:
    """Published rows with the counts of new ones; rows that are new as they are.

    Of a figure that counts nothing, the published rows stay.
    """
    if not module.COUNTS:
        return read_rows(name) or rows
    new = {tuple(str(row[k]) for k in module.KEYS): row for row in rows}
    merged = []
    for row in read_rows(name):
        fresh = new.pop(tuple(str(row[k]) for k in module.KEYS), {})
        merged.append(row | {k: fresh[k] for k in module.COUNTS if fresh.get(k, "") != ""})
    return merged + list(new.values())


def _table(names: list[str]) -> Table:
    table = Table("paper", "claim", "paper's", "ours", "metric", "")
    colours = {"reproduced": "green", "better": "bold green"}
    for name in names:
        module = importlib.import_module(f"benchmark.papers.{name}")
        for claim in report.claims_of(name):
            verdict = f"[{colours.get(claim.verdict, 'yellow')}]{claim.verdict}[/]"
            cells = claim.says, claim.paper, claim.ours, claim.metric, verdict
            table.add_row(module.PAPER, *cells)
        table.add_section()
    return table


if __name__ == "__main__":
    sys.exit(main())
