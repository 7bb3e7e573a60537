"""Run the figures and tables, write their CSV files and pictures, and ``docs/papers.md``.

``python -m benchmark.papers`` runs all, with times; names, or parts of them, choose some.
``--counts`` counts again and keeps the times of the last run. ``--page`` writes the page from the
CSV files alone.

Machine code is never read from disk: every run is cold.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmark.papers import report
from benchmark.papers.data import (
    ALL,
    FOLDER,
    read_rows,
    read_stamps,
    stamp,
    write_rows,
    write_stamp,
)
from benchmark.papers.results import Row, Scope
from benchmark.papers.running import Run, runs


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
    os.environ["RBDA_ROS_CACHE"] = "0"  # times to compile, and the same work in every run
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    began, processor = time.perf_counter(), 0.0
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=len(chosen))
        for run in runs(chosen, scope):
            progress.update(task, description=run.name, advance=1)
            processor += float(str(run.made["processor"]))
            if run.rows:
                _publish(run, scope)
            else:
                needs = getattr(report.module_of(run.name), "NEEDS", "no rows")
                console.print(f"nothing to run for {run.name}: {needs}")
    if scope == "all" and len(chosen) == len(report.MODULES):
        write_stamp(ALL, stamp(time.perf_counter() - began, processor))


def _publish(run: Run, scope: Scope) -> None:
    """Write a figure's numbers, stamp and picture."""
    module, name = report.module_of(run.name), run.name
    write_rows(name, run.rows if scope == "all" else _with_times(module, name, run.rows))
    made = run.made if scope == "all" else {"counted": run.made["counted"]}
    write_stamp(name, read_stamps().get(name, {}) | made)
    if hasattr(module, "plot"):
        module.plot(read_rows(name), FOLDER / f"{name}.svg")


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
