"""Quantities of `Robot` over the example robots, fixed and floating, beside Pinocchio."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmark.methods import quantities, states
from benchmark.robots import example_urdf, pair
from benchmark.timing import interleaved
from rbda_ros import SingularityError
from rbda_ros.robot.operations import OPERATIONS

ROBOTS = (
    "a1", "allegro_left_hand", "anymal", "b1", "baxter", "bolt", "finger_edu",
    "g1_29dof_with_hand_rev_1_0", "go2", "hyq_no_sensors", "kinova", "laikago", "panda", "romeo",
    "simple_humanoid", "so101", "solo12", "talos_reduced", "ur5_robot", "xarm7",
)  # fmt: skip
SHORT = 1.3
"""Time of Pinocchio [us] below which we should be twice as fast, and from which three times."""
SECONDS = 4e-4


def rows() -> Iterator[dict[str, object]]:
    """Processor time of each quantity, one after the other, at one state of every robot."""
    for name in ROBOTS:
        for floating_base in (False, True):
            yield from _robot_rows(name, floating_base)


def _robot_rows(name: str, floating_base: bool) -> Iterator[dict[str, object]]:
    both = pair(name, example_urdf(name), floating_base=floating_base)
    frame = both.model.frames[len(both.model.frames) - 1].name
    mine, theirs = states(both)
    for method, ours, peer, count in quantities(both, frame):
        both.robot.prepare((method, frame) if OPERATIONS[method].of_frame else method)
        try:
            ours(*mine[1][:count])
        except SingularityError:  # a fixed base may leave joints without inertia
            continue
        calls = {"ours": partial(ours, *mine[1][:count]), "pin": partial(peer, *theirs[1][:count])}
        taken = interleaved(calls, SECONDS)
        ratio, wanted = taken["pin"] / taken["ours"], 2.0 if taken["pin"] < SHORT else 3.0
        yield {
            "quantity": method,
            "robot": name,
            "base": "floating" if floating_base else "fixed",
            "us": taken["ours"],
            "pinocchio_us": taken["pin"],
            "ratio": ratio,
            "wanted": wanted,
            "good": "yes" if ratio >= wanted else "no",
        }


def least(found: list[dict[str, object]]) -> list[dict[str, object]]:
    """Of each quantity, the row that is nearest to what is wanted, or furthest below it."""
    worst: dict[object, dict[str, object]] = {}
    for row in found:
        before = worst.setdefault(row["quantity"], row)
        if _margin(row) < _margin(before):
            worst[row["quantity"]] = row
    return list(worst.values())


def _margin(row: dict[str, object]) -> float:
    return float(str(row["ratio"])) / float(str(row["wanted"]))
