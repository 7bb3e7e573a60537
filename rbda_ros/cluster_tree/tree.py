"""The cluster tree: what every recursive algorithm runs on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.clustering import find_clusters, parent_clusters
from rbda_ros.cluster_tree.spanning_tree import LinkFrame, SpanningTree, build_spanning_tree
from rbda_ros.description.model import RobotDescription
from rbda_ros.spatial import Matrix


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """Clusters in regular order (parents before children) and the bodies they group.

    Spanning vectors (q, qd) stack the bodies in regular numbering, which is cluster by cluster;
    independent vectors (yd, ydd, tau) stack the clusters' independent coordinates.
    """

    description: RobotDescription
    spanning: SpanningTree
    clusters: tuple[ClusterNode, ...]
    gravity: tuple[float, float, float]

    def outward(self) -> Iterator[int]:
        """Cluster indices from the base to the tips."""
        return iter(range(len(self.clusters)))

    def inward(self) -> Iterator[int]:
        """Cluster indices from the tips to the base."""
        return iter(reversed(range(len(self.clusters))))

    @property
    def nq(self) -> int:
        """Number of spanning positions."""
        return sum(node.nq for node in self.clusters)

    @property
    def nv(self) -> int:
        """Number of spanning velocities."""
        return sum(node.nv for node in self.clusters)

    @property
    def ny(self) -> int:
        """Number of independent velocities."""
        return sum(node.ny for node in self.clusters)

    def rows(self, k: int | None) -> int:
        """Rows of cluster k's clustered vectors: six a body, six for the fixed base (None)."""
        return 6 if k is None else 6 * len(self.clusters[k].bodies)

    def split_positions(self, q: Matrix) -> list[Matrix]:
        """A spanning position (nq) as one vector per cluster."""
        return ca.vertsplit(q, _offsets(node.nq for node in self.clusters))

    def split_independent(self, y: Matrix) -> list[Matrix]:
        """An independent velocity, acceleration or force (ny) as one vector per cluster."""
        return ca.vertsplit(y, _offsets(node.ny for node in self.clusters))


def _offsets(sizes: Iterator[int]) -> list[int]:
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return offsets


def build_cluster_tree(
    description: RobotDescription,
    floating_base: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
) -> ClusterTree:
    """Spanning tree, clusters and loops of a checked description.

    Args:
        description: links, joints and constraints.
        floating_base: put a floating joint under the root link.
        gravity: acceleration of gravity in world axes [m/s^2].
    """
    tree = build_spanning_tree(description, floating_base)
    parents = [body.parent for body in tree.bodies]
    numbers = find_clusters(parents, [])
    tree, numbers = renumber(tree, numbers)
    parents = [body.parent for body in tree.bodies]
    nodes = []
    for cluster, above in zip(numbers, parent_clusters(numbers, parents), strict=True):
        bodies = tuple(tree.bodies[i - 1] for i in cluster)
        inside = {i: position for position, i in enumerate(cluster)}
        outside = {i: position for position, i in enumerate(numbers[above])} if above is not None else {0: 0}
        nodes.append(
            ClusterNode(
                name=bodies[0].name,
                bodies=bodies,
                numbers=cluster,
                parent=above,
                inside=tuple(inside.get(body.parent) for body in bodies),
                output=tuple(outside.get(body.parent) for body in bodies),
                loop=None,
                independent=tuple(range(sum(b.model.nv for b in bodies))),
            )
        )
    return ClusterTree(description, tree, tuple(nodes), gravity)


def renumber(
    tree: SpanningTree, clusters: tuple[tuple[int, ...], ...]
) -> tuple[SpanningTree, tuple[tuple[int, ...], ...]]:
    """Number the bodies cluster by cluster; still regular, as clusters are in regular order."""
    order = [i for cluster in clusters for i in cluster]
    new = {0: 0} | {old: number for number, old in enumerate(order, start=1)}
    bodies = tuple(
        replace(tree.bodies[old - 1], parent=new[tree.bodies[old - 1].parent]) for old in order
    )
    links = {name: LinkFrame(new[place.body], place.frame) for name, place in tree.links.items()}
    renumbered = tuple(tuple(new[i] for i in cluster) for cluster in clusters)
    return replace(tree, bodies=bodies, links=links), renumbered
