"""Times of the damped inverse of the Delassus matrix."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmark.papers.internals import contact_inputs, delassus_kernel
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.results import Claim, Row, Scope, judge, number
from benchmark.papers.sathya2024_systems import PAPER_FREEDOMS, STAND_INS, load, state, systems
from benchmark.timing import interleaved

PAPER = "Sathya 2024"
TITLE = "Table III: times of the damped Delassus inverse"
MU, TIMED = 1e6, 50_000
PAPERS = {  # [us]: cABA-OSIM, LTL and inverse
    "Iiwa - H3": (0.70, 0.63),
    "Iiwa - H6": (0.77, 0.81),
    "Solo - F3^2": (1.68, 1.57),
    "Solo - F3^4": (2.28, 2.48),
    "Talos - F6^2": (4.21, 6.42),
    "Talos - F6^2 H6^2": (4.95, 10.9),
    "Atlas SR - F6^2": (6.5, 12.1),
    "Atlas SR - F6^2 T3^5": (9.3, 21.2),
    "Atlas SR - F6^2 T3^10": (13.3, 35.9),
}
KEYS, COUNTS = ("system",), ()
TIMES = True


def run(scope: Scope) -> list[Row]:
    """Time cABA-OSIM and LTDL with a dense inverse, taking turns; there is nothing to count."""
    rows: list[Row] = []
    for system in systems(*PAPERS) if scope == "all" else ():
        robot = load(system.robot)
        q, axes = state(robot)[0], contact_inputs(robot, system.contacts)[0]
        kernels = {n: delassus_kernel(robot, system.contacts, n, MU) for n in ("cABA", "LTL")}
        inputs = {"cABA": (q, axes), "LTL": (q,)}
        calls = {
            name: partial(kernel.call, *inputs[name])
            for name, kernel in kernels.items()
            if kernel.instructions <= TIMED and kernel.compile()
        }
        taken = interleaved(calls, 0.002)
        row: Row = {"system": system.name, "freedoms": robot.ny}
        row["paper_freedoms"] = PAPER_FREEDOMS[system.robot]
        row |= {f"{name}_us": taken.get(name, "") for name in kernels}
        paper = PAPERS[system.name]
        rows.append(row | {"cABA_paper_us": paper[0], "LTL_paper_us": paper[1]})
    return rows


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    both = [r for r in rows if r["LTL_us"] != "" and r["cABA_us"] != ""]
    ours = {str(r["system"]): number(r, "LTL_us") / number(r, "cABA_us") for r in both}
    paper = {s: b / a for s, (a, b) in PAPERS.items()}
    larger = [s for s in ours if s.startswith(("Talos", "Atlas"))]
    smaller = [s for s in ours if s.startswith(("Iiwa", "Solo"))]
    metric = "time of LTL and inverse over cABA-OSIM"

    def shown(of: dict[str, float], names: list[str]) -> str:
        return ", ".join(f"{of[name]:.1f}" for name in names)

    return [
        Claim(
            "larger robots: cABA-OSIM is significantly faster than LTL",
            f"{shown(paper, larger)} ({'; '.join(larger)})",
            shown(ours, larger),
            metric,
            judge(all(ours[s] > 1.3 for s in larger)),
            "reproduced",
            "Talos has 38 freedoms here, 50 in the paper",
            "no",
        ),
        Claim(
            "smaller robots: LTL remains competitive",
            f"{shown(paper, smaller)} ({'; '.join(smaller)})",
            shown(ours, smaller),
            metric,
            judge(all(ours[s] < 1.25 for s in smaller)),
            "not",
            "with root-free LTDL it is so on the arm (panda, 8 freedoms, for Iiwa, 7), not on Solo."
            " The paper's LTL is vectorized by hand, and its cABA-OSIM works in the global frame,"
            " without the zeros of joint axes",
            "no",
        ),
    ]


TEXT = f"""Measured as Table II. The paper's column cABA is compared with our cABA-OSIM, its
column LTL-inv with LTDL factors of the mass matrix followed by a dense inverse. Robots:
{STAND_INS}. Programs of more than {TIMED:,} instructions are not timed. LTL on the larger systems
is such a program; Fig. 5 has its operations."""


def plot(rows: list[Row], path: Path) -> None:
    """Ratios to cABA-OSIM, ours and the paper's."""
    drawn, axes = figure(1, 1, (7, 3.4))
    rows = [r for r in rows if r["LTL_us"] != "" and r["cABA_us"] != ""]
    names = [str(r["system"]) for r in rows]
    series = {
        "ours": [number(r, "LTL_us") / number(r, "cABA_us") for r in rows],
        "paper": [number(r, "LTL_paper_us") / number(r, "cABA_paper_us") for r in rows],
    }
    bars(axes, names, series, "time of LTL and inverse over cABA-OSIM", turned=25)
    axes.axhline(1.0, color="black", lw=0.8)
    save(drawn, path)
