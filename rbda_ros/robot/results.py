"""What a robot tells: its clusters, and answers of more than one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array


@dataclass(frozen=True)
class Cluster:
    """Bodies that loop constraints tie together, by name.

    ``parent`` is the name of the parent cluster, None for one that hangs from the fixed base.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    independent_joints: tuple[str, ...]
    constraints: tuple[str, ...]
    parent: str | None


@dataclass(frozen=True, eq=False)
class OperationalSpace:
    """The inertia felt at some frames; rows and columns frame by frame, linear first.

    Attributes:
        inertia: (m, m) Lambda, the inverse of ``inverse_inertia`` plus the damping; where that
            is singular, the pseudo-inverse.
        inverse_inertia: (m, m) ``J H^-1 J'``.
        jacobian: (m, ny) of the frames, world-aligned.
        rank: of ``inverse_inertia``.
        condition: largest over smallest eigenvalue of ``inverse_inertia``; infinite where
            rank-deficient.
    """

    inertia: Array
    inverse_inertia: Array
    jacobian: Array
    rank: int
    condition: float


class Derivatives(NamedTuple):
    """Partial derivatives (ny, ny) with respect to position, velocity, and the third argument.

    Positions vary along the constraint manifold; those of a floating base along its twist,
    linear then angular, in the base frame.
    """

    position: Array
    velocity: Array
    third: Array


def clusters_of(tree: ClusterTree) -> tuple[Cluster, ...]:
    """The clusters of a tree, by name."""
    links: dict[int, list[str]] = {}
    for link, place in tree.spanning.links.items():
        links.setdefault(place.body, []).append(link)
    clusters = []
    for node in tree.clusters:
        names = [name for body in node.bodies for name in body.velocity_names]
        clusters.append(
            Cluster(
                name=node.name,
                links=tuple(link for i in node.numbers for link in links[i]),
                joints=tuple(body.joint.name for body in node.bodies),
                independent_joints=tuple(names[j] for j in node.independent),
                constraints=tuple(c.name for c in node.loop.constraints) if node.loop else (),
                parent=None if node.parent is None else tree.clusters[node.parent].name,
            )
        )
    return tuple(clusters)
