"""How many operations a gear must cost forward dynamics."""

from __future__ import annotations

from lxml import etree

from benchmark.papers.data import read_rows
from benchmark.papers.models import robot_a, without_rotors
from benchmark.papers.reference import shared_robot
from benchmark.papers.results import Claim, Row, Scope, number
from rbda_ros import load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 12, continued: the cost of exact rotors"
KEYS, COUNTS = ("case",), ("instructions",)
NEEDS = "../shared/robots is absent"
JOINTS = ("knee", "hip", "abad")


def run(scope: Scope) -> list[Row]:
    """Count chains and mini_cheetah with and without some of their rotors; by night."""
    urdf = shared_robot("mini_cheetah")
    if scope == "day" or urdf is None:
        return []
    cases = {f"chain of {links}": robot_a(links) for links in (12, 18)}
    cases |= {f"chain of {n} without rotors": _remove(robot_a(n), "m") for n in (12, 18)}
    cases["mini_cheetah"] = urdf
    cases |= {f"mini_cheetah without {name} rotors": _remove(urdf, name, "rotor")
              for name in JOINTS}  # fmt: skip
    cases["mini_cheetah, approximate"] = without_rotors(urdf, reflected=True)
    return [
        {"case": case, "instructions": load_robot(text).kernel("forward_dynamics").instructions}
        for case, text in cases.items()
    ]


def claims(rows: list[Row]) -> list[Claim]:
    """None: those of Fig. 12 are its own."""
    return []


def text(rows: list[Row]) -> str:
    """The derivation, with the figures of this run and of Fig. 12's."""
    robots = {str(r["robot"]): r for r in read_rows("chignoli2024_fig12")}
    lines = [
        "| robot | rotors | forward dynamics, exact / approximate | a rotor | inverse dynamics |",
        "|---|---:|---|---:|---|",
    ]
    for name, row in robots.items():
        fd = f"{number(row, 'fd_exact'):,.0f} / {number(row, 'fd_approximate'):,.0f}"
        id_ = f"{number(row, 'id_exact'):,.0f} / {number(row, 'id_approximate'):,.0f}"
        lines.append(
            f"| {name} | {row['rotors']} | {fd} = {number(row, 'fd_price'):.2f} |"
            f" {number(row, 'fd_each_rotor'):.0f} | {id_} = {number(row, 'id_price'):.2f} |"
        )
    count = {str(row["case"]): number(row, "instructions") for row in rows}
    exact = count["chain of 18"] - count["chain of 12"]
    general = exact - count["chain of 18 without rotors"] + count["chain of 12 without rotors"]
    each = {j: count["mini_cheetah"] - count[f"mini_cheetah without {j} rotors"] for j in JOINTS}
    shown = ", ".join(f"{value / 4:.0f} at each {joint}" for joint, value in each.items())
    cheetah = f"\nmini_cheetah's gears add {shown}: knees are tips.\n"
    return PROOF.format(table="\n".join(lines), general=general / 6, cheetah=cheetah)


def _remove(urdf: str, start: str, ending: str = "") -> str:
    """The text without rotors whose links have both in their names, and what couples them."""
    root = etree.fromstring(urdf.encode())
    for element in list(root):
        names = [element.get("name")] if element.tag == "link" else []
        names += [e.get("link") for e in element if e.tag in ("child", "successor")]
        if any((start in n and ending in n) if ending else n.startswith(start) for n in names):
            root.remove(element)
    return etree.tostring(root).decode()


PROOF = """{table}

**Inverse dynamics.** A symmetric rotor with spin inertia I on body p turns about an axis z of p at
the rate w + n yd, where w = z' w_p and the link that it drives turns about a parallel axis at
w + yd. Its energy I (w + n yd)^2 / 2 is, identically in w and yd,

    n I (w + yd)^2 / 2  +  (1 - n) I w^2 / 2  +  n (n - 1) I yd^2 / 2 :

a spin inertia n I on the link, (1 - n) I on p, both constants of the model, and an armature
A = n (n - 1) I of the joint. The Lagrangian is the same function, so the dynamics are, gyroscopic
torques included (`cluster_tree/regroup.py`; a belt gives a constant armature matrix in the same
way). Exactness adds `A ydd` to the torque of inverse dynamics: two operations per gear. No
algorithm can avoid them, because the torque depends on A.

**Forward dynamics.** Let IA be the articulated inertia (6 x 6) of the link with its spin inertia,
s = z' IA z, U = IA z. The approximate robot has D = s and hands on Ia = IA - U U'/s, for which
Ia z = 0: 15 numbers. The exact one has D = s + A and

    Ia = IA - U U' / (s + A),    Ia z = (A / D) U,    z' Ia z = A s / D.

With A > 0 and IA regular, Ia is regular: `x' Ia x = 0` would need equality in Cauchy's inequality
`(x' IA z)^2 <= (x' IA x) s < (x' IA x) D`. So row z is not zero, and as the rank of a matrix does
not depend on frames, no frame makes a row vanish: 21 numbers go to the parent where 15 did. For a
link in the middle of a chain, with k components of its offset r that are not zero, they take

| step | operations |
|---|---:|
| D = s + A | 1 |
| row z of Ia, (A / D) U: a division and six products, one for each entry | 7 |
| turn about z: a pair of the angular, one of the coupling block, 4 products and 2 sums each | 12 |
| shift by r: two entries of the angular block, a product and a sum each, for every k | 4 k |
| add to the parent's: after the shift, the approximate robot has the same entries to add | 0 |
| force: z' pa = tau - A w with w = (u - U' c) / D; c has five entries, and without A no w | 12 |
| acceleration: one more entry of U' a, and of a | 2 |

in all 34 + 4 k: {general:.0f} by count for a chain with k = 1. The result
depends on each of these numbers. Within the recursion, in which a body passes an inertia and a
force in the parent's frame to its parent, none can be left out. Fewer operations suffice only where
numbers are zero by structure, as in a constant IA at the tips.
{cheetah}
**MIT Humanoid.** 14 gears as above, and two belts, each with two rotors on the thigh and a constant
armature matrix of knee and ankle that is not diagonal: n_2 (n_1 - 1) I couples them (n_1, n_2 the
turns of the rotor for one of knee and ankle). Both joints must then be solved together, as a
cluster of two bodies, where the approximate robot has two joints one after the other.

**JVRC-1.** 18 of its 25 rotors are not symmetric about their axes in the published file
(I_xx differs from I_yy about the joint axis). Such a rotor's energy depends on its angle: sine and
cosine of that angle, and an inertia that turns with them, cannot be left out.

**Tello.** Its differentials are no constant gears: G depends on the position, must be found by a
factorization at every call, and adds g to every acceleration. The wheels of our leg also have their
masses off their axes.
"""
