"""Loops as dashed lines: through the cut of a linkage, between the joints that a gear ties."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbda_ros.cluster_tree.spanning_tree import frame_of
from rbda_ros.description.expression import names as joints_in
from rbda_ros.description.model import Constraint, Coupling, CutJoint
from rbda_ros.robot import Robot
from rbda_ros.spatial import Array

DASHES = 9
"""Dashes of one straight piece, whatever its length: the number of points never changes."""


@dataclass(frozen=True, eq=False)
class LoopLine:
    """The corners of one constraint's line.

    Attributes:
        name: of the constraint.
        cluster: that it is in.
        corners: body (0: the fixed base) and point (3,) in its frame of each corner.
        label: which corner its name stands at.
    """

    name: str
    cluster: str
    corners: tuple[tuple[int, Array], ...]
    label: int

    def points(self, R: Array, p: Array) -> Array:
        """Corners (k, 3) in the world, from rotations (n, 3, 3) and origins (n, 3) of bodies."""
        return np.array(
            [R[body - 1] @ point + p[body - 1] if body else point for body, point in self.corners]
        )


def loop_lines(robot: Robot) -> tuple[LoopLine, ...]:
    """A line for every constraint of the robot."""
    return tuple(
        LoopLine(constraint.name, node.name, *_corners(robot, constraint))
        for node in robot.tree.clusters
        if node.loop is not None
        for constraint in node.loop.constraints
    )


def _corners(robot: Robot, constraint: Constraint) -> tuple[tuple[tuple[int, Array], ...], int]:
    links = robot.tree.spanning.links
    if isinstance(constraint, CutJoint):
        ends = [links[end.link] for end in (constraint.predecessor, constraint.successor)]
        cuts = [
            (place.body, (place.frame @ frame_of(end.origin)).p)
            for place, end in zip(ends, (constraint.predecessor, constraint.successor), strict=True)
        ]
        first, second = ((place.body, place.frame.p) for place in ends)
        return (first, *cuts, second), 1
    terms = constraint.terms if isinstance(constraint, Coupling) else joints_in(constraint.tree)
    body_of = robot.tree.spanning.body_of_joint
    bodies = [body_of[name] for name in terms]
    names = [robot.tree.spanning.bodies[number - 1].name for number in bodies]
    corners = [(links[name].body, links[name].frame.p) for name in names]
    return tuple(corners if len(corners) > 1 else corners * 2), 0


def dashed(lines: Sequence[Array]) -> Array:
    """Dashes (N, 2, 3) of lines with corners (k, 3) each."""
    dashes = [np.zeros((0, 2, 3))]
    ends = (np.arange(DASHES)[:, None] + (0.0, 0.6)) / (DASHES - 0.4)  # the last dash ends at 1
    for corners in lines:
        for a, b in itertools.pairwise(corners):
            dashes.append(a + ends[..., None] * (b - a))
    return np.concatenate(dashes)
