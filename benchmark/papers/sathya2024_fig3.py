"""Constrained dynamics of chains and binary trees, by size: operations, and times."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmark.papers.internals import ROUTES, contact_inputs, contact_kernel
from benchmark.papers.models import binary_tree, chain
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Result, Row, exponent, judge, number
from benchmark.papers.sathya2024_systems import state
from benchmark.timing import interleaved
from rbda_ros import Contact, Robot, load_robot

PAPER = "Sathya 2024"
TITLE = "Fig. 3: chains and binary trees"
MU = 1e6
CHAINS, QUICK_CHAINS = (10, 20, 40, 70, 100), (10, 20, 40)
LEVELS, QUICK_LEVELS = (1, 2, 3, 4, 5), (1, 2, 3)
TIMED = 40_000
"""Instructions up to which a program is compiled and timed."""


def run(quick: bool) -> Result:
    """Count and time the three algorithms with one and three proximal iterations."""
    rows: list[Row] = []
    for links in QUICK_CHAINS if quick else CHAINS:
        held = [Contact(f"l{links}", kind="weld")]
        rows += _rows("chain", load_robot(chain(links)), held, quick)
    for levels in QUICK_LEVELS if quick else LEVELS:
        text, leaves = binary_tree(levels)
        rows += _rows("tree", load_robot(text), [Contact(leaf) for leaf in leaves], quick)
    return Result(rows, _claims(rows, quick), text=TEXT)


def _rows(kind: str, robot: Robot, held: list[Contact], quick: bool) -> list[Row]:
    rows: list[Row] = []
    inputs = (*state(robot), *contact_inputs(robot, held))
    for iterations in (1, 3):
        kernels = {name: contact_kernel(robot, held, name, iterations, MU) for name in ROUTES}
        row: Row = {"system": kind, "links": robot.ny, "iterations": iterations}
        row |= {name: kernel.instructions for name, kernel in kernels.items()}
        row |= {f"{name}_us": "" for name in ROUTES}
        if not quick:
            timed = {n: k for n, k in kernels.items() if k.instructions <= TIMED and k.compile()}
            taken = interleaved({n: partial(k.call, *inputs) for n, k in timed.items()}, 0.002)
            row |= {f"{name}_us": value for name, value in taken.items()}
        rows.append(row)
    return rows


def _claims(rows: list[Row], quick: bool) -> list[Claim]:
    def growth(kind: str, name: str) -> float:
        of = [r for r in rows if r["system"] == kind and r["iterations"] == 1][1:]
        return exponent([number(r, "links") for r in of], [number(r, name) for r in of])

    chains, trees = ({n: growth(kind, n) for n in ROUTES} for kind in ("chain", "tree"))
    last = [r for r in rows if r["system"] == "chain"][-2:]
    one = number(last[0], "LTL") / number(last[0], "cABA")
    of_pv = [number(last[i], "PV") / number(last[i], "cABA") for i in (0, 1)]
    shown = ", ".join(f"{name} {power:.2f}" for name, power in chains.items())
    claims = [
        Claim(
            "chains: constrainedABA and proxPV grow linearly, proxLTL faster",
            "linear, linear, superlinear",
            f"exponents of operations {shown}",
            judge(False, max(chains["cABA"], chains["PV"]) < 1.15 < chains["LTL"]),
            "reproduced",
        ),
        Claim(
            "the longest chain, one iteration: proxLTL over constrainedABA",
            "over 4 times in time (100 links)",
            f"{one:.1f} times in operations ({number(last[0], 'links'):.0f} links)"
            + _in_time(last[0]),
            judge(one > 4.0, one > 1.5),
            "better",
        ),
        Claim(
            "three iterations: constrainedABA nearly as expensive as proxPV",
            "nearly equal",
            f"proxPV over constrainedABA {of_pv[0]:.2f} with one iteration, {of_pv[1]:.2f} with"
            " three, in operations" + _in_time(last[1], "PV"),
            judge(1.1 < of_pv[1] < of_pv[0], 0.8 < of_pv[1] < of_pv[0]),
            "better",
        ),
        Claim(
            "binary trees: constrainedABA scales linearly, proxPV and proxLTL poorly",
            "linear; cubic in constraints",
            "exponents of operations "
            + ", ".join(f"{name} {power:.2f}" for name, power in trees.items()),
            judge(False, trees["cABA"] < 1.2 < min(trees["PV"], trees["LTL"])),
            "reproduced",
        ),
    ]
    return claims


def _in_time(row: Row, other: str = "LTL") -> str:
    if row[f"{other}_us"] == "" or row["cABA_us"] == "":
        return ""
    return f", {number(row, f'{other}_us') / number(row, 'cABA_us'):.1f} times in time"


TEXT = f"""Chains with a weld at their end; trees of branches of three links that split in two,
with every leaf held at a point. Programs of more than {TIMED:,} instructions are not timed. The
paper times C++ loops that grow with the robot; ours are straight lines, so operations and times
go together. proxLTLs is not implemented here."""


def plot(result: Result, path: Path) -> None:
    """Operations and times, chains and trees; solid one iteration, dashed three."""
    drawn, panels = figure(1, 4, (12, 3.2))
    for i, (kind, suffix) in enumerate(
        (kind, suffix) for kind in ("chain", "tree") for suffix in ("", "_us")
    ):
        for colour, name in zip(PALETTE, ROUTES, strict=False):
            for iterations, style in ((1, "o-"), (3, "o--")):
                of = [
                    r for r in result.rows
                    if r["system"] == kind and r["iterations"] == iterations
                    and r[f"{name}{suffix}"] != ""
                ]  # fmt: skip
                label = f"{name}, {iterations}"
                links = [number(r, "links") for r in of]
                values = [number(r, f"{name}{suffix}") for r in of]
                panels[i].plot(links, values, style, color=colour, label=label, ms=3, lw=1.2)
        what = "time a call [us]" if suffix else "operations"
        panels[i].set(xscale="log", yscale="log", xlabel="links", ylabel=what)
        panels[i].set_title(f"{kind}s", fontsize=9)
        panels[i].grid(alpha=0.3)
    panels[0].legend(fontsize=6, title="algorithm, iterations", title_fontsize=6)
    save(drawn, path)
