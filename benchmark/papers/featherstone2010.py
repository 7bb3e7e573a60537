"""RNEA, CRBA, ABA, Jacobians and inverse kinematics on random trees with helical joints."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmark.papers.internals import Article
from benchmark.papers.models import random_tree
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.results import Claim, Row, Scope, judge, number
from rbda_ros import Robot, load_robot

PAPER = "Featherstone 2010"
TITLE = "Figs. 1 and 6: dynamics and inverse kinematics of random trees"
SIZES = (3, 6, 12, 24)
TREES = 4
"""Random trees of each size."""
NAMES = {"inverse_dynamics": "RNEA", "mass_matrix": "CRBA", "forward_dynamics": "ABA"}
KEYS = ("bodies", "seed")
COUNTS = tuple(f"{name}_{whose}" for name in NAMES.values() for whose in ("ours", "article"))


def run(scope: Scope) -> list[Row]:
    """Ours beside the article's own functions: values, and instructions of both traces."""
    rows: list[Row] = []
    for bodies in SIZES[:2] if scope == "day" else SIZES:
        for seed in range(TREES):
            text, loops = random_tree(bodies, seed)
            rows.append(_row(load_robot(text, loops), bodies, seed))
    return rows


def _row(robot: Robot, bodies: int, seed: int) -> Row:
    article = Article(robot)
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, bodies))
    tau = article.value("inverse_dynamics", q, qd, qdd)
    answers = {
        "inverse_dynamics": (robot.inverse_dynamics(q, qd, qdd), tau),
        "mass_matrix": (robot.mass_matrix(q), article.value("mass_matrix", q)),
        "forward_dynamics": (robot.forward_dynamics(q, qd, tau), qdd),
    }
    row: Row = {"bodies": bodies, "seed": seed}
    for kernel, name in NAMES.items():
        ours, theirs = answers[kernel]
        row[f"{name}_error"] = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        row[f"{name}_ours"] = robot.kernel(kernel).instructions
        row[f"{name}_article"] = article.instructions(kernel)
    tip = f"l{bodies}"
    row["jacobian_error"] = _jacobian_error(robot, tip, q)
    reached = robot.inverse_kinematics(tip, robot.frame_pose(q, tip), guess=q + 0.2 * qd)
    missed = robot.frame_pose(reached.q, tip) - robot.frame_pose(q, tip)
    row["ik_iterations"] = reached.iterations
    row["ik_error"] = float(np.abs(missed).max())
    return row


def _jacobian_error(robot: Robot, link: str, q: np.ndarray) -> float:
    """Linear rows of the Jacobian against central differences, at their accuracy."""
    step, J = 1e-6, robot.jacobian(q, link)[:3]
    ends = [
        (robot.frame_pose(q + d, link)[:3, 3] - robot.frame_pose(q - d, link)[:3, 3]) / (2 * step)
        for d in step * np.eye(len(q))
    ]
    return float(np.abs(np.array(ends).T - J).max())


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    worst = max(number(r, f"{name}_error") for r in rows for name in NAMES.values())
    jacobian = max(number(r, "jacobian_error") for r in rows)
    missed, iterations = (
        max(number(r, key) for r in rows) for key in ("ik_error", "ik_iterations")
    )
    largest = [r for r in rows if r["bodies"] == max(number(x, "bodies") for x in rows)]
    ratios = {
        name: float(np.mean([number(r, f"{name}_ours") / number(r, f"{name}_article")
                             for r in largest]))
        for name in NAMES.values()
    }  # fmt: skip
    return [
        Claim(
            "RNEA, CRBA and ABA, for trees of revolute, prismatic and helical joints",
            "exact",
            f"{worst:.0e}",
            f"relative difference from the article's own functions, {len(rows)} random trees",
            judge(worst < 1e-10),
            "reproduced",
        ),
        Claim(
            "body Jacobians by the same recursion",
            "exact",
            f"{jacobian:.0e} m",
            "difference from central differences",
            judge(jacobian < 1e-7),
            "reproduced",
        ),
        Claim(
            "iterative inverse kinematics reaches a target that is near",
            "to 1e-10 if it converges",
            f"{missed:.0e} in at most {iterations:.0f} iterations",
            "error of the pose (m, or entries of a rotation)",
            judge(missed < 1e-7),
            "reproduced",
            "ours stops at 1e-8, is damped, and stays within joint limits",
        ),
        Claim(
            "operations of the algorithms, against the article's functions traced as they are",
            "1 (the article itself)",
            ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
            "operations over the article's, trees of 24 bodies",
            judge(False, max(ratios.values()) < 1.0),
            "better",
            "the article writes 6 x 6 products for the reader; zeros are dropped from both",
        ),
    ]


TEXT = """The article gives no table of operation counts: its Table 1 is the arithmetic itself. So
its MATLAB functions ID, HandC and FDab are written out in CasADi line by line (`internals.Article`)
and traced like ours. A third of the joints each is revolute, prismatic and helical; parents, axes,
frames, pitches and inertias are random."""


def plot(rows: list[Row], path: Path) -> None:
    """Operations of the largest trees, and errors of all."""
    drawn, panels = figure(1, 2, (8.5, 3.2))
    sizes = sorted({int(number(r, "bodies")) for r in rows})
    last = [r for r in rows if r["bodies"] == sizes[-1]]
    names = list(NAMES.values())
    series = {
        label: [float(np.mean([number(r, f"{n}_{key}") for r in last])) for n in names]
        for label, key in (("article, traced", "article"), ("ours", "ours"))
    }
    bars(panels[0], names, series, f"operations, trees of {sizes[-1]} bodies")
    for name in (*names, "ik"):
        points = [(number(r, "bodies"), max(number(r, f"{name}_error"), 1e-17)) for r in rows]
        panels[1].plot(*zip(*points, strict=True), "o", ms=4, alpha=0.7, label=name)
    panels[1].set(yscale="log", xlabel="bodies", ylabel="error")
    panels[1].legend(fontsize=7)
    panels[1].grid(alpha=0.3)
    save(drawn, path)
