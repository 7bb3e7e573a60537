"""Clusters before they are assembled: which bodies each has, and what ties their joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.cluster_tree.closing.assembly import Assembly, AssemblyError, Wishes, assemble
from rbda_ros.cluster_tree.closing.idle import RodSearch
from rbda_ros.cluster_tree.closing.tolerances import rounding_gap
from rbda_ros.cluster_tree.loops import build_loop
from rbda_ros.cluster_tree.spanning_tree import Body, SpanningTree
from rbda_ros.description.model import Constraint, Joint, RobotDescription
from rbda_ros.errors import DescriptionError
from rbda_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class ClusterAssembly:
    """The clusters of a robot, and what ties the joints of each.

    Attributes:
        description: of the robot.
        tree: its spanning tree, numbered cluster by cluster.
        clusters: numbers of the bodies of each.
        constraints: among the bodies of each; none where nothing ties them.
    """

    description: RobotDescription
    tree: SpanningTree
    clusters: Sequence[tuple[int, ...]]
    constraints: Sequence[Sequence[Constraint]]

    def bodies(self, k: int) -> tuple[Body, ...]:
        """The bodies of a cluster."""
        return tuple(self.tree.bodies[i - 1] for i in self.clusters[k])

    def guess(self, k: int) -> dict[int, Array]:
        """Position of each joint of a cluster at the assembly guess, by its body's number."""
        parts = zip(self.clusters[k], self.bodies(k), strict=True)
        return {i: _guess(self.description, body) for i, body in parts}

    def assemble(self) -> list[Assembly | None]:
        """Assemble each cluster; None where nothing is tied."""
        found, problems = [], []
        for k in cancellable(range(len(self.clusters))):
            try:
                found.append(self._assembly(k) if self.constraints[k] else None)
            except AssemblyError as failed:
                problems.append(failed.problem)
        if problems:
            raise DescriptionError(problems)
        return found

    def _assembly(self, k: int) -> Assembly:
        numbers, bodies, guess = self.clusters[k], self.bodies(k), self.guess(k)
        names = [name for body in bodies for name in body.velocity_names]
        wishes = _wishes(self.description, bodies, self.tree.floating_base and 1 in numbers)
        loop = build_loop(self.tree, numbers, self.constraints[k], guess)
        rods = RodSearch(self.tree, numbers, self.constraints[k], self.description.idle_freedoms)
        start = np.concatenate([guess[i] for i in numbers])
        rounding = rounding_gap(self.description.digits, len(numbers))
        return assemble(loop, start, wishes, names, rods, rounding)


def _guess(description: RobotDescription, body: Body) -> Array:
    """Position of a body's joint at the assembly guess."""
    given = description.assembly.get(body.joint.name, body.model.neutral)
    position = np.atleast_1d(np.array(given, dtype=float))
    if body.model.nq != body.model.nv:  # a quaternion, and people round those
        position[-4:] /= np.linalg.norm(position[-4:])
    return position


def _wishes(
    description: RobotDescription, bodies: Sequence[Body], has_floating_base: bool
) -> Wishes:
    """Independent joints of a cluster as loop file and URDF+ name them.

    The floating base is always independent: no loop ties it, and no file can list it.
    """
    coordinates = [body.joint for body in bodies for _ in range(body.model.nv)]

    def where(accept: Callable[[Joint], bool]) -> frozenset[int]:
        return frozenset(j for j, joint in enumerate(coordinates) if accept(joint))

    actuated = where(lambda joint: joint.name in (description.actuated_joints or ()))
    base = where(lambda joint: has_floating_base and joint is bodies[0].joint)
    listed = where(lambda joint: joint.name in (description.independent_joints or ()))
    if listed:
        required = listed | base
        return Wishes(required=required, allowed=required, preferred=actuated, listed=True)
    return Wishes(
        required=where(lambda joint: joint.independent is True) | base,
        allowed=where(lambda joint: joint.independent is not False),
        preferred=actuated,
        listed=False,
    )
