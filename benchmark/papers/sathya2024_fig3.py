"""Constrained dynamics of chains and binary trees, by size: operations, and times."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmark.papers.internals import (
    ROUTES,
    contact_inputs,
    contact_instructions,
    contact_kernel,
)
from benchmark.papers.models import binary_tree, chain
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Row, Scope, exponent, judge, near, number
from benchmark.papers.sathya2024_systems import state
from benchmark.timing import interleaved
from rbda_ros import Contact, Robot, load_robot

PAPER = "Sathya 2024"
TITLE = "Fig. 3: chains and binary trees"
MU = 1e6
CHAINS, LEVELS = (10, 20, 40, 100), (1, 2, 3, 4, 5)
TIMED = 60_000
"""Instructions up to which a program is compiled and timed."""


KEYS, COUNTS = ("system", "links", "iterations"), tuple(ROUTES)
TIMES = True


def run(scope: Scope) -> list[Row]:
    """Count and time the four algorithms with one and three proximal iterations."""
    rows: list[Row] = []
    for links in () if scope == "day" else CHAINS:
        held = [Contact(f"l{links}", kind="weld")]
        rows += _rows("chain", load_robot(chain(links)), held, scope)
    for levels in LEVELS[:2] if scope == "day" else LEVELS:
        urdf, leaves = binary_tree(levels)
        rows += _rows("tree", load_robot(urdf), [Contact(leaf) for leaf in leaves], scope)
    return rows


def _rows(kind: str, robot: Robot, held: list[Contact], scope: Scope) -> list[Row]:
    rows: list[Row] = []
    inputs = (*state(robot), *contact_inputs(robot, held))
    for iterations in (1, 3):
        row: Row = {"system": kind, "links": robot.ny, "iterations": iterations}
        for name in ROUTES:
            long = iterations > 1 and name.startswith("LTL") and robot.ny > 45
            row[name] = "" if long else contact_instructions(robot, held, name, iterations, MU)
        row |= {f"{name}_us": "" for name in ROUTES}
        if scope == "all":
            calls = {}
            for name in (n for n in ROUTES if row[n] != "" and number(row, n) <= TIMED):
                kernel = contact_kernel(robot, held, name, iterations, MU)
                if kernel.compile():
                    calls[name] = partial(kernel.call, *inputs)
            row |= {f"{name}_us": value for name, value in interleaved(calls, 0.002).items()}
        rows.append(row)
    return rows


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""

    last = [r for r in rows if r["system"] == "chain"][-2:]
    one = number(last[0], "LTL") / number(last[0], "cABA")
    found = [
        Claim(
            "a chain of 100 links, one iteration: proxLTL over constrainedABA",
            "over 4, in time",
            f"{one:.1f}, in operations",
            "the paper's is time; the program of proxLTL has "
            f"{number(last[0], 'LTL'):,.0f} operations and is not compiled",
            "different metric",
            "different metric",
        ),
    ]
    timed = [r for r in rows if r["system"] == "chain" and r["PV_us"] != "" and r["cABA_us"] != ""]
    if timed:
        found += _scaling(rows)
        pairs = {int(number(r, "iterations")): number(r, "PV_us") / number(r, "cABA_us")
                 for r in timed}  # fmt: skip
        one_iteration, three = last
        links = number(one_iteration, "links")
        extra = (number(three, "cABA") - number(one_iteration, "cABA")) / 2 / links
        first = (number(one_iteration, "PV") - number(one_iteration, "cABA")) / links
        found.append(
            Claim(
                "three iterations: constrainedABA is nearly as expensive as proxPV",
                "nearly equal",
                f"{pairs[3]:.2f} ({pairs[1]:.2f} with one)",
                f"time of proxPV over constrainedABA, chain of {timed[-1]['links']} links",
                judge(near(pairs[3], 1.0, 0.15)),
                "not",
                f"an iteration more takes constrainedABA {extra:.0f} operations a link, and proxPV"
                f" takes {first:.0f} more in its first sweep, with six columns of unit forces",
                "no",
            )
        )
    return found


def _scaling(rows: list[Row]) -> list[Claim]:
    """Claims on how times grow with the number of links."""

    def growth(kind: str, key: str) -> float:
        of = [r for r in rows if (r["system"], r["iterations"]) == (kind, 1) and r[key] != ""][-3:]
        return exponent([number(r, "links") for r in of], [number(r, key) for r in of])

    chains, trees, counts = (
        {name: growth(kind, f"{name}{suffix}") for name in ROUTES}
        for kind, suffix in (("chain", "_us"), ("tree", "_us"), ("tree", ""))
    )
    of_chains = {name: growth("chain", name) for name in ROUTES}
    metric = (
        "exponent of time in the number of links, one iteration, over the three largest systems"
        " that are timed; in parentheses the exponent of operations, over the three largest of all"
    )

    def shown(times: dict[str, float], operations: dict[str, float], *names: str) -> str:
        return ", ".join(f"{n} {times[n]:.2f} ({operations[n]:.2f})" for n in names)

    return [
        Claim(
            "chains: constrainedABA and proxPV grow linearly, proxLTL and proxLTLs faster",
            "linear, linear, superlinear",
            shown(chains, of_chains, *ROUTES),
            metric,
            judge(max(chains["cABA"], chains["PV"]) < 1.2 < min(chains["LTL"], chains["LTLs"])),
            "reproduced",
            checked="no",
        ),
        Claim(
            "binary trees: constrainedABA scales linearly, proxPV and proxLTL poorly",
            "linear; cubic in constraints",
            shown(trees, counts, "cABA", "PV", "LTL"),
            metric,
            judge(trees["cABA"] < 1.2 < min(trees["PV"], trees["LTL"])),
            "reproduced",
            checked="no",
        ),
        Claim(
            "binary trees: proxLTLs is close to linear",
            "n log(n)^2",
            shown(trees, counts, "LTLs"),
            metric,
            judge(trees["LTLs"] < min(trees["PV"], trees["LTL"])),
            "reproduced",
            checked="no",
        ),
    ]


TEXT = f"""Chains with a weld at their end; trees of branches of three links that split in two,
with every leaf held at a point. Programs of more than {TIMED:,} operations are not timed, and long
programs of proxLTL and proxLTLs are counted with one iteration only. The paper times C++ loops;
here each algorithm is a straight-line program."""


def plot(rows: list[Row], path: Path) -> None:
    """Operations and times, chains and trees; solid one iteration, dashed three."""
    drawn, panels = figure(1, 4, (12, 3.2))
    for i, (kind, suffix) in enumerate(
        (kind, suffix) for kind in ("chain", "tree") for suffix in ("", "_us")
    ):
        for colour, name in zip(PALETTE, ROUTES, strict=False):
            for iterations, style in ((1, "o-"), (3, "o--")):
                of = [
                    r for r in rows
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
