"""Times of constrained forward dynamics with three proximal iterations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmark.calls import _vectors
from benchmark.papers.internals import ROUTES, contact_inputs, contact_kernel
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.results import Claim, Result, Row, judge, number
from benchmark.papers.sathya2024_systems import System, load, state, systems
from benchmark.robots import example_urdf
from benchmark.timing import interleaved

PAPER = "Sathya 2024"
TITLE = "Table II: times of constrained dynamics"
MU, ITERATIONS = 1e6, 3
TIMED = 70_000
"""Instructions up to which a program is compiled and timed."""
PAPERS = {  # [us]: cABA, PV, LTL
    "Iiwa - H3": (0.97, 0.95, 1.51),
    "Iiwa - H6": (1.02, 1.33, 2.0),
    "Solo - F3^2": (1.81, 2.11, 3.08),
    "Solo - F3^3": (2.25, 2.84, 4.06),
    "Talos - F6^2": (5.02, 6.27, 10.2),
    "Talos - F6^2 H6^2": (6.21, 8.84, 14.5),
    "Atlas SR - F6^2": (7.90, 9.56, 17.7),
    "Atlas SR - F6^2 T3^5": (9.95, 14.0, 26.5),
    "Atlas SR - F6^2 T3^10": (11.7, 20.8, 36.8),
}


def run(quick: bool) -> Result:
    """Time the three algorithms and Pinocchio's two, taking turns; nothing of it is quick."""
    rows: list[Row] = []
    for system in [] if quick else systems(*PAPERS):
        robot = load(system.robot)
        inputs = (*state(robot), *contact_inputs(robot, system.contacts))
        kernels = {n: contact_kernel(robot, system.contacts, n, ITERATIONS, MU) for n in ROUTES}
        calls = {
            name: partial(kernel.call, *inputs)
            for name, kernel in kernels.items()
            if kernel.instructions <= TIMED and kernel.compile()
        }
        taken = interleaved(calls | _pinocchio(system), 0.002)
        row: Row = {"system": system.name, "freedoms": robot.ny}
        for name in (*ROUTES, "pin_constraintDynamics", "pin_lcaba"):
            row[f"{name}_us"] = taken.get(name, "")
        for name, paper in zip(ROUTES, PAPERS[system.name], strict=True):
            row[f"{name}_paper_us"] = paper
        rows.append(row)
    return Result(rows, _claims(rows) if rows else [], text=TEXT)


def _pinocchio(system: System) -> dict:
    """Calls of Pinocchio's proximal algorithms, where it reads the same file."""
    if system.robot == "humanoid_with_hands":
        from benchmark.papers.models import humanoid_with_hands

        urdf = humanoid_with_hands()
    else:
        urdf = example_urdf(system.robot)
    root = () if system.robot == "panda" else (pin.JointModelFreeFlyer(),)
    model = pin.buildModelFromXML(urdf, *root)
    kinds = {"weld": pin.ContactType.CONTACT_6D, "point": pin.ContactType.CONTACT_3D}
    held = []
    for contact in system.contacts:
        frame = model.frames[model.getFrameId(contact.link, pin.FrameType.BODY)]
        kind = kinds[contact.kind]
        held.append(pin.RigidConstraintModel(kind, model, frame.parentJoint, frame.placement))
    settings = pin.ProximalSettings(1e-12, 1.0 / MU, ITERATIONS)
    rng = np.random.default_rng(0)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.0, 1.0, model.nv))
    v, tau = rng.normal(size=(2, model.nv))
    data, (models, datas) = model.createData(), _vectors(held)
    pin.initConstraintDynamics(model, data, models, datas)
    other = model.createData()
    pin.computeJointMinimalOrdering(model, other, models)
    of = models, datas, settings
    return {
        "pin_constraintDynamics": partial(pin.constraintDynamics, model, data, q, v, tau, *of),
        "pin_lcaba": partial(pin.lcaba, model, other, q, v, tau, *of),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def ratios(other: str, suffix: str = "_us") -> dict[str, float]:
        return {
            str(r["system"]): number(r, f"{other}{suffix}") / number(r, f"cABA{suffix}")
            for r in rows
            if r[f"{other}{suffix}"] != ""
        }

    ours, paper = ratios("LTL"), ratios("LTL", "_paper_us")
    of_pv, pv_paper = ratios("PV"), ratios("PV", "_paper_us")
    first = [name for name, x in of_pv.items() if min(x, ours.get(name, x)) > 1.0]
    peers = {name: ratios(name) for name in ("pin_constraintDynamics", "pin_lcaba")}
    return [
        Claim(
            "constrainedABA is the fastest, but for the smallest arm",
            "8 of 9 systems (proxLTLs beside it)",
            f"{len(first)} of {len(of_pv)} systems that are timed",
            judge(False, len(first) >= len(of_pv) - 1),
            "reproduced",
        ),
        Claim(
            "proxLTL over constrainedABA, time",
            f"{min(paper.values()):.1f} to {max(paper.values()):.1f}",
            f"{min(ours.values()):.1f} to {max(ours.values()):.1f}",
            judge(False, max(ours.values()) > 1.5),
            "reproduced",
        ),
        Claim(
            "proxPV over constrainedABA, time",
            f"{min(pv_paper.values()):.1f} to {max(pv_paper.values()):.1f}",
            f"{min(of_pv.values()):.1f} to {max(of_pv.values()):.1f}",
            judge(False, max(of_pv.values()) > 1.3),
            "reproduced",
        ),
        Claim(
            "constrainedABA beside Pinocchio's own implementations, called from Python",
            "1",
            "; ".join(
                f"{name.removeprefix('pin_')} {min(x.values()):.1f} to {max(x.values()):.1f} times"
                for name, x in peers.items()
            ),
            judge(all(min(x.values()) > 1.0 for x in peers.values())),
            "better",
        ),
    ]


TEXT = f"""Thread-CPU medians of calls from Python that take turns on a busy machine: ratios count,
not microseconds. panda stands for Iiwa, a tree of 84 freedoms for Atlas with two Shadow hands.
Programs of more than {TIMED:,} instructions are not timed. The paper lists Atlas SR - F6^2 T3^5
twice; its first row is taken for F6^2."""


def plot(result: Result, path: Path) -> None:
    """Ratios to constrainedABA, ours and the paper's."""
    drawn, panels = figure(1, 2, (10, 3.4))
    names = [str(r["system"]) for r in result.rows]
    for panel, other in zip(panels, ("PV", "LTL"), strict=True):
        series = {
            "ours": [
                number(r, f"{other}_us") / number(r, "cABA_us") if r[f"{other}_us"] != "" else 0.0
                for r in result.rows
            ],
            "paper": [
                number(r, f"{other}_paper_us") / number(r, "cABA_paper_us") for r in result.rows
            ],
        }
        bars(panel, names, series, f"time of prox{other} over constrainedABA")
        panel.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
        panel.axhline(1.0, color="black", lw=0.8)
    save(drawn, path)
