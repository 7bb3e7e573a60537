"""A robot whose loops do not close: its tree alone, posed where the gaps are smallest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rbda_ros.cluster_tree.closing.approach import approach
from rbda_ros.cluster_tree.closing.first_position import gaps_of
from rbda_ros.cluster_tree.closing.tolerances import CLOSED
from rbda_ros.cluster_tree.loops import build_loop
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.description.model import Constraint
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array
from rbda_ros.view.posing import LoopHealth, Poser

STARTS = 8
"""Positions from which the smallest gap is searched for."""


class OpenPoser(Poser):
    """Moves every joint of a robot freely, and measures the gaps of the constraints it lacks.

    Args:
        robot: the tree, without loops.
        constraints: those that the description states, and that cannot hold together.
        guess: joint positions to search from, by name.
    """

    def __init__(
        self, robot: Robot, constraints: Sequence[Constraint], guess: Mapping[str, Array]
    ) -> None:
        super().__init__(robot)
        self.unclosed = tuple(constraints)
        spanning = robot.spanning_tree
        numbers = range(1, len(spanning.bodies) + 1)
        guessed = {
            number: guess.get(
                body.joint.name, robot.neutral()[robot.coordinates.positions[body.joint.name]]
            )
            for number, body in zip(numbers, spanning.bodies, strict=True)
        }
        self._loop = build_loop(spanning, numbers, self.unclosed, guessed)
        guess_q = np.concatenate([np.atleast_1d(guessed[number]) for number in numbers])
        self.start = self._nearest(guess_q)
        self.q = self.start.copy()

    def _nearest(self, guess: Array) -> Array:
        """(nq,) the position with the smallest gaps that a few searches around a guess find."""
        rng = np.random.default_rng(0)
        starts = [guess] + [
            self._loop.integrate(guess, rng.normal(0.0, 0.3, self._loop.nv))
            for _ in range(STARTS - 1)
        ]
        return min((approach(self._loop, start) for start in starts), key=lambda end: end.gap).q

    def health(
        self, q: Array, drive: str = "joints", troubles: Mapping[str, str] | None = None
    ) -> tuple[LoopHealth, ...]:
        """The gap of each constraint at a position (nq,)."""
        return tuple(
            LoopHealth(
                cluster=name,
                constraints=(name,),
                residual=gap,
                conditioning=1.0,
                trouble="it does not close; check frames, lengths and axes" if gap > CLOSED else "",
            )
            for name, gap in gaps_of(self._loop, q).items()
        )


def open_robot(
    source: str | os.PathLike[str],
    loops: str | os.PathLike[str] | None,
    floating_base: bool,
) -> OpenPoser:
    """Read a robot whose loops do not close, to look at it.

    Raises:
        ModelError: its tree cannot be used either.
    """
    description = read_description(source, loops)
    tree = replace(description, constraints=(), independent_joints=None, actuated_joints=None)
    robot = Robot(build_cluster_tree(tree, floating_base))
    guess = {
        name: np.atleast_1d(np.asarray(at, float)) for name, at in description.assembly.items()
    }
    return OpenPoser(robot, description.constraints, guess)
