"""Robots that other people made, beside oracles that are not ours: the tables of docs/robots.md.

``PYTHONPATH=.:test python test/other_robots.py mujoco_menagerie=PATH ...`` takes repositories and
where they lie. For each robot it prints sizes, the processor's seconds that loading took, and the
largest error of all joint accelerations at its assembly and at random states around it, as a share
of the largest acceleration. The oracle is a dense solve: over MuJoCo's own terms for MJCF, over
Pinocchio's spanning tree with constraints written a second time for URDFs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbda_ros import ModelError, Robot, load_robot

AWAY = (0.0, 0.05, 0.05, 0.2)
"""How far the fastest joint goes from the assembly in each state [rad, m]."""
GEPETTO = "example-parallel-robots"
FRAGMENTS = ("assets", "scene")
"""Words in the paths of files that are no robots."""
ALSO = ("unitree_g1/g1.xml",)
"""Robots that are looked at though they have no equality."""


def models(repository: str, folder: Path) -> Iterator[tuple[str, Path, Path | None]]:
    """Name, model and loop file of every robot that has loops, or couples its joints."""
    if repository == GEPETTO:
        for loops in sorted(folder.glob("robots/*/robot.yaml")):
            yield loops.parent.name, next(loops.parent.glob("*.urdf")), loops
        return
    for model in sorted(folder.rglob("*.xml")):
        name = model.relative_to(folder).as_posix()
        text = model.read_text(errors="replace").lower()
        robot = "<worldbody" in text and not any(word in name for word in FRAGMENTS)
        if robot and ("equality" in text or name in ALSO):  # or of a file that it includes
            yield name, model, None


def error(robot: Robot, model: Path, away: float, seed: int) -> float:
    """Share by which our accelerations differ from the dense solve, at a random state."""
    rng = np.random.default_rng(seed)
    q = robot.tree.home
    if away:
        way = robot.spanning_velocity(q, rng.normal(size=robot.ny))
        q = robot.tree.integrate(q, away / np.abs(way).max() * way)
        q = robot.close(q, q) if robot.tree.has_loops else q
    yd, tau = rng.normal(size=robot.ny), rng.normal(size=robot.nv)
    qd = robot.spanning_velocity(q, yd)
    oracle: Any
    if model.suffix == ".urdf":
        from loop_oracle import LoopOracle

        oracle = LoopOracle(robot)
        expected = oracle.forward_dynamics(q, qd, tau)
    else:
        from mujoco_oracle import MujocoOracle

        from rbda_ros.description.mjcf_compiler import compile_mjcf
        from rbda_ros.description.report import Report

        oracle = MujocoOracle(compile_mjcf(model, str(model), Report()), robot)
        P = oracle.velocity_map(q)
        tau = P.T @ (P @ tau)  # none along tendons, which MuJoCo has no coordinates for
        expected = oracle.accelerations(q, qd, tau)
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    if model.suffix != ".urdf":
        qdd = oracle.ours(q, qd, qdd)
    return float(np.abs(qdd - expected).max() / max(1.0, np.abs(expected).max()))


def row(name: str, model: Path, loops: Path | None) -> str:
    """A line of the table; what refuses a robot instead of its error."""
    start = time.process_time()
    try:
        robot = load_robot(model, loops)
    except ModelError as refusal:
        return f"| {name} | refused: {' '.join(str(refusal).split())[:400]} |"
    took = time.process_time() - start
    errors = []
    for seed, away in enumerate(AWAY):
        try:
            errors.append(f"{error(robot, model, away, seed):.0e}")
        except ModelError as refusal:
            errors.append(f"{type(refusal).__name__}: {' '.join(str(refusal).split())[:120]}")
    sizes = f"{robot.nv} / {robot.ny} | {len(robot.clusters)} | {took:.1f}"
    return f"| {name} | {sizes} | {', '.join(errors)} |"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        repository, _, path = argument.partition("=")
        for robot in models(repository, Path(path)):
            print(row(*robot), flush=True)
