"""Geared motors, a wishbone, and the equivalence of augmented and embedded formulations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmark.papers.models import geared_motor, wishbone
from benchmark.papers.plots import PALETTE, figure, save
from benchmark.papers.results import Claim, Row, Scope, judge, number
from rbda_ros import Robot, load_robot

PAPER = "Jain 2009"
TITLE = "Eqs. 12 to 20: geared motor, wishbone, and both formulations"
STATES = 50
KEYS, COUNTS = ("mechanism", "state"), ()
STEP = 1e-4  # [s] of the finite difference that gives K-dot qd


def run(scope: Scope) -> list[Row]:
    """Both mechanisms at random states."""
    rows: list[Row] = []
    for name, (text, loops) in {"geared motor": geared_motor(), "wishbone": wishbone()}.items():
        robot = load_robot(text, loops)
        rows += [_row(name, robot, pin.buildModelFromXML(text), i) for i in range(STATES)]
    return rows


def _row(name: str, robot: Robot, model: pin.Model, seed: int) -> Row:
    rng = np.random.default_rng(seed)
    y = rng.uniform(-0.4, 0.4, robot.ny)
    yd, tau = rng.normal(size=(2, robot.ny))
    q = robot.close(y)
    qd = robot.spanning_velocity(q, yd)
    G = np.column_stack([robot.spanning_velocity(q, e) for e in np.eye(robot.ny)])
    order = [model.joints[model.getJointId(joint)].idx_v for joint in robot.joint_names]
    K = _rows(name, robot, model, order, q)

    # Augmented (KKT) on the spanning tree: H qdd - K' f = tau - C, K qdd = -K-dot qd.
    data, tq, tqd = model.createData(), np.zeros(model.nq), np.zeros(model.nv)
    tq[order], tqd[order] = q, qd
    C = pin.rnea(model, data, tq, tqd, np.zeros(model.nv))[order]
    H = pin.crba(model, data, tq)
    H = (np.triu(H) + np.triu(H, 1).T)[np.ix_(order, order)]
    ahead, behind = (_rows(name, robot, model, order, q + s * STEP * qd) for s in (1, -1))
    rate = (ahead - behind) / (2 * STEP) @ qd
    force = np.zeros(robot.nv)
    force[[robot.joint_names.index(j) for j in robot.independent_joint_names]] = tau
    count = len(K)
    kkt = np.block([[H, -K.T], [K, np.zeros((count, count))]])
    augmented = np.linalg.solve(kkt, np.concatenate([force - C, -rate]))[: robot.nv]

    # Embedded: the recursion, and the independent-velocity map from Y (19), (20).
    embedded = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    chosen = [robot.joint_names.index(j) for j in robot.independent_joint_names]
    others = [i for i in range(robot.nv) if i not in chosen]
    X = np.zeros((robot.nv, robot.ny))
    X[chosen] = np.eye(robot.ny)
    X[others] = -np.linalg.solve(K[:, others], K[:, chosen])
    scale = np.abs(augmented).max()
    return {
        "mechanism": name, "state": seed,
        "loops": float(np.abs(K @ qd).max()),
        "map_error": float(np.abs(X - G).max() / np.abs(G).max()),
        "acceleration_error": float(np.abs(embedded - augmented).max() / scale),
        "mass_error": float(
            np.abs(robot.mass_matrix(q) - G.T @ H @ G).max() / np.abs(robot.mass_matrix(q)).max()
        ),
    }  # fmt: skip


def _rows(name: str, robot: Robot, model: pin.Model, order: list[int], q: np.ndarray) -> np.ndarray:
    """Y of (19) on the spanning velocities: the gear's, or of the pin from Pinocchio's frames."""
    names = list(robot.joint_names)
    if name == "geared motor":
        Y = np.zeros((1, robot.nv))
        Y[0, names.index("motor")], Y[0, names.index("arm")] = 1.0, -9.0
        return Y
    data, tq = model.createData(), np.zeros(model.nq)
    tq[order] = q
    pin.computeJointJacobians(model, data, tq)
    ends = []
    for joint, xyz in (("b", (0.3, 0.0, 0.0)), ("c", (0.0, 0.3, 0.0))):
        at, offset = model.getJointId(joint), pin.SE3(np.eye(3), np.array(xyz))
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pin.getJointJacobian(model, data, at, world)
        arm = data.oMi[at].rotation @ offset.translation
        ends.append(J[:3] - pin.skew(arm) @ J[3:])
    carrier = data.oMi[model.getJointId("carrier")].rotation  # the plane of the wishbone
    return (carrier.T @ (ends[0] - ends[1]))[:2][:, order]


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""

    def worst(key: str, name: str) -> float:
        return max(number(r, key) for r in rows if r["mechanism"] == name)

    names = ("geared motor", "wishbone")
    limits = {"geared motor": 1e-11, "wishbone": 1e-6}
    found = [
        Claim(
            f"{name}: the aggregate link replaces the bodies exactly",
            "exact",
            f"accelerations {worst('acceleration_error', name):.0e}, mass matrix"
            f" {worst('mass_error', name):.0e}",
            "relative difference from the augmented equations, 50 states",
            judge(
                worst("acceleration_error", name) < limits[name]
                and worst("mass_error", name) < 1e-11
            ),
            "reproduced",
            ""
            if name == "geared motor"
            else f"the augmented side differentiates K by steps of {STEP:g} s",
            "day",
        )
        for name in names
    ]
    mapped = max(worst("map_error", name) for name in names)
    found.append(
        Claim(
            "the independent-velocity map is [-Y_1^-1 Y_2; 1] (Eqs. 19, 20)",
            "equal",
            f"{mapped:.0e}",
            "relative difference, both mechanisms",
            judge(mapped < 1e-10),
            "reproduced",
            "",
            "day",
        )
    )
    return found


TEXT = """Fifty random states of each. The augmented equations have every joint of the spanning tree
and a multiplier for every loop row; their terms come from Pinocchio and the rows Y of (19) are
written by hand. The embedded ones are our recursion."""


def plot(rows: list[Row], path: Path) -> None:
    """Errors of accelerations, state by state."""
    drawn, axes = figure(1, 1, (6, 3.0))
    for colour, name in zip(PALETTE, ("geared motor", "wishbone"), strict=False):
        of = [r for r in rows if r["mechanism"] == name]
        for key, marker in (("acceleration_error", "o"), ("mass_error", "x")):
            values = [max(number(r, key), 1e-17) for r in of]
            label = f"{name}, {key.removesuffix('_error').replace('mass', 'mass matrix')}"
            axes.plot([number(r, "state") for r in of], values, marker, color=colour, ms=4,
                      label=label)  # fmt: skip
    axes.set(yscale="log", xlabel="state", ylabel="embedded against augmented")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    save(drawn, path)
