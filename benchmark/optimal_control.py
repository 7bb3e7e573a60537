"""Optimal motions with loops inside CasADi functions, beside the tree with loop constraints."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator

from rbda_ros.examples.optimal_motion import FORMULATIONS, PROBLEMS, solve

RUNS = 5


def rows() -> Iterator[dict[str, object]]:
    """Time of IPOPT's solution, interpreted and compiled, of each formulation of each motion."""
    here = os.getcwd()
    for motion, make in PROBLEMS.items():
        problem = make()
        stages = {name: build(problem) for name, build in FORMULATIONS.items()}
        for compiled in (False, *([True] if shutil.which("gcc") else [])):
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)  # where CasADi writes what it compiles
                try:
                    found = {
                        name: [solve(problem, stage, compiled=compiled) for _ in _runs(compiled)]
                        for name, stage in stages.items()
                    }
                finally:
                    os.chdir(here)
            tree = statistics.median(each.seconds for each in found["tree"])
            for name, motions in found.items():
                seconds = statistics.median(each.seconds for each in motions)
                yield {
                    "motion": motion,
                    "functions": "compiled" if compiled else "interpreted",
                    "formulation": name,
                    "cost": f"{motions[0].cost:.6f}",
                    "iterations": motions[0].iterations,
                    "ms": f"{1e3 * seconds:.1f}",
                    "of_tree": f"{seconds / tree:.2f}",
                }


def _runs(compiled: bool) -> range:
    """Compiling takes a minute for each solver: one run of these."""
    return range(1 if compiled else RUNS)
