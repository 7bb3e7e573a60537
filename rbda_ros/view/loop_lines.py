"""Loops as dashed lines: through the cut of a linkage, between the joints that a gear ties."""

from __future__ import annotations

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
ENDS = (np.arange(DASHES)[:, None] + (0.0, 0.6)) / (DASHES - 0.4)
"""Where each dash begins and ends, as a share of the piece; the last ends with it."""


@dataclass(frozen=True, eq=False)
class LoopLine:
    """The corners of one constraint's line.

    Attributes:
        name: of the constraint.
        cluster: that it is in.
        corners: body (0: the fixed base) and point (3,) in its frame of each corner.
        label: which corner its name stands at.
        dashed: whether it is drawn; a gear on the axis of its joint has no length.
    """

    name: str
    cluster: str
    corners: tuple[tuple[int, Array], ...]
    label: int
    dashed: bool


class LoopLines:
    """The lines of all constraints, placed at once.

    Args:
        robot: the robot.
        unclosed: constraints that the model lacks because they do not close.
    """

    def __init__(self, robot: Robot, unclosed: Sequence[Constraint] = ()) -> None:
        self.lines = loop_lines(robot, unclosed)
        counts = [len(line.corners) for line in self.lines]
        ends = np.cumsum(counts, dtype=int)
        self._firsts = ends - counts
        corners = [corner for line in self.lines for corner in line.corners]
        self._bodies = np.array([body for body, _ in corners], int)
        self._points = np.array([point for _, point in corners]).reshape(-1, 3)
        dashed = np.array([line.dashed for line in self.lines], bool)
        drawn = np.repeat(dashed | ~dashed.any(), counts)  # viser draws no empty set of lines
        drawn[ends - 1] = False  # a line's last corner starts no piece
        starts = np.flatnonzero(drawn)
        self._starts = starts
        self.line_of_dash = np.repeat(np.repeat(np.arange(len(counts)), counts)[starts], DASHES)

    def corners(self, R: Array, p: Array) -> Array:
        """Corners (N, 3) of all lines, from rotations (n, 3, 3) and origins (n, 3) of bodies."""
        on, placed = self._bodies > 0, self._points.copy()
        at = self._bodies[on] - 1
        placed[on] = np.einsum("nij,nj->ni", R[at], self._points[on]) + p[at]
        return placed

    def label(self, line: int, corners: Array) -> Array:
        """Where the name of a line stands (3,)."""
        return corners[self._firsts[line] + self.lines[line].label]

    def dashes(self, corners: Array) -> Array:
        """Dashes (N, 2, 3) of all lines: so many a piece, whatever its length."""
        a, b = corners[self._starts], corners[self._starts + 1]
        return (a[:, None, None] + ENDS[None, ..., None] * (b - a)[:, None, None]).reshape(-1, 2, 3)


def loop_lines(robot: Robot, unclosed: Sequence[Constraint] = ()) -> tuple[LoopLine, ...]:
    """A line for every constraint of the robot; unclosed ones are a cluster each."""
    nodes = [node for node in robot.cluster_nodes if node.loop is not None]
    found = [(node.name, c) for node in nodes if node.loop for c in node.loop.constraints]
    found += [(constraint.name, constraint) for constraint in unclosed]
    return tuple(
        LoopLine(
            constraint.name,
            cluster,
            *_corners(robot, constraint),
            isinstance(constraint, CutJoint) or len(_axes(robot, constraint)) > 1,
        )
        for cluster, constraint in found
    )


def _corners(robot: Robot, constraint: Constraint) -> tuple[tuple[tuple[int, Array], ...], int]:
    links = robot.spanning_tree.links
    if isinstance(constraint, CutJoint):
        ends = [links[end.link] for end in (constraint.predecessor, constraint.successor)]
        cuts = [
            (place.body, (place.frame @ frame_of(end.origin)).p)
            for place, end in zip(ends, (constraint.predecessor, constraint.successor), strict=True)
        ]
        first, second = ((place.body, place.frame.p) for place in ends)
        return (first, *cuts, second), 1
    body_of = robot.spanning_tree.body_of_joint
    bodies = [body_of[name] for name in _tied(constraint)]
    names = [robot.spanning_tree.bodies[number - 1].name for number in bodies]
    corners = [(links[name].body, links[name].frame.p) for name in names]
    return tuple(corners if len(corners) > 1 else corners * 2), 0


def _tied(constraint: Constraint) -> list[str]:
    """Joints that a gear or the like ties."""
    if isinstance(constraint, CutJoint):
        return []
    terms = constraint.terms if isinstance(constraint, Coupling) else joints_in(constraint.tree)
    return list(terms)


def _axes(robot: Robot, constraint: Constraint) -> set[tuple[object, ...]]:
    """Where tied joints turn: parent body and point in its frame; the name of one that slides."""
    joints = {joint.name: joint for joint in robot.description.joints}
    found: set[tuple[object, ...]] = set()
    for name in _tied(constraint):
        joint = joints[name]
        place = robot.spanning_tree.links[joint.parent]
        point = (place.frame @ frame_of(joint.origin)).p
        turns = joint.type in ("revolute", "continuous")
        found.add((place.body, *point.round(9).tolist()) if turns else (name,))
    return found
