"""Times of the damped inverse of the Delassus matrix."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmark.papers.internals import contact_inputs, delassus_kernel
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.results import Claim, Result, Row, judge, number
from benchmark.papers.sathya2024_systems import load, state, systems
from benchmark.timing import interleaved

PAPER = "Sathya 2024"
TITLE = "Table III: times of the damped Delassus inverse"
MU, TIMED = 1e6, 50_000
PAPERS = {  # [us]: cABA-OSIMf, LTL and inverse
    "Iiwa - H3": (0.7, 0.63),
    "Iiwa - H6": (0.77, 0.81),
    "Solo - F3^2": (1.57, 1.57),
    "Solo - F3^4": (1.94, 2.48),
    "Talos - F6^2": (4.05, 6.42),
    "Talos - F6^2 H6^2": (4.57, 10.9),
    "Atlas SR - F6^2": (6.37, 12.1),
    "Atlas SR - F6^2 T3^5": (8.8, 21.2),
    "Atlas SR - F6^2 T3^10": (12.6, 35.9),
}


def run(quick: bool) -> Result:
    """Time cABA-OSIM and LTL with a dense inverse, taking turns; nothing of it is quick."""
    rows: list[Row] = []
    for system in [] if quick else systems(*PAPERS):
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
        row |= {f"{name}_us": taken.get(name, "") for name in kernels}
        paper = PAPERS[system.name]
        rows.append(row | {"cABA_paper_us": paper[0], "LTL_paper_us": paper[1]})
    return Result(rows, _claims(rows) if rows else [], text=TEXT)


def _claims(rows: list[Row]) -> list[Claim]:
    both = [r for r in rows if r["LTL_us"] != "" and r["cABA_us"] != ""]
    ours = {str(r["system"]): number(r, "LTL_us") / number(r, "cABA_us") for r in both}
    paper = {s: b / a for s, (a, b) in PAPERS.items()}
    talos = "Talos - F6^2 H6^2"
    return [
        Claim(
            "larger robots: LTL and inverse over cABA-OSIM, time",
            f"{paper[talos]:.1f} (Talos, 24 rows)",
            f"{ours[talos]:.1f} (Talos, 24 rows)",
            judge(False, ours[talos] > 1.3),
            "reproduced",
        ),
        Claim(
            "smaller robots: LTL remains competitive",
            f"{paper['Iiwa - H3']:.1f} and {paper['Solo - F3^2']:.1f} (Iiwa, Solo)",
            f"{ours['Iiwa - H3']:.1f} and {ours['Solo - F3^2']:.1f}",
            judge(False, ours["Iiwa - H3"] < 1.2 and ours["Solo - F3^2"] < 1.2),
            "not",
            "it is so in operations (Fig. 5), but its square roots and divisions take longer, and"
            " the paper's LTL is vectorized by hand",
        ),
    ]


TEXT = f"""As Table II. Programs of more than {TIMED:,} instructions are not timed, which leaves out
LTL on the larger systems: there only its operations are counted (Fig. 5)."""


def plot(result: Result, path: Path) -> None:
    """Ratios to cABA-OSIM, ours and the paper's."""
    drawn, axes = figure(1, 1, (7, 3.4))
    rows = [r for r in result.rows if r["LTL_us"] != "" and r["cABA_us"] != ""]
    names = [str(r["system"]) for r in rows]
    series = {
        "ours": [number(r, "LTL_us") / number(r, "cABA_us") for r in rows],
        "paper": [number(r, "LTL_paper_us") / number(r, "cABA_paper_us") for r in rows],
    }
    bars(axes, names, series, "time of LTL and inverse over cABA-OSIM")
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right", fontsize=8)
    axes.axhline(1.0, color="black", lw=0.8)
    save(drawn, path)
