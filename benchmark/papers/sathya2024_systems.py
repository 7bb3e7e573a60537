"""The robots and contacts of Sathya 2024, Sec. VIII, from example-robot-data or generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmark.papers.models import humanoid_with_hands
from benchmark.robots import example_urdf
from rbda_ros import Contact, Robot, load_robot

FINGERS = [f"{side}_finger_{i}_{n}" for side in ("left", "right")
           for i, n in enumerate((4, 4, 4, 5, 5))]  # fmt: skip
FEET = [Contact(f"{side}_leg_6", kind="weld") for side in ("left", "right")]
SOLES = [Contact(f"{side}_sole_link", kind="weld") for side in ("left", "right")]
HANDS = [Contact(f"arm_{side}_7_link", kind="weld") for side in ("left", "right")]
SOLO_FEET = [Contact(foot) for foot in ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")]
GO1_FEET = [Contact(foot) for foot in ("FL_foot", "FR_foot", "RL_foot", "RR_foot")]


@dataclass(frozen=True)
class System:
    """A robot held at some points.

    Attributes:
        name: as the paper has it.
        robot: which robot stands for the paper's.
        contacts: where it is held.
    """

    name: str
    robot: str
    contacts: tuple[Contact, ...]


def systems(*names: str) -> list[System]:
    """The systems with the given names, or all."""
    return [system for system in _SYSTEMS if not names or system.name in names]


DAY = ("Iiwa - H3",)
"""Systems that are counted in a second."""
PAPER_FREEDOMS = {
    "panda": 7,
    "go1": 18,
    "solo12": 18,
    "talos_full_v2": 50,
    "humanoid_with_hands": 84,
}
"""Degrees of freedom of the paper's robots, by the robots that stand for them here. panda has an
arm of 7 joints and a gripper of one freedom."""
STAND_INS = (
    "panda (8 degrees of freedom) replaces the paper's Iiwa (7); Talos has 38 here and 50 in the"
    " paper; a generated tree with 84 replaces Atlas with two Shadow hands"
)


def _system(name: str, robot: str, contacts: Sequence[Contact]) -> System:
    return System(name, robot, tuple(contacts))


_ATLAS = "humanoid_with_hands"
_SYSTEMS = [
    _system("Iiwa - H3", "panda", [Contact("panda_link8")]),
    _system("Iiwa - H6", "panda", [Contact("panda_link8", kind="weld")]),
    _system("Go1 - F3^4", "go1", GO1_FEET),
    _system("Solo - F3^2", "solo12", SOLO_FEET[:2]),
    _system("Solo - F3^3", "solo12", SOLO_FEET[:3]),
    _system("Solo - F3^4", "solo12", SOLO_FEET),
    _system("Talos - F6^2", "talos_full_v2", SOLES),
    _system("Talos - F6^2 H6^2", "talos_full_v2", SOLES + HANDS),
    _system("Atlas SR - F6^2", _ATLAS, FEET),
    _system("Atlas SR - F6^2 T3^5", _ATLAS, FEET + [Contact(f) for f in FINGERS[:5]]),
    _system("Atlas SR - F6^2 T3^10", _ATLAS, FEET + [Contact(f) for f in FINGERS]),
]


@cache
def load(robot: str) -> Robot:
    """A robot of the systems, with a floating base unless it is an arm."""
    urdf = humanoid_with_hands() if robot == _ATLAS else example_urdf(robot)
    return load_robot(urdf, floating_base=robot != "panda")


def state(robot: Robot, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, yd and tau."""
    rng = np.random.default_rng(seed)
    q = robot.tree.integrate(robot.tree.home, rng.uniform(-1.0, 1.0, robot.nv))
    return q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)
