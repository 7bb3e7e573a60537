"""Cost of exact rotors and belts: forward dynamics exactly, and of the approximate robot."""

from __future__ import annotations

from pathlib import Path

from benchmark.papers.models import without_rotors
from benchmark.papers.plots import bars, figure, save
from benchmark.papers.reference import library_counts, shared_robot
from benchmark.papers.results import Claim, Row, Scope, judge, number
from benchmark.papers.tello import tello_leg
from rbda_ros import Robot, load_robot

PAPER = "Chignoli 2024"
TITLE = "Fig. 12: exact against approximate dynamics, four robots"

SHORTER = {"mini_cheetah": 38.8, "mit_humanoid": 49.4, "tello": 55.1, "jvrc1_humanoid": 31.5}
"""By how many percent the paper's approximate ABA is shorter than the exact one (Sec. VI-C)."""
KEYS = ("robot",)
COUNTS = ("rotors", "fd_exact", "fd_approximate", "id_exact", "id_approximate")
NEEDS = "../shared/robots is absent"


def run(scope: Scope) -> list[Row]:
    """Count both of each robot that is there."""
    rows: list[Row] = []
    for name in ("mini_cheetah",) if scope == "day" else SHORTER:
        if name == "tello":
            exact, approximate = tello_leg()
            rows.append(_row("tello_leg", exact, approximate, {}))
        elif (urdf := shared_robot(name)) is not None:
            theirs = library_counts().get(("robot", name), {})
            approximate = load_robot(without_rotors(urdf, reflected=True))
            rows.append(_row(name, load_robot(urdf), approximate, theirs))
    return rows


def _row(name: str, exact: Robot, approximate: Robot, theirs: dict[str, int]) -> Row:
    row: Row = {"robot": name, "rotors": len(exact.joint_names) - len(approximate.joint_names)}
    short = {"forward_dynamics": "fd", "inverse_dynamics": "id"}
    for kernel, key in short.items():
        row[f"{key}_exact"] = exact.kernel(kernel).instructions
        row[f"{key}_approximate"] = approximate.kernel(kernel).instructions
        row[f"{key}_price"] = number(row, f"{key}_exact") / number(row, f"{key}_approximate")
    row["fd_each_rotor"] = (number(row, "fd_exact") - number(row, "fd_approximate")) / number(
        row, "rotors"
    )
    row["fd_library"] = theirs.get("fd_indTau_ydd", "")
    row["id_library"] = theirs.get("id_ind", "")
    row["fd_library_approximate"] = theirs.get("approx_fd", "")
    return row


def claims(rows: list[Row]) -> list[Claim]:
    """Judge the rows."""
    found = []
    for row in rows:
        name = str(row["robot"])
        percent = SHORTER[name.removesuffix("_leg")]
        price, paper = number(row, "fd_price"), 1.0 / (1.0 - percent / 100.0)
        other = name == "tello_leg"  # not the paper's robot
        found.append(
            Claim(
                f"{name}: exact forward dynamics over approximate",
                f"{paper:.2f} (approximate {percent} % less)",
                f"{price:.2f} (approximate {100 * (1 - 1 / price):.1f} % less)",
                "instructions, exact over approximate",
                "different metric" if other else judge(False, price < paper),
                "different metric" if other else "better",
                WHY.get(name, ""),
                "day" if name == "mini_cheetah" else "night",
            )
        )
    counted = [r for r in rows if r["fd_library"] != ""]
    pairs = [
        number(r, f"{key}_exact") / number(r, f"{key}_library")
        for r in counted
        for key in ("fd", "id")
    ]
    prices = [number(r, "fd_price") for r in rows]
    found.append(
        Claim(
            "the approximate algorithm takes the fewest instructions",
            "fewest",
            f"exact over approximate {min(prices):.2f} to {max(prices):.2f}",
            "instructions, exact over approximate, each robot",
            judge(min(prices) > 1.0),
            "reproduced",
        )
    )
    price_of = {str(r["robot"]): number(r, "fd_price") for r in rows}
    small, large = (
        [price_of[name] for name in names if name in price_of]
        for names in (("mini_cheetah", "jvrc1_humanoid"), ("mit_humanoid", "tello_leg"))
    )
    found.append(
        Claim(
            "the difference is larger where clusters have more bodies: MIT Humanoid and Tello",
            "1.98, 2.23 > 1.63, 1.46",
            f"{', '.join(f'{x:.2f}' for x in large)} and {', '.join(f'{x:.2f}' for x in small)}",
            "instructions, exact over approximate: MIT Humanoid and Tello, Mini Cheetah and JVRC-1",
            judge(min(large) > max(small)),
            "not",
            "true of Tello. The belts of the MIT Humanoid are a constant armature matrix here, and"
            " rotors of JVRC-1 that are not symmetric must be turned as bodies",
        )
    )
    found.append(
        Claim(
            "exact forward and inverse dynamics of each robot",
            "1 (the library itself)",
            f"{min(pairs):.2f} to {max(pairs):.2f}",
            "instructions over the library's, same inputs and outputs",
            judge(False, max(pairs) < 1.0),
            "better",
        )
    )
    return found


def text(rows: list[Row]) -> str:
    """How it was done."""
    counted = [r for r in rows if r["fd_library"] != ""]
    exact = [number(r, "fd_exact") / number(r, "fd_library_approximate") for r in counted]
    return (
        f"{TEXT} Our exact forward dynamics takes {min(exact):.2f} to {max(exact):.2f} of the"
        " instructions of the library's approximate one."
    )


WHY = {
    "mini_cheetah": "see the cost of exact rotors",
    "jvrc1_humanoid": "18 of its 25 rotors are not symmetric about their axes in the file, so that"
    " they must be turned as bodies",
    "tello_leg": "the paper's is of the whole robot, whose URDF has no loops; ours is of one leg"
    " with the library's equations",
}

TEXT = """Approximate means rotors and couplings removed, and ratio^2 times a rotor's inertia added
to the links that it drives: `models.without_rotors` does that to the very file of the exact robot,
so that nothing else differs. (The published `jvrc1_humanoid_approximate.urdf` hangs its limbs on
the ground and has no floating base.)"""


def plot(rows: list[Row], path: Path) -> None:
    """Bars a robot."""
    every, rows = rows, [r for r in rows if r["fd_library"] != ""]
    drawn, panels = figure(1, 2, (9, 3.2))
    names = [str(r["robot"]).replace("_humanoid", "") for r in rows]
    counts = {
        "ours, exact": [number(r, "fd_exact") for r in rows],
        "ours, approximate": [number(r, "fd_approximate") for r in rows],
        "library, exact": [number(r, "fd_library") for r in rows],
        "library, approximate": [number(r, "fd_library_approximate") for r in rows],
    }
    bars(panels[0], names, counts, "instructions of forward dynamics")
    names = [str(r["robot"]).replace("_humanoid", "").replace("_", " ") for r in every]
    paper = [1 / (1 - SHORTER[str(r["robot"]).removesuffix("_leg")] / 100) for r in every]
    prices = {
        "forward dynamics": [number(r, "fd_price") for r in every],
        "inverse dynamics": [number(r, "id_price") for r in every],
        "paper, forward": paper,
    }
    bars(panels[1], names, prices, "exact over approximate")
    panels[1].axhline(1.0, color="black", lw=0.8)
    save(drawn, path)
