"""Orders of the operational-space algorithms: exponents in depth and in the number of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmark.papers.internals import (
    contact_instructions,
    osim_instructions,
    product_instructions,
)
from benchmark.papers.models import chain, many_legs
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Row, Scope, exponent, judge, number
from rbda_ros import Contact, Robot, load_robot

PAPER = "Sathya 2024"
TITLE = "Secs. I, II-D and VI: orders of the algorithms"
MU = 1e6
KEYS, COUNTS = ("family", "algorithm", "links", "rows"), ("operations",)
OSIM = ("PV-OSIMr", "EFPA", "LTL-OSIM")
DEPTHS, DEEP = (15, 30, 60), 36
"""Links of chains, each with so many rows at the tip."""
POINTS, SHALLOW = (6, 12, 24, 48), 15
"""Points at the tip of a chain of so many links, three rows each."""
ALONG = (15, 24, 33, 42)
"""Links of chains with a point on every link; evenly spaced, and multiples of the three axes."""
LEGS = (4, 8, 16, 32)
"""Legs of a floating body, each with a point at its foot."""


def run(scope: Scope) -> list[Row]:
    """Count every family; four legs by day."""
    none, few = (slice(0, 0), slice(0, 1)) if scope == "day" else (slice(None), slice(None))
    rows: list[Row] = []
    for links in DEPTHS[none]:
        rows += _osim("depth", links, [_tip(links, i) for i in range(DEEP // 3)])
    for points in POINTS[none]:
        rows += _osim("rows", SHALLOW, [_tip(SHALLOW, i) for i in range(points)])
    for links in ALONG[none]:
        rows += _osim("along", links, [Contact(f"l{i}") for i in range(1, links + 1)])
    for legs in LEGS[few]:
        urdf, feet = many_legs(legs)
        robot, held = load_robot(urdf, floating_base=True), [Contact(foot) for foot in feet]
        counts = {name: osim_instructions(robot, held, name) for name in OSIM}
        counts["J H^-1 J' f"] = product_instructions(robot, held)
        counts["cABA-OSIMf"] = product_instructions(robot, held, MU)
        for name, route in (("proxLTLs", "LTLs"), ("proxLTL", "LTL"), ("constrainedABA", "cABA")):
            counts[name] = contact_instructions(robot, held, route, 3, MU)
        rows += _rows("legs", robot, held, counts)
    return rows


def _tip(links: int, i: int) -> Contact:
    return Contact(f"l{links}", (0.1 * i, 0.2, 0.3))


def _osim(family: str, links: int, points: list[Contact]) -> list[Row]:
    robot = load_robot(chain(links))
    return _rows(family, robot, points, {n: osim_instructions(robot, points, n) for n in OSIM})


def _rows(family: str, robot: Robot, points: list[Contact], counts: dict[str, int]) -> list[Row]:
    size = {"links": len(robot.tree.spanning.bodies), "rows": 3 * len(points)}
    return [
        {"family": family, "algorithm": name} | size | {"operations": count}
        for name, count in counts.items()
    ]


def _power(rows: list[Row], family: str, algorithm: str) -> float:
    """Exponent over the last two sizes of a family, in links for chains that grow, else in rows."""
    of = [r for r in rows if (r["family"], r["algorithm"]) == (family, algorithm)][-2:]
    size = "links" if family == "depth" else "rows"
    return exponent([number(r, size) for r in of], [number(r, "operations") for r in of])


def _curvature(rows: list[Row], algorithm: str) -> float:
    """Ratio of successive second differences along chains with a point on every link."""
    of = [r for r in rows if (r["family"], r["algorithm"]) == ("along", algorithm)]
    second = np.diff([number(r, "operations") for r in of], 2)
    return float(second[-1] / second[0])


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    found = []
    for name, order in (("EFPA", "O(n + m d + m^2)"), ("PV-OSIMr", "O(n + m^2)")):
        depth, tip = (_power(rows, family, name) for family in ("depth", "rows"))
        bend = _curvature(rows, name)
        found.append(
            Claim(
                f"{name} computes the inverse OSIM in {order}",
                order,
                f"{depth:.2f} in depth, {tip:.2f} in rows; {bend:.2f}",
                "exponents of operations: chain with 36 rows at its tip; 72 to 144 rows at the tip"
                " of 15 links. Then, of chains with a point on every link, the ratio of second"
                " differences: 1 for a square",
                judge(depth <= 1.05 and tip <= 2.05 and abs(bend - 1.0) < 0.05),
                "reproduced",
            )
        )
    for name, order, most in (
        ("cABA-OSIMf", "O(m) beside O(n)", 1.05),
        ("proxLTLs", "O(n d^2 + m d)", 1.05),
    ):
        power = _power(rows, "legs", name)
        found.append(
            Claim(
                f"{name} is linear in the number of limbs held",
                order,
                f"{power:.2f}",
                "exponent of operations in rows, 16 to 32 legs",
                judge(power <= most),
                "reproduced",
            )
        )
    power = _power(rows, "legs", "proxLTL")
    found.append(
        Claim(
            "proxLTL is cubic in the number of rows",
            "O(m^3)",
            f"{power:.2f}",
            "exponent of operations in rows, 16 to 32 legs",
            judge(power > 2.0),
            "reproduced",
            "rising to 3 as the dense factorization of the Delassus matrix takes over",
        )
    )
    return found


def text(rows: list[Row]) -> str:
    """How it was done, with all exponents."""
    families = "depth", "rows", "along", "legs"
    names = list(dict.fromkeys(str(r["algorithm"]) for r in rows))
    lines = [TEXT, "", "| algorithm | " + " | ".join(families) + " |", "|---|---:|---:|---:|---:|"]
    for name in names:
        cells = []
        for family in families:
            if not any((r["family"], r["algorithm"]) == (family, name) for r in rows):
                cells.append("")
                continue
            found = _curvature(rows, name) if family == "along" else _power(rows, family, name)
            cells.append(f"{found:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


TEXT = f"""Exponents of operations over the last two sizes of each family. *depth*: chains of
{DEPTHS} links with {DEEP} rows at the tip. *rows*: {POINTS} points, three rows each, at the tip of
a chain of {SHALLOW} links. *along*: a point on each of {ALONG} links; in place of the exponent, the
ratio of second differences, which is 1 for a square and 1.4 for a cube. *legs*: a floating body on
{LEGS} legs of three joints, held at their feet. `J H^-1 J' f` is `Robot.delassus_product`,
cABA-OSIMf `Robot.damped_delassus_inverse_product`."""


def plot(rows: list[Row], path: Path) -> None:
    """A panel a family."""
    drawn, panels = figure(1, 4, (12, 3.2))
    for panel, family in zip(panels, ("depth", "rows", "along", "legs"), strict=True):
        size = "links" if family == "depth" else "rows"
        names = dict.fromkeys(str(r["algorithm"]) for r in rows if r["family"] == family)
        for i, name in enumerate(names):
            of = [r for r in rows if (r["family"], r["algorithm"]) == (family, name)]
            points = [number(r, size) for r in of], [number(r, "operations") for r in of]
            panel.plot(*points, "o-", color=PALETTE[i % len(PALETTE)], ms=3, lw=1, label=name)
        panel.set(xscale="log", yscale="log", xlabel=size, title=family)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=6)
    panels[0].set_ylabel("operations")
    save(drawn, path)
