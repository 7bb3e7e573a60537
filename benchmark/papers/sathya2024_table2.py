"""Times of constrained forward dynamics with three proximal iterations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmark.calls import _vectors
from benchmark.papers.internals import ROUTES, contact_inputs, contact_kernel
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.results import Claim, Row, Scope, Verdict, judge, near, number
from benchmark.papers.sathya2024_systems import (
    PAPER_FREEDOMS,
    STAND_INS,
    System,
    load,
    state,
    systems,
)
from benchmark.robots import example_urdf
from benchmark.timing import interleaved

PAPER = "Sathya 2024"
TITLE = "Table II: times of constrained dynamics"
MU, ITERATIONS = 1e6, 3
TIMED = 70_000
"""Instructions up to which a program is compiled and timed."""
PAPERS = {  # [us]: cABA, PV, LTLs, LTL
    "Iiwa - H3": (0.97, 0.95, 0.99, 1.51),
    "Iiwa - H6": (1.02, 1.33, 1.0, 2.0),
    "Solo - F3^2": (1.81, 2.11, 2.06, 3.08),
    "Solo - F3^3": (2.25, 2.84, 2.27, 4.06),
    "Talos - F6^2": (5.02, 6.27, 7.14, 10.2),
    "Talos - F6^2 H6^2": (6.21, 8.84, 7.57, 14.5),
    "Atlas SR - F6^2": (7.90, 9.56, 13.4, 17.7),
    "Atlas SR - F6^2 T3^5": (9.95, 14.0, 14.7, 26.5),
    "Atlas SR - F6^2 T3^10": (11.7, 20.8, 15.0, 36.8),
}
KEYS, COUNTS = ("system",), ()
TIMES = True


def run(scope: Scope) -> list[Row]:
    """Time the four algorithms and Pinocchio's two, taking turns; there is nothing to count."""
    rows: list[Row] = []
    for system in systems(*PAPERS) if scope == "all" else ():
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
        row["paper_freedoms"] = PAPER_FREEDOMS[system.robot]
        for name in (*ROUTES, "pin_constraintDynamics", "pin_lcaba"):
            row[f"{name}_us"] = taken.get(name, "")
        for name, paper in zip(ROUTES, PAPERS[system.name], strict=True):
            row[f"{name}_paper_us"] = paper
        rows.append(row)
    return rows


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


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""

    def ratios(other: str, suffix: str = "_us") -> dict[str, float]:
        return {
            str(r["system"]): number(r, f"{other}{suffix}") / number(r, f"cABA{suffix}")
            for r in rows
            if r[f"{other}{suffix}"] != ""
        }

    ours = {name: ratios(name) for name in ROUTES if name != "cABA"}
    first = [r["system"] for r in rows if min(of.get(str(r["system"]), 9.9)
                                              for of in ours.values()) > 1.0]  # fmt: skip
    found = [
        Claim(
            "constrainedABA is the fastest of the four, but for the arm",
            "7 of 9 systems",
            f"{len(first)} of {len(rows)} systems",
            f"systems on which it takes the least time; programs of up to {TIMED:,} instructions",
            judge(len(first) >= 7),
            "reproduced",
            "panda (8 freedoms) for Iiwa (7), Talos 38 freedoms for 50",
            "no",
        )
    ]
    expected: dict[str, Verdict] = {"PV": "not", "LTLs": "not", "LTL": "not"}
    for other, own in ours.items():
        paper = {s: x for s, x in ratios(other, "_paper_us").items() if s in own}
        ends = [(min(x.values()), max(x.values())) for x in (paper, own)]
        lower, upper = (
            near(own_end, end, WITHIN) for own_end, end in zip(*ends[::-1], strict=True)
        )
        missed = [f"{name} end" for name, met in (("lower", lower), ("upper", upper)) if not met]
        found.append(
            Claim(
                f"prox{other} over constrainedABA",
                f"{ends[0][0]:.1f} to {ends[0][1]:.1f}",
                f"{ends[1][0]:.1f} to {ends[1][1]:.1f}",
                f"time, three iterations, the same {len(own)} systems",
                judge(lower and upper),
                expected[other],
                WHY[other].format(" and ".join(missed)) if missed else "",
                "no",
            )
        )
    peers = {name: ratios(name) for name in ("pin_constraintDynamics", "pin_lcaba")}
    found.append(
        Claim(
            "Pinocchio's own implementations",
            "1 (Pinocchio is the paper's code)",
            "; ".join(
                f"`{name.removeprefix('pin_')}` {min(x.values()):.1f} to {max(x.values()):.1f}"
                for name, x in peers.items()
            ),
            "time of a call from Python over that of our constrainedABA, the same machine",
            judge(False, all(min(x.values()) > 1.0 for x in peers.values())),
            "better",
            "",
            "no",
        )
    )
    return found


WITHIN = 0.25
"""Share of the paper's ratio by which both ends of a range may differ."""
WHY = {
    "PV": "more than 25 % off at the {}: proxPV's dense part is a straight line here, which grows"
    " with the cube of the rows",
    "LTLs": "more than 25 % off at the {}: the paper's LTL is vectorized by hand, ours is a"
    " straight line that grows with the square of the depth",
    "LTL": "more than 25 % off at the {}: on the arm, our LTL takes fewer operations than"
    " constrainedABA (Fig. 1)",
}


TEXT = f"""Thread-CPU medians of calls from Python that take turns: ratios count, not microseconds.
Robots: {STAND_INS}. Programs of more than {TIMED:,} instructions are not timed. The paper lists
Atlas SR - F6^2 T3^5 twice; its first row is taken for F6^2."""


def plot(rows: list[Row], path: Path) -> None:
    """Ratios to constrainedABA, ours and the paper's."""
    drawn, panels = figure(1, 3, (12, 3.4))
    names = [str(r["system"]) for r in rows]
    for panel, other in zip(panels, ("PV", "LTLs", "LTL"), strict=True):
        series = {
            "ours": [
                number(r, f"{other}_us") / number(r, "cABA_us") if r[f"{other}_us"] != "" else 0.0
                for r in rows
            ],
            "paper": [number(r, f"{other}_paper_us") / number(r, "cABA_paper_us") for r in rows],
        }
        bars(panel, names, series, f"time of prox{other} over constrainedABA", turned=35)
        panel.axhline(1.0, color="black", lw=0.8)
    save(drawn, path)
