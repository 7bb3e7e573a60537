"""Optimal motions in independent coordinates, beside the tree with loop constraints."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rbda_ros.examples.optimal_motion import (
    FORMULATIONS,
    PROBLEMS,
    Motion,
    Stage,
    compiled,
    solve,
)

RUNS = {"compiled": 5, "interpreted": 2}
SOLVERS = ("ipopt", "fatrop")


def rows() -> Iterator[dict[str, object]]:
    """Processor time of IPOPT and fatrop, compiled and interpreted, of each formulation.

    The least of some runs, which take turns.
    """
    for motion, make in PROBLEMS.items():
        problem = make()
        stages = {name: build(problem) for name, build in FORMULATIONS.items()}
        with tempfile.TemporaryDirectory() as folder:
            ways = {"interpreted": stages}
            if shutil.which("cc"):
                ways = {"compiled": _all_compiled(stages, Path(folder)), **ways}
            for functions, chosen in ways.items():
                for solver in SOLVERS:
                    found: dict[str, Motion] = {}
                    for _ in range(RUNS[functions]):
                        for name, stage in chosen.items():
                            new = solve(problem, stage, solver)
                            old = found.get(name, new)
                            found[name] = min(old, new, key=lambda each: each.seconds)
                    for name, best in found.items():
                        yield {
                            "motion": motion,
                            "functions": functions,
                            "solver": solver,
                            "formulation": name,
                            "cost": f"{best.cost:.6f}",
                            "iterations": best.iterations,
                            "ms": f"{1e3 * best.seconds:.1f}",
                            "of_tree": f"{best.seconds / found['tree'].seconds:.2f}",
                        }


def _all_compiled(stages: dict[str, Stage], folder: Path) -> dict[str, Stage]:
    made = {}
    for name, stage in stages.items():
        (folder / name).mkdir()
        made[name] = compiled(stage, folder / name)
    return made
