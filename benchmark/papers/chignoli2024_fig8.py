"""Instructions of forward dynamics by depth and branches, for three sub-mechanisms."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.internals import sparse_instructions
from benchmark.papers.models import belt_branches, four_bar_branches, geared_branches
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.reference import ABSENT, library_counts, pinocchio_counts
from benchmark.papers.results import Claim, Row, Scope, judge, number, straightness
from rbda_ros import load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 8: depth and branches, three sub-mechanisms"

MECHANISMS = {  # family of the library's counts: our generator, deepest tree
    "revolute_rotor": (geared_branches, 10),
    "rotor_pair": (belt_branches, 7),
    "four_bar": (four_bar_branches, 7),
}
NAMES = {
    "revolute_rotor": "link and rotor",
    "rotor_pair": "parallel belt transmission",
    "four_bar": "four-bar mechanism",
}
BRANCHES = (1, 2, 4, 6)
STRAIGHT = 0.01
SPARSE = 2
"""Branches up to which the sparse competitor is counted: it grows with the cube of the loops."""
KEYS, COUNTS = ("mechanism", "branches", "depth"), ("ours", "sparse", "ours_id")
NEEDS = ABSENT


def run(scope: Scope) -> list[Row]:
    """Count ours and the sparse competitor; the other counts are published with the library."""
    published = library_counts()
    rows: list[Row] = []
    for family, (generate, deepest) in MECHANISMS.items():
        for branches in BRANCHES[:1] if scope == "day" else BRANCHES:
            for depth in range(1, 2 if scope == "day" else deepest + 1):
                theirs = published.get((family, f"{branches}_{depth}"))
                if theirs is None:
                    continue
                urdf = generate(branches, depth)
                robot = load_robot(urdf)
                dense = pinocchio_counts().get(f"{family} {branches}_{depth}")
                rows.append(
                    {
                        "mechanism": family, "branches": branches, "depth": depth,
                        "ours": robot.kernel("forward_dynamics").instructions,
                        "sparse": sparse_instructions(urdf) if branches <= SPARSE else "",
                        "pinocchio_dense": dense["pin_forwardDynamics_KKT"] if dense else "",
                        "library": theirs["fd_indTau_ydd"],
                        "library_spanning": theirs["fd_spanTau_qddSpan"],
                        "ours_id": robot.kernel("inverse_dynamics").instructions,
                        "library_id": theirs["id_ind"],
                    }
                )  # fmt: skip
    return rows


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    worst = 0.0
    for family in MECHANISMS:
        for branches in {row["branches"] for row in rows}:
            of = [r for r in rows if r["mechanism"] == family and r["branches"] == branches]
            depths, counts = ([number(r, key) for r in of] for key in ("depth", "ours"))
            worst = max(worst, straightness(depths, counts))
    ratios = [number(r, "ours") / number(r, "library") for r in rows]
    ratios_id = [number(r, "ours_id") / number(r, "library_id") for r in rows]
    sparse, dense = _gains(rows, "sparse"), _gains(rows, "pinocchio_dense")
    found = [
        Claim(
            "the cost of constraint-embedding ABA is linear in the number of clusters",
            "linear",
            f"within {100 * worst:.2f} % of a line",
            "instructions of forward dynamics by depth",
            judge(worst < STRAIGHT),
            "reproduced",
        )
    ]
    for competitor, gains in (
        ("`constraintDynamics` (proximal and sparse, our trace of its algorithm)", sparse),
        ("`forwardDynamics` (dense, Pinocchio's own count)", dense),
    ):
        rising = all(g == sorted(g) for g in gains.values())
        shown = ", ".join(f"{g[0]:.1f} to {g[-1]:.1f}" for g in gains.values())
        found.append(
            Claim(
                f"the deeper the tree, the more instructions {competitor} takes over embedding",
                "rises with depth",
                f"{shown} (rotor, belt, four-bar)",
                "instructions over ours, one branch, shallowest to deepest tree",
                judge(rising and all(g[0] < g[-1] for g in gains.values())),
                "reproduced",
            )
        )
    of_library = "instructions over the library's, same inputs and outputs"
    found.append(
        Claim(
            "forward dynamics of each system of the figure",
            "1 (the library itself)",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            of_library,
            judge(False, max(ratios) < 1.0),
            "better",
            "inertia is regrouped, rotors are armatures, planar systems stay planar",
        )
    )
    found.append(
        Claim(
            "inverse dynamics of the same systems",
            "1 (the library itself)",
            f"{min(ratios_id):.2f} to {max(ratios_id):.2f}",
            of_library,
            judge(False, max(ratios_id) < 1.0),
            "better",
        )
    )
    return found


def _gains(rows: list[Row], competitor: str) -> dict[object, list[float]]:
    """A competitor's instructions over ours by mechanism, from the shallowest tree on."""
    gains: dict[object, list[float]] = {}
    for row in rows:
        if row[competitor] != "" and row["branches"] == 1:
            gain = number(row, competitor) / number(row, "ours")
            gains.setdefault(row["mechanism"], []).append(gain)
    return gains


def text(rows: list[Row]) -> str:
    """How it was done."""
    more = max(number(r, "library_spanning") / number(r, "library") for r in rows) - 1.0
    return f"""Systems as in Fig. 9, generated by `models.py` with the sizes of the published
URDFs. Ours takes spanning positions, independent velocities and forces, and returns independent
accelerations; the library's count beside it is of the same function. The paper's figure is of
spanning forces and accelerations, which take up to {100 * more:.1f} % more (`library_spanning`).

The paper has two competitors, both of Pinocchio. `forwardDynamics` factors the mass matrix and a
dense Delassus matrix of all loop rows; its counts are Pinocchio's own, for the few sizes that
the reference data have (`pinocchio_dense`). `constraintDynamics` is the "Proximal and Sparse"
method. The wheels of Pinocchio cannot be traced with CasADi, so `sparse` is our trace of that
algorithm (`prox_ltl` with every loop open, two iterations), for up to {SPARSE} branches."""


def plot(rows: list[Row], path: Path) -> None:
    """A panel a mechanism, a colour a number of branches."""
    drawn, panels = figure(1, 3, (10, 3.4))
    for panel, family in zip(panels, MECHANISMS, strict=True):
        for colour, branches in zip(PALETTE, BRANCHES, strict=False):
            key = [r for r in rows if r["mechanism"] == family and r["branches"] == branches]
            depths = [r["depth"] for r in key]
            panel.plot(
                depths, [r["ours"] for r in key], color=colour, label=f"branches: {branches}"
            )
            panel.plot(depths, [r["library"] for r in key], "o", color=colour, ms=3, mfc="none")
        for competitor, style in (("pinocchio_dense", "x"), ("sparse", "+:")):
            counted = [r for r in rows if r["mechanism"] == family and r[competitor] != ""]
            for colour, branches in zip(PALETTE, BRANCHES, strict=False):
                of = [r for r in counted if r["branches"] == branches]
                depths, counts = [r["depth"] for r in of], [r[competitor] for r in of]
                panel.plot(depths, counts, style, color=colour, ms=4, lw=0.8)
        panel.set(title=NAMES[family], xlabel="depth of the cluster tree", yscale="log")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("instructions of forward dynamics")
    panels[0].plot([], [], "o", color="0.3", ms=3, mfc="none", label="library")
    panels[0].plot([], [], "x", color="0.3", ms=4, label="Pinocchio forwardDynamics")
    panels[0].plot([], [], "+:", color="0.3", ms=4, label="proximal and sparse")
    panels[0].legend(fontsize=7)
    save(drawn, path)
