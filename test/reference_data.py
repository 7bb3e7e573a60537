"""Answers of generalized_rbda, another implementation, read from beside the repository.

Its conventions differ from ours (``CONVENTIONS.md`` there): spatial vectors are angular first,
quaternions scalar first, and vectors are stacked in its own order of clusters; so states are
matched by joint name. The data are not ours to copy: where they are absent, tests skip.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbda_ros import Robot, load_robot

SHARED = Path(__file__).parents[2] / "shared"
NAMES = sorted(path.stem for path in (SHARED / "reference").glob("*.json"))
REFERENCE_ROBOTS = NAMES or [
    pytest.param("none", marks=pytest.mark.skip(reason="no ../shared/reference beside the project"))
]
"""For ``pytest.mark.parametrize``."""
BY_DAY = {
    "four_bar", "mini_cheetah", "mit_humanoid", "parallel_explicit_depth5_loop_size2",
    "parallel_implicit_depth5_loop_size3", "revolute_rotor_pair_branch_2_4",
}  # fmt: skip
SHARED_ROBOTS = [
    pytest.param(path.stem, marks=[pytest.mark.nightly] * (path.stem not in BY_DAY))
    for path in sorted((SHARED / "robots").glob("*.urdf"))
] or [pytest.param("none", marks=pytest.mark.skip(reason="no ../shared/robots beside the project"))]
"""For ``pytest.mark.parametrize``: one of each kind by day, where references are not at hand."""
ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
"""Swaps the angular and linear halves of a spatial vector."""


@functools.cache
def reference(name: str) -> Reference:
    """The reference answers for a robot, with the robot loaded once for all tests."""
    data = json.loads((SHARED / "reference" / f"{name}.json").read_text())
    return Reference(data, load_robot(SHARED / data["urdf_file"]))


def shared_robot(name: str) -> Path:
    """A URDF beside the repository; the test is skipped where there is none."""
    path = SHARED / "robots" / f"{name}.urdf"
    if not path.exists():
        pytest.skip("no ../shared/robots beside the project")
    return path


@dataclass(frozen=True, eq=False)
class Reference:
    """One robot of the reference; converts its vectors to ours."""

    data: dict[str, Any]
    robot: Robot

    @property
    def states(self) -> list[dict[str, Any]]:
        return self.data["states"]

    def load(self, gravity: list[float]) -> Robot:
        """The robot under another gravity."""
        return load_robot(SHARED / self.data["urdf_file"], gravity=gravity)

    @functools.cached_property
    def order(self) -> list[int]:
        """Where each entry of our independent vectors (ny) stands in theirs."""
        theirs: list[str] = []
        for cluster in self.data["clusters"]:
            names = cluster["independent_joints"]
            theirs += [f"base {i}" for i in ANGULAR_FIRST] if self._is_base(cluster) else names
        base = [f"base {i}" for i in range(6)] if self.robot.floating_base else []
        return [theirs.index(name) for name in (*base, *self.robot.independent_joint_names)]

    @staticmethod
    def _is_base(cluster: dict[str, Any]) -> bool:
        return cluster["joint_class"] == "Free"

    def independent(self, theirs: list[float]) -> np.ndarray:
        """Their velocity, acceleration or force on y (ny,) in our order."""
        return np.array(theirs, float)[self.order]

    def columns(self, theirs: list[list[float]]) -> np.ndarray:
        """Their matrix (m, ny) with our order of columns."""
        return np.array(theirs, float)[:, self.order]

    def matrix(self, theirs: list[list[float]]) -> np.ndarray:
        """Their matrix (ny, ny) in our order."""
        return np.array(theirs, float)[np.ix_(self.order, self.order)]

    def position(self, state: dict[str, Any]) -> np.ndarray:
        """q (nq,)."""
        return self._by_joint(state["q"], [0, 1, 2, 4, 5, 6, 3])

    def velocity(self, state: dict[str, Any]) -> np.ndarray:
        """qd (nv,)."""
        return self._by_joint(state["qd"], ANGULAR_FIRST)

    def acceleration(self, state: dict[str, Any]) -> np.ndarray:
        """qdd (nv,) of forward dynamics."""
        return self._by_joint(state["qdd_fd"], ANGULAR_FIRST)

    def _by_joint(self, values: dict[str, Any], base_order: list[int]) -> np.ndarray:
        parts = []
        if self.robot.floating_base:
            [base] = [b["key"] for b in self.data["bodies"] if b["type"] == "floating"]
            parts.append(np.array(values[base])[base_order])
        parts += [np.atleast_1d(values[name]) for name in self.robot.joint_names]
        return np.concatenate(parts)

    def wrench(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        """Their external wrench, about the world's origin, as ours: on a link, in its frame."""
        link, theirs = state["fext"]["body"], np.array(state["fext"]["wrench_world"])
        moment, force = theirs[:3], theirs[3:]
        pose = state["body_poses"][link]
        R, p = np.array(pose["R_body_to_world"]), np.array(pose["p"])
        return {link: np.concatenate([R.T @ force, R.T @ (moment - np.cross(p, force))])}

    @property
    def end_effectors(self) -> list[dict[str, Any]]:
        """Contact points in the order of the inverse OSIM."""
        points = [c for c in self.data["contact_points"] if c["is_end_effector"]]
        return sorted(points, key=lambda point: point["end_effector_index"])
