"""Operations of constrained forward dynamics with three proximal iterations."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.internals import ROUTES, contact_kernel
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Result, Row, judge, number
from benchmark.papers.sathya2024_systems import QUICK, load, systems

PAPER = "Sathya 2024"
TITLE = "Fig. 1: operations of constrained dynamics"
MU, ITERATIONS = 1e6, 3


def run(quick: bool) -> Result:
    """Count the three algorithms that we have on every system."""
    rows: list[Row] = []
    for system in systems(*(QUICK if quick else ())):
        robot = load(system.robot)
        counts = {
            name: contact_kernel(robot, system.contacts, name, ITERATIONS, MU).instructions
            for name in ROUTES
        }
        rows.append({"system": system.name, "robot": system.robot, "freedoms": robot.ny} | counts)
    return Result(rows, _claims(rows), text=TEXT)


def _claims(rows: list[Row]) -> list[Claim]:
    by_name = {str(row["system"]): row for row in rows}
    ratio = {name: number(row, "LTL") / number(row, "cABA") for name, row in by_name.items()}
    go1, small = 1.0 - 1.0 / ratio["Go1 - F3^4"], 1.0 - 1.0 / ratio["Solo - F3^2"]
    fewer = [number(r, "cABA") < min(number(r, "PV"), number(r, "LTL")) for r in rows[1:]]
    growing = [x for name, x in ratio.items() if name.startswith("Atlas")]
    larger = [ratio["Solo - F3^4"], ratio["Talos - F6^2 H6^2"], growing[-1]]
    return [
        Claim(
            "a quadruped: constrainedABA takes fewer operations than proxLTL",
            "about 20 % fewer (Go1)",
            f"{100 * go1:.0f} % fewer (Go1, four feet), {100 * small:.0f} % (Solo, two feet)",
            judge(go1 > 0.2),
            "better",
        ),
        Claim(
            "larger robots: proxLTL over constrainedABA",
            "rises",
            " < ".join(f"{x:.1f}" for x in larger) + " (Solo, Talos, Atlas with hands)",
            judge(False, larger == sorted(larger)),
            "reproduced",
        ),
        Claim(
            "more constraints: proxLTL over constrainedABA",
            "rises",
            " < ".join(f"{x:.1f}" for x in growing) + " (Atlas with hands, 12 to 42 rows)",
            judge(False, growing == sorted(growing)),
            "reproduced",
        ),
        Claim(
            "constrainedABA takes the fewest operations, but for the smallest arm",
            "Go1, Talos, Atlas",
            f"{sum(fewer)} of {len(fewer)} systems",
            judge(False, all(fewer)),
            "reproduced",
        ),
    ]


TEXT = """Robots of example-robot-data, and for Atlas with two Shadow hands a tree of 84 freedoms
of our own. panda stands for Iiwa. The paper's bars are not given as numbers. proxLTLs, its fourth
algorithm, is not implemented here: it is proxLTL with the constraints in the mass matrix."""


def plot(result: Result, path: Path) -> None:
    """Bars a system, on a log scale."""
    drawn, axes = figure(1, 1, (9, 3.6))
    names = [str(row["system"]) for row in result.rows]
    for i, route in enumerate(ROUTES):
        places = [j + 0.27 * (i - 1) for j in range(len(names))]
        label = {"cABA": "constrainedABA", "PV": "proxPV", "LTL": "proxLTL"}[route]
        values = [number(row, route) for row in result.rows]
        axes.bar(places, values, 0.27, color=PALETTE[i], label=label)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.set(yscale="log", ylabel="operations, three iterations")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)
    save(drawn, path)
