"""Run the figures and tables, write their CSV files and pictures, and ``docs/papers.md``.

``python -m benchmark.papers`` runs all, with times, which takes some minutes; names, or parts of
them, choose some. ``--quick`` is counts and accuracy alone, and fails if a claim flips. Results are
kept in ``build/papers`` as each figure is done; docs/papers.md is written from the last of each.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import pickle
import sys
import time
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmark.papers import report
from benchmark.papers.results import Result

ROOT = Path(__file__).resolve().parents[2]
DOCS, KEPT = ROOT / "docs", ROOT / "build" / "papers"
MODULES = (
    "chignoli2024_fig8", "chignoli2024_fig10", "chignoli2024_fig12", "chignoli2024_fig13",
    "sathya2024_fig1", "sathya2024_fig3", "sathya2024_fig4", "sathya2024_fig5",
    "sathya2024_table2", "sathya2024_table3", "chignoli2023_fig3", "featherstone2010", "jain2009",
    "growth",
)  # fmt: skip


def main() -> int:
    """Returns the exit code: 1 where a claim of a quick run flipped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="counts and accuracy alone")
    parser.add_argument("names", nargs="*", help="parts of the names of figures to run")
    args = parser.parse_args()
    chosen = [m for m in MODULES if not args.names or any(name in m for name in args.names)]
    console = Console()
    results, seconds = _run(chosen, args.quick, console)
    console.print(_table(results))
    if not args.quick and all((KEPT / f"{name}.pickle").is_file() for name in MODULES):
        report.write(DOCS / "papers.md", {name: _kept(name) for name in MODULES})
    flipped = [c for _, result in results.values() for c in result.claims if c.flipped]
    for claim in flipped:
        console.print(f"[red]flipped[/]: {claim.says}: {claim.verdict}, not {claim.expected}")
    for name, (_, result) in results.items():
        if result.skipped:
            console.print(f"skipped {name}: {result.skipped}")
    console.print(f"{sum(len(r.claims) for _, r in results.values())} claims in {seconds:.0f} s")
    return 1 if args.quick and flipped else 0


def _run(
    chosen: list[str], quick: bool, console: Console
) -> tuple[dict[str, tuple[ModuleType, Result]], float]:
    results = {}
    began = time.perf_counter()
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=len(chosen))
        for name in chosen:
            progress.update(task, description=name)
            module = importlib.import_module(f"benchmark.papers.{name}")
            results[name] = module, module.run(quick)
            if not quick:
                _write(name, *results[name])
            progress.advance(task)
    return results, time.perf_counter() - began


def _table(results: dict[str, tuple[ModuleType, Result]]) -> Table:
    table = Table("paper", "claim", "paper's", "ours", "")
    colours = {"reproduced": "green", "better": "bold green", "not": "yellow"}
    for module, result in results.values():
        for claim in result.claims:
            verdict = f"[{colours[claim.verdict]}]{claim.verdict}[/]"
            table.add_row(module.PAPER, claim.says, claim.paper, claim.ours, verdict)
        table.add_section()
    return table


def _kept(name: str) -> tuple[ModuleType, Result]:
    """A figure's module, and its last result."""
    result = pickle.loads((KEPT / f"{name}.pickle").read_bytes())
    return importlib.import_module(f"benchmark.papers.{name}"), result


def _write(name: str, module: ModuleType, result: Result) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.pickle").write_bytes(pickle.dumps(result))
    if not result.rows:
        return
    path = DOCS / "papers" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, result.rows[0], lineterminator="\n")
        writer.writeheader()
        for row in result.rows:
            short = {k: f"{x:.5g}" if isinstance(x, float) else x for k, x in row.items()}
            writer.writerow(short)
    module.plot(result, path.with_suffix(".svg"))


if __name__ == "__main__":
    sys.exit(main())
