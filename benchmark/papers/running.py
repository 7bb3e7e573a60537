"""Run figures: those that only count side by side, those with times one by one."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from benchmark.papers import report
from benchmark.papers.data import read_stamps, stamp
from benchmark.papers.results import Row, Scope


class Run(NamedTuple):
    """One run of a figure.

    Attributes:
        name: of its module.
        rows: its numbers; none where its data are absent.
        made: when and how, as `stamp` gives it.
    """

    name: str
    rows: list[Row]
    made: dict[str, object]


def runs(chosen: list[str], scope: Scope) -> Iterator[Run]:
    """Run figures without times side by side, the longest first, and then those with times."""
    alone = [name for name in chosen if scope == "all" and report.has_times(name)]
    stamps = read_stamps()
    together = sorted(
        (name for name in chosen if name not in alone),
        key=lambda name: -int(str(stamps.get(name, {}).get("processor", 0))),
    )
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_run_figure, name, scope) for name in together]
        for future in as_completed(futures):
            yield future.result()
    for name in alone:
        yield _run_figure(name, scope)


def _run_figure(name: str, scope: Scope) -> Run:
    began, worked = time.perf_counter(), time.process_time()
    rows = report.module_of(name).run(scope)
    made = stamp(time.perf_counter() - began, time.process_time() - worked)
    return Run(name, rows, made)
