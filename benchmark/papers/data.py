"""The numbers of docs/papers.md: a CSV file for each figure, and when each was made."""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

from benchmark.papers.results import Row

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOLDER = ROOT / "docs" / "papers.md", ROOT / "docs" / "papers"
STAMPS = FOLDER / "stamps.json"
ALL = "all"
"""The stamp of the last run of all figures."""
PACKAGES = ("casadi", "numpy", "llvmlite", "pin")


def read_rows(name: str) -> list[Row]:
    """A figure's rows, numbers as numbers; none where the file is absent."""
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [{k: _value(text) for k, text in row.items()} for row in csv.DictReader(file)]


def write_rows(name: str, rows: list[Row]) -> None:
    """Write a figure's rows, floats to five digits."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{x:.5g}" if isinstance(x, float) else x for k, x in row.items()})


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def stamp(seconds: float, processor: float) -> dict[str, object]:
    """When, by which sources and versions, and on how busy a machine a figure was run.

    Args:
        seconds: how long it took.
        processor: how much processor time, of all threads.
    """
    load = os.getloadavg()[1] / (os.cpu_count() or 1)
    versions = {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {
        "commit": commit(),
        "counted": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(seconds),
        "processor": round(processor),
        "load": round(load, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def commit() -> str:
    """The commit of the sources, with ``-dirty`` where some of them are changed."""
    described = _git("rev-parse", "--short", "HEAD") or "unknown"
    changed = _git("status", "--porcelain", "--", "rbda_ros", "benchmark")
    return f"{described}-dirty" if changed else described


def _git(*words: str) -> str:
    found = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def read_stamps() -> dict[str, dict[str, object]]:
    """The stamp of each figure."""
    return json.loads(STAMPS.read_text()) if STAMPS.is_file() else {}


def write_stamp(name: str, value: dict[str, object]) -> None:
    """Replace a figure's stamp."""
    STAMPS.write_text(json.dumps(read_stamps() | {name: value}, indent=1, sort_keys=True) + "\n")
