"""Torque errors of the unconstrained and the approximate model of the MIT Humanoid's leg."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree

from benchmark.papers.models import spin_inertia, without_rotors
from benchmark.papers.plots import figure, save
from benchmark.papers.reference import shared_robot
from benchmark.papers.results import Claim, Row, Scope, judge, near, number
from rbda_ros import load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 13: torques of the MIT Humanoid's leg"

JOINT = "hipy_to_knee_link"
AMPLITUDE, FREQUENCY = 0.5, 1.5  # A [rad], omega [1/s] of the figure's caption
DURATION, STEP = 1.0, 1e-3  # [s]; the paper gives neither
PAPERS = {"unconstrained": (4.31, 39.2), "approximate": (1.04, 9.5)}  # RMS [N m], % of maximum
WITHIN = 0.02
KEYS, COUNTS = ("t",), ()
NEEDS = "../shared/robots/mit_humanoid_leg.urdf is absent"


def run(scope: Scope) -> list[Row]:
    """Swing every joint of the leg like a sine and evaluate the three models."""
    text = shared_robot("mit_humanoid_leg")
    if text is None:
        return []
    leg, chain = load_robot(text), load_robot(without_rotors(text, reflected=False))
    names = leg.independent_joint_names
    assert names == chain.joint_names
    t = np.arange(0.0, DURATION + STEP / 2, STEP)
    phase = 2.0 * np.pi * FREQUENCY
    y, yd, ydd = (
        AMPLITUDE * rate[:, None] * np.ones(len(names))
        for rate in (np.sin(phase * t), phase * np.cos(phase * t), -(phase**2) * np.sin(phase * t))
    )
    exact = leg.inverse_dynamics(leg.close(y), yd, ydd)
    alone = chain.inverse_dynamics(y, yd, ydd)
    reflected = np.array([_reflected(text)[name] for name in names])
    j = names.index(JOINT)
    torques = {
        "exact": exact[:, j],
        "unconstrained": alone[:, j],
        "approximate": (alone + reflected * ydd)[:, j],
    }
    return [
        {"t": float(t[i])} | {name: float(tau[i]) for name, tau in torques.items()}
        for i in range(len(t))
    ]


def _errors(rows: list[Row], model: str) -> tuple[float, float, float]:
    """Root mean square of a model's error, over a second and over one period, and the maximum."""
    exact, other = (np.array([number(r, key) for r in rows]) for key in ("exact", model))
    period = round(1.0 / FREQUENCY / STEP)
    missed = other - exact
    whole, part = (float(np.sqrt(np.mean(x**2))) for x in (missed, missed[:period]))
    return whole, part, float(np.abs(exact).max())


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    found = []
    for model, (rms, percent) in PAPERS.items():
        ours, _, largest = _errors(rows, model)
        share = 100.0 * ours / largest
        found.append(
            Claim(
                f"{model} model against the exact one",
                f"{rms} N m, {percent} %",
                f"{ours:.2f} N m, {share:.1f} %",
                "root mean square of the torque error, and its share of the largest torque",
                judge(near(ours, rms, WITHIN) and near(share, percent, WITHIN)),
                "reproduced",
                "the paper does not give duration and step; ours are 1 s and 1 ms",
                "day",
            )
        )
    return found


def text(rows: list[Row]) -> str:
    """How it was done."""
    of = [_errors(rows, model) for model in PAPERS]
    period = [f"{part:.2f}" for _, part, _ in of]
    shares = [f"{100.0 * part / largest:.1f}" for _, part, largest in of]
    return TEXT.format(*period, *shares)


def _reflected(urdf: str) -> dict[str, float]:
    """Diagonal of G' I_rotor G by joint [kg m^2]."""
    root = etree.fromstring(urdf.encode())
    child = {j.find("child").get("link"): j for j in root.findall("joint")}
    links = {element.get("name"): element for element in root.findall("link")}
    total = {j.get("name"): 0.0 for j in child.values()}
    for gear in root.findall("coupling"):
        rotor, name = gear.find("successor").get("link"), gear.find("predecessor").get("link")
        added = float(gear.find("ratio").get("value")) ** 2 * spin_inertia(
            links[rotor], child[rotor]
        )
        while name != child[rotor].find("parent").get("link"):
            total[child[name].get("name")] += added
            name = child[name].find("parent").get("link")
    return total


TEXT = f"""All five joints follow 0.5 sin(2 pi 1.5 t) rad for one second, in steps of 1 ms. The
paper calls the joint the ankle; its numbers are those of the coordinate `{JOINT}` of the
published leg, whose torque moves the knee link with both rotors of the belt. Over one whole
period the errors are {{}} N m and {{}} N m, {{}} % and {{}} % of the maximum."""


def plot(rows: list[Row], path: Path) -> None:
    """Torques, and what the two simpler models miss."""
    drawn, panels = figure(1, 2, (9, 3.2))
    t = [number(r, "t") for r in rows]
    for model, style in (("exact", "-"), ("approximate", "--"), ("unconstrained", ":")):
        panels[0].plot(t, [number(r, model) for r in rows], style, label=model)
        if model != "exact":
            missed = [number(r, model) - number(r, "exact") for r in rows]
            panels[1].plot(t, missed, style, label=model, color=f"C{1 + (style == ':')}")
    panels[0].set(title=JOINT, xlabel="time [s]", ylabel="torque [N m]")
    panels[1].set(title="error", xlabel="time [s]", ylabel="torque [N m]")
    for (model, (rms, _)), colour in zip(PAPERS.items(), ("C2", "C1"), strict=True):
        for sign in (1, -1):
            panels[1].axhline(
                sign * rms, color=colour, lw=0.8, alpha=0.6,
                label=f"paper's RMS, {model}" if sign > 0 else None,
            )  # fmt: skip
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    save(drawn, path)
