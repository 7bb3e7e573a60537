"""Operations of the damped inverse of the Delassus matrix."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.internals import ROUTES, delassus_kernel
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Result, Row, judge, number
from benchmark.papers.sathya2024_systems import QUICK, load, systems

PAPER = "Sathya 2024"
TITLE = "Fig. 5: operations of the damped Delassus inverse"
MU = 1e6


def run(quick: bool) -> Result:
    """Count cABA-OSIM, and propagators or factors followed by a dense inverse."""
    rows: list[Row] = []
    for system in systems(*(QUICK if quick else ())):
        robot = load(system.robot)
        counts = {
            name: delassus_kernel(robot, system.contacts, name, MU).instructions for name in ROUTES
        }
        rows.append({"system": system.name, "robot": system.robot, "freedoms": robot.ny} | counts)
    return Result(rows, _claims(rows), text=TEXT)


def _claims(rows: list[Row]) -> list[Claim]:
    most = [r["system"] for r in rows if number(r, "LTL") >= max(number(r, k) for k in ROUTES)]
    atlas = [r for r in rows if str(r["system"]).startswith("Atlas")]
    of = {
        key: [number(r, key) / number(atlas[0], key) for r in atlas]
        for key in ("cABA", "PV", "LTL")
    }
    grows = {key: values[-1] for key, values in of.items()}
    gain = number(atlas[-1], "PV") / number(atlas[-1], "cABA")
    return [
        Claim(
            "LTL-OSIM is in general the most expensive",
            "in general",
            f"{len(most)} of {len(rows)} systems; not on the arm",
            judge(False, len(most) >= len(rows) - 2),
            "reproduced",
        ),
        Claim(
            "more constraints: PV-OSIM scales poorly beside cABA-OSIM",
            "cubic",
            f"from 12 rows to the most: PV {grows['PV']:.1f} times, cABA {grows['cABA']:.1f} times",
            judge(False, grows["cABA"] < grows["PV"]),
            "reproduced",
        ),
        Claim(
            "more constraints: LTL-OSIM scales poorly beside cABA-OSIM",
            "cubic",
            f"from 12 rows to the most: LTL {grows['LTL']:.2f} times, cABA"
            f" {grows['cABA']:.2f} times",
            judge(False, grows["cABA"] < grows["LTL"]),
            "not",
            "with 84 freedoms the factor of the mass matrix, which does not grow with constraints,"
            " is most of LTL's work; it takes more than cABA-OSIM throughout",
        ),
        Claim(
            "cABA-OSIM takes fewer operations than PV-OSIM where constraints are many",
            "fewer",
            f"{gain:.1f} times fewer ({atlas[-1]['system']})",
            judge(False, gain > 1.0),
            "reproduced",
        ),
    ]


TEXT = """``(J H^-1 J' + I/mu)^-1``. Ours is cABA-OSIM with what its paper calls the f variant:
branches meet at a floating base. PV is our force-propagator OSIM and a dense inverse of it, LTL the
sparse factor of the mass matrix and the same."""


def plot(result: Result, path: Path) -> None:
    """Bars a system, on a log scale."""
    drawn, axes = figure(1, 1, (9, 3.6))
    names = [str(row["system"]) for row in result.rows]
    for i, route in enumerate(ROUTES):
        places = [j + 0.27 * (i - 1) for j in range(len(names))]
        label = {"cABA": "cABA-OSIM", "PV": "PV-OSIM", "LTL": "LTL-OSIM"}[route]
        values = [number(row, route) for row in result.rows]
        axes.bar(places, values, 0.27, color=PALETTE[i], label=label)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.set(yscale="log", ylabel="operations")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)
    save(drawn, path)
