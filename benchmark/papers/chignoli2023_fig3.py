"""Forward dynamics of chains with geared motors (Robot A) and with belts (Robot B)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pinocchio as pin
import scipy.linalg

from benchmark.papers.models import robot_a, robot_b
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Result, Row, exponent, judge, number, straightness
from benchmark.timing import interleaved
from rbda_ros import Robot, load_robot

PAPER = "Chignoli 2023"
TITLE = "Fig. 3: forward dynamics of robots A and B"
SIZES, QUICK_SIZES = (6, 12, 18, 24, 36), (6, 12, 18)
"""Degrees of freedom."""


def run(quick: bool) -> Result:
    """Count, time beside two dense formulations, and check against them."""
    rows: list[Row] = []
    for size in QUICK_SIZES if quick else SIZES:
        text, loops = robot_b(size // 2)
        for name, robot in (
            ("A", load_robot(robot_a(size))),
            ("B", load_robot(text, loops)),
        ):
            urdf = robot_a(size) if name == "A" else text
            rows.append(_row(name, size, robot, urdf, quick))
    return Result(rows, _claims(rows, quick), text=TEXT)


def _row(name: str, size: int, robot: Robot, urdf: str, quick: bool) -> Row:
    kernel = robot.kernel("forward_dynamics")
    model = pin.buildModelFromXML(urdf)  # of the spanning tree: every joint free
    rng = np.random.default_rng(1)
    y, yd, tau = rng.normal(size=(3, robot.ny))
    q = robot.close(y)
    G = np.column_stack([robot.spanning_velocity(q, e) for e in np.eye(robot.ny)])
    order = [model.joints[model.getJointId(joint)].idx_v for joint in robot.joint_names]
    spanning, speed, G_tree = np.zeros(model.nv), np.zeros(model.nv), np.zeros((model.nv, robot.ny))
    spanning[order], speed[order], G_tree[order] = q, G @ yd, G
    data, zero = model.createData(), np.zeros(model.nv)
    force = np.zeros(model.nv)
    independent = [model.joints[model.getJointId(j)].idx_v for j in robot.independent_joint_names]
    force[independent] = tau
    K = scipy.linalg.null_space(G_tree.T).T  # K G = 0: the constraints, as rows
    kkt = np.zeros((model.nv + len(K), model.nv + len(K)))
    kkt[model.nv :, : model.nv], kkt[: model.nv, model.nv :] = K, K.T

    def augmented() -> np.ndarray:
        bias = pin.rnea(model, data, spanning, speed, zero)
        H = pin.crba(model, data, spanning)
        kkt[: model.nv, : model.nv] = np.triu(H) + np.triu(H, 1).T
        right = np.concatenate([force - bias, np.zeros(len(K))])
        return np.linalg.solve(kkt, right)[: model.nv]

    def projected() -> np.ndarray:
        bias = pin.rnea(model, data, spanning, speed, zero)
        H = pin.crba(model, data, spanning)
        full = np.triu(H) + np.triu(H, 1).T
        return G_tree @ np.linalg.solve(G_tree.T @ full @ G_tree, G_tree.T @ (force - bias))

    ours = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    scale = np.abs(ours).max()
    row: Row = {
        "robot": name, "freedoms": size, "instructions": kernel.instructions,
        "error_kkt": float(np.abs(augmented()[order] - ours).max() / scale),
        "error_projected": float(np.abs(projected()[order] - ours).max() / scale),
        "ours_us": "", "kkt_us": "", "projected_us": "",
    }  # fmt: skip
    if not quick:
        kernel.compile()
        calls = {"ours": partial(kernel.call, q, yd, tau)}
        taken = interleaved(calls | {"kkt": augmented, "projected": projected}, 0.002)
        row |= {f"{key}_us": value for key, value in taken.items()}
    return row


def _claims(rows: list[Row], quick: bool) -> list[Claim]:
    claims = []
    shown, straight = [], 0.0
    for name in "AB":
        of = [r for r in rows if r["robot"] == name]
        sizes, counts = ([number(r, key) for r in of] for key in ("freedoms", "instructions"))
        shown.append(f"{name} {exponent(sizes[1:], counts[1:]):.2f}")
        straight = max(straight, straightness(sizes, counts))
    claims.append(
        Claim(
            "C-ABA scales linearly with the degrees of freedom",
            "linear",
            f"exponents of operations {', '.join(shown)}; within {100 * straight:.1f} % of a line",
            judge(False, straight < 0.02),
            "reproduced",
        )
    )
    worst = max(max(number(r, "error_kkt"), number(r, "error_projected")) for r in rows)
    claims.append(
        Claim(
            "rotors and belts are exact: accelerations as those of the constrained bodies",
            "exact",
            f"{worst:.0e} relative to KKT and projected equations of Pinocchio's spanning tree",
            judge(False, worst < 1e-9),
            "reproduced",
        )
    )
    last = rows[-2:]
    if not quick:
        gains = [
            min(number(r, "kkt_us"), number(r, "projected_us")) / number(r, "ours_us") for r in last
        ]
        claims.append(
            Claim(
                "the gain over the state of the art is larger for Robot A than for Robot B",
                "larger",
                f"{gains[0]:.0f} and {gains[1]:.0f} times, {last[0]['freedoms']} freedoms",
                judge(False, gains[0] > gains[1]),
                "reproduced",
            )
        )
    each = [number(r, "instructions") / number(r, "freedoms") for r in last]
    claims.append(
        Claim(
            "Robot A is the cheaper one: its constraints are more local",
            "cheaper",
            f"{each[0]:.0f} and {each[1]:.0f} instructions a freedom",
            judge(False, each[0] < each[1]),
            "reproduced",
        )
    )
    return claims


TEXT = """Robot A is a chain of links, each with a motor of random ratio (Eq. 16); in Robot B two
motors drive two links, and the second one turns with both (Eq. 17). The rivals are dense: the KKT
system of all bodies, and the equations of motion projected with G, both from Pinocchio's terms of
the spanning tree, with numpy's solver. The paper's times are given as curves only."""


def plot(result: Result, path: Path) -> None:
    """Operations, and times beside the dense formulations."""
    drawn, panels = figure(1, 2, (8.5, 3.2))
    for colour, name in zip(PALETTE, "AB", strict=False):
        of = [r for r in result.rows if r["robot"] == name]
        sizes = [number(r, "freedoms") for r in of]
        values = [number(r, "instructions") for r in of]
        panels[0].plot(sizes, values, "o-", color=colour, label=f"robot {name}")
        for key, style in (("ours", "o-"), ("projected", "s:"), ("kkt", "^--")):
            values = [number(r, f"{key}_us") for r in of]
            label = f"{name}, {'C-ABA' if key == 'ours' else key}"
            panels[1].plot(sizes, values, style, color=colour, ms=3, label=label)
    panels[0].set(xlabel="degrees of freedom", ylabel="instructions of forward dynamics")
    panels[1].set(xlabel="degrees of freedom", ylabel="time a call [us]", yscale="log")
    panels[1].set(xscale="log")
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    save(drawn, path)
