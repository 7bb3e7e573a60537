"""Instruction counts beside those of generalized_rbda, robot by robot."""

from __future__ import annotations

import csv

from benchmark.robots import SHARED, geared_chain
from rbda_ros import load_robot

URDF_OF = {  # robot in the csv: file
    "mini_cheetah": "mini_cheetah",
    "mit_humanoid": "mit_humanoid",
    "jvrc1_humanoid": "jvrc1_humanoid",
    "four_bar": "four_bar",
    "revolute_rotor_chain": "revolute_rotor_chain",
    "2_2": "four_bar_branch_2_2",
    "depth5_loop2": "parallel_explicit_depth5_loop_size2",
    "depth5_loop10": "parallel_explicit_depth5_loop_size10",
    "depth5_loop3": "parallel_implicit_depth5_loop_size3",
    "depth5_loop5": "parallel_implicit_depth5_loop_size5",
    "depth10_loop9": "parallel_implicit_depth10_loop_size9",
}
FAMILIES = {"robot", "four_bar", "parallel_Explicit", "parallel_Implicit"}


def rows() -> list[dict[str, object]]:
    """One row per robot: our instructions, theirs, and the ratio."""
    table: list[dict[str, object]] = []
    source = SHARED / "reference" / "instruction_counts.csv"
    if source.is_file():
        for line in csv.DictReader(source.read_text().splitlines()):
            file = URDF_OF.get(line["name"])
            if file is None or line["family"] not in FAMILIES:
                continue
            robot = load_robot(SHARED / "robots" / f"{file}.urdf")
            table.append(_row(file, "FD", robot, int(line["fd_indTau_ydd"])))
            table.append(_row(file, "ID", robot, int(line["id_ind"])))
    return table


def _row(name: str, what: str, robot, theirs: int) -> dict[str, object]:
    kernel = {"FD": "forward_dynamics", "ID": "inverse_dynamics"}[what]
    ours = robot.kernel(kernel).instructions
    return {"robot": name, "what": what, "ours": ours, "theirs": theirs, "ratio": ours / theirs}


def linearity() -> list[tuple[int, int]]:
    """Instructions of forward dynamics of geared chains, by number of clusters."""
    return [
        (n, geared_chain(n).robot.kernel("forward_dynamics").instructions)
        for n in (5, 10, 20, 40, 80)
    ]
