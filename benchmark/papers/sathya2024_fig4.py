"""How far proximal iterations converge on redundant constraints of Talos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmark.papers.internals import ROUTES, contact_inputs, contact_kernel
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Row, Scope, judge, number
from benchmark.papers.sathya2024_systems import HANDS, SOLES, load
from rbda_ros import Contact, Robot

PAPER = "Sathya 2024"
TITLE = "Fig. 4: convergence on redundant constraints"
CONTACTS = [*SOLES, HANDS[0], Contact("arm_left_4_link"), Contact("arm_left_5_link")]
MU = 1e6
ITERATIONS = 10


KEYS, COUNTS = ("algorithm", "iteration", "states"), ()


def run(scope: Scope) -> list[Row]:
    """Residuals after each iteration, over random states; nothing of it by day."""
    rows: list[Row] = []
    if scope == "day":
        return rows
    robot = load("talos_full_v2")
    states, most = (100, 4) if scope == "night" else (1000, ITERATIONS)
    q, yd, tau = _states(robot, states)
    fixed = contact_inputs(robot, CONTACTS)
    axes, desired, start = (np.tile(x, (states, 1)) for x in fixed)
    for name in ROUTES:
        for count in range(1, most + 1):
            kernel = contact_kernel(robot, CONTACTS, name, count, MU, compiled=False)
            ydd, _, _, health = kernel.batch(q, yd, tau, axes, desired, start)
            residual = health[:, 0] / np.maximum(1.0, np.abs(ydd).max(axis=1))
            quartiles = np.percentile(residual, (0, 25, 50, 75, 100))
            names = ("least", "quartile_1", "median", "quartile_3", "largest")
            row: Row = {"algorithm": name, "iteration": count, "states": states}
            rows.append(row | dict(zip(names, map(float, quartiles), strict=True)))
    return rows


def _states(robot: Robot, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random positions and forces, at rest: redundant rows then agree."""
    rng = np.random.default_rng(0)
    home = robot.tree.home
    q = [robot.tree.integrate(home, rng.uniform(-1.0, 1.0, robot.nv)) for _ in range(count)]
    return np.array(q), np.zeros((count, robot.ny)), rng.normal(size=(count, robot.ny))


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""

    def at(name: str, iteration: int) -> float:
        return next(
            number(r, "median")
            for r in rows
            if r["algorithm"] == name and r["iteration"] == iteration
        )

    last = max(int(number(r, "iteration")) for r in rows)
    ends = {name: at(name, last) for name in ROUTES}
    primal, dual = max(ends["cABA"], ends["LTLs"]), min(ends["PV"], ends["LTL"])
    metric = "median of the largest residual over the largest acceleration"
    return [
        Claim(
            "proximal iterations converge in about three, in most cases",
            "three",
            f"{at('cABA', 1):.0e} after one, {at('cABA', 3):.0e} after three,"
            f" {at('cABA', last):.0e} after {last}",
            metric + ", constrainedABA",
            judge(at("cABA", 3) < 1e-12),
            "reproduced",
        ),
        Claim(
            "constrainedABA and proxLTLs converge to smaller errors than proxPV and proxLTL",
            "smaller",
            ", ".join(f"{name} {value:.0e}" for name, value in ends.items()),
            metric + f" after {last} iterations",
            judge(primal < dual),
            "reproduced",
            "all four are at rounding",
        ),
    ]


TEXT = f"""Talos welded at both soles and one hand, with two points of the same arm held as well:
24 rows on an arm that cannot move (38 freedoms; 50 in the paper). mu = {MU:g}. The residual is the
part of the wanted accelerations that the rows miss."""


def plot(rows: list[Row], path: Path) -> None:
    """Median and range by iteration."""
    drawn, axes = figure(1, 1, (6.5, 3.4))
    for i, name in enumerate(ROUTES):
        of = [r for r in rows if r["algorithm"] == name]
        steps = [number(r, "iteration") + 0.12 * (i - 1) for r in of]
        median = np.array([number(r, "median") for r in of])
        spread = [
            median - [number(r, "quartile_1") for r in of],
            np.array([number(r, "quartile_3") for r in of]) - median,
        ]
        axes.errorbar(steps, median, spread, fmt="o-", color=PALETTE[i], ms=3, lw=1, label=name)
        axes.plot(steps, [number(r, "largest") for r in of], "_", color=PALETTE[i])
    axes.set(yscale="log", xlabel="proximal iterations", ylabel="relative residual")
    axes.legend(fontsize=8, title="median, quartiles, largest", title_fontsize=8)
    axes.grid(alpha=0.3)
    save(drawn, path)
