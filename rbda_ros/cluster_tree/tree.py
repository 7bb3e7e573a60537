"""The cluster tree, on which all recursive algorithms run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.cluster_tree.closing.assembly import Assembly
from rbda_ros.cluster_tree.closing.tolerances import ON_LOOPS, rounding_of
from rbda_ros.cluster_tree.cluster_joint import ClusterNode, driven_coordinates
from rbda_ros.cluster_tree.clustering import (
    ClusterAssembly,
    by_cluster,
    find_clusters,
    parent_clusters,
    ties_base,
    without_fixed,
)
from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.spanning_tree import (
    Body,
    Coordinates,
    LinkFrame,
    SpanningTree,
    build_spanning_tree,
    integrate_bodies,
    position_rate,
    ranges,
    velocity_names,
)
from rbda_ros.cluster_tree.springs import Springs, build_springs
from rbda_ros.description.model import CutJoint, RobotDescription
from rbda_ros.spatial import Matrix


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """Clusters in regular order (parents before children) and the bodies they group.

    Spanning vectors (q, qd) stack the bodies in regular numbering, which is cluster by cluster;
    independent vectors (yd, ydd, tau) stack the clusters' independent coordinates. The description
    has ``idle_locks`` among its constraints. ``springs`` are functions of q, None without any.

    Attributes:
        idle_locks: cuts that freeze links that spin about themselves (see `closing.idle`): the
            successor of each.
        base_inertia: (6, 6) spatial inertia that regrouping moved onto the fixed base, about the
            origin of the world; None for none.
    """

    description: RobotDescription
    spanning: SpanningTree
    clusters: tuple[ClusterNode, ...]
    gravity: tuple[float, float, float]
    idle_locks: tuple[CutJoint, ...] = ()
    springs: Springs | None = None
    base_inertia: NDArray[np.float64] | None = None

    def outward(self) -> Iterator[int]:
        """Cluster indices from the base to the tips."""
        return cancellable(range(len(self.clusters)))

    def inward(self) -> Iterator[int]:
        """Cluster indices from the tips to the base."""
        return cancellable(reversed(range(len(self.clusters))))

    def path(self, k: int | None) -> Iterator[int]:
        """kappa(k): a cluster and those that support it, nearest first."""
        while k is not None:
            yield k
            k = self.clusters[k].parent

    @cached_property
    def as_described(self) -> RobotDescription:
        """The description without the constraints that freeze idle freedoms, to build from."""
        locks = {lock.name for lock in self.idle_locks}
        kept = tuple(c for c in self.description.constraints if c.name not in locks)
        return replace(self.description, constraints=kept)

    @cached_property
    def nq(self) -> int:
        """Number of spanning positions."""
        return sum(node.nq for node in self.clusters)

    @cached_property
    def nv(self) -> int:
        """Number of spanning velocities."""
        return len(self.velocity_names)

    @cached_property
    def ny(self) -> int:
        """Number of independent velocities."""
        return len(self.independent)

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """Name of each spanning velocity coordinate."""
        return velocity_names(self.spanning.bodies)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Which spanning velocity coordinates are y."""
        return self._in_tree(lambda node: node.independent)

    @cached_property
    def independent_parents(self) -> tuple[int, ...]:
        """For each coordinate of y the one before it on the path to the base; -1 for the first.

        The mass matrix couples a coordinate only with those on its path, and so does its factor
        (Featherstone, "Efficient Factorization of the Joint-Space Inertia Matrix for Branched
        Kinematic Trees", 2005).
        """
        found: list[int] = []
        last: dict[int | None, int] = {None: -1}
        for k, node in enumerate(self.clusters):
            before = last[node.parent]
            for _ in range(node.ny):
                found.append(before)
                before = len(found) - 1
            last[k] = before
        return tuple(found)

    @cached_property
    def actuated(self) -> tuple[int, ...]:
        """Which spanning velocity coordinates actuators act on."""
        return self._in_tree(lambda node: node.actuated)

    def _in_tree(self, coordinates: Callable[[ClusterNode], tuple[int, ...]]) -> tuple[int, ...]:
        parts = zip(self.velocity_ranges, self.clusters, strict=True)
        return tuple(place[j] for place, node in parts for j in coordinates(node))

    @property
    def coordinates(self) -> Coordinates:
        """Where each joint's positions are in q, and its velocities in qd."""
        return self.spanning.coordinates

    @cached_property
    def position_ranges(self) -> tuple[range, ...]:
        """Where each cluster's positions are in q."""
        return ranges(node.nq for node in self.clusters)

    @cached_property
    def velocity_ranges(self) -> tuple[range, ...]:
        """Where each cluster's velocities are in qd."""
        return ranges(node.nv for node in self.clusters)

    @cached_property
    def home(self) -> NDArray[np.float64]:
        """(nq,) the assembly: a position that closes every loop."""
        return np.concatenate([np.zeros(0), *(node.home for node in self.clusters)])

    @cached_property
    def has_loops(self) -> bool:
        """Whether some joints follow from others."""
        return any(node.loop for node in self.clusters)

    @cached_property
    def curved(self) -> NDArray[np.bool_]:
        """(nq,) which entries of q loops are not linear in: those of linkages, not of gears."""
        return np.concatenate(
            [np.zeros(0, bool)]
            + [node.loop.curved if node.loop else np.zeros(node.nq, bool) for node in self.clusters]
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the description, or about its assembly."""
        of_clusters = (warning for node in self.clusters for warning in node.warnings)
        return (*self.description.warnings, *of_clusters)

    def rows(self, k: int | None) -> int:
        """Rows of cluster k's clustered vectors: six a body, six for the fixed base (None)."""
        return 6 if k is None else 6 * len(self.clusters[k].bodies)

    def place_of(self, body: int) -> tuple[int, int]:
        """Index of a body's cluster, and the body's position in it."""
        return self._places[body]

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        return {
            number: (k, position)
            for k, node in enumerate(self.clusters)
            for position, number in enumerate(node.numbers)
        }

    def with_bodies(self, bodies: Sequence[Body]) -> ClusterTree:
        """The same tree of other bodies: their inertias may differ, not their joints."""
        clusters = tuple(
            replace(node, bodies=tuple(bodies[i - 1] for i in node.numbers))
            for node in self.clusters
        )
        spanning = replace(self.spanning, bodies=tuple(bodies))
        return replace(self, spanning=spanning, clusters=clusters)

    @cached_property
    def on_loops(self) -> float:
        """Largest |phi| of a spanning position that is taken as it is."""
        return max(ON_LOOPS, rounding_of(self.description.digits))

    @cached_property
    def without_potential(self) -> ClusterTree:
        """The same robot without gravity and springs; only forces of motion remain."""
        return replace(self, gravity=(0.0, 0.0, 0.0), springs=None)

    def position_rate(self, q: Matrix, qd: Matrix) -> Matrix:
        """dq/dt (nq) of a spanning velocity (nv)."""
        return position_rate(self.spanning.bodies, q, qd)

    def integrate(self, q: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """The position reached from q (nq,) with spanning velocity ``step`` (nv,) for unit time.

        It satisfies the loops only to first order.
        """
        return integrate_bodies(self.spanning.bodies, q, step)

    def split_positions(self, q: Matrix) -> list[Matrix]:
        """A spanning position (nq) as one vector per cluster."""
        return _split(q, self.position_ranges)

    def split_velocities(self, qd: Matrix) -> list[Matrix]:
        """A spanning velocity, acceleration or force (nv) as one vector per cluster."""
        return _split(qd, self.velocity_ranges)

    def split_independent(self, y: Matrix) -> list[Matrix]:
        """An independent velocity, acceleration or force (ny) as one vector per cluster."""
        return _split(y, ranges(node.ny for node in self.clusters))


def _split(vector: Matrix, parts: Collection[range]) -> list[Matrix]:
    return ca.vertsplit(vector, [0, *(part.stop for part in parts)])


def build_cluster_tree(
    description: RobotDescription,
    floating_base: bool = False,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    assemble_clusters: Callable[
        [ClusterAssembly], list[Assembly | None]
    ] = ClusterAssembly.assemble,
) -> ClusterTree:
    """Spanning tree, clusters and loops of a checked description.

    Args:
        description: links, joints and constraints.
        floating_base: put a floating joint under the root link.
        gravity: acceleration of gravity in world axes [m/s^2].
        assemble_clusters: what gives the assemblies; it may know them from before.

    Raises:
        DescriptionError: loops that do not close, contradict each other, leave no freedom, or
            have the wrong number of independent joints; all clusters are reported at once.
    """
    tree = build_spanning_tree(description, floating_base)
    if tree.floating_base and not floating_base and ties_base(tree, description.constraints):
        tree = replace(tree, floating_base=False)  # a described floating joint like any other
    description = without_fixed(tree, description)
    tied = [bodies_tied(tree, constraint) for constraint in description.constraints]
    tree, clusters = renumber(tree, find_clusters([body.parent for body in tree.bodies], tied))
    constraints = by_cluster(tree, clusters, description.constraints)
    members = ClusterAssembly(description, tree, clusters, constraints)
    above = parent_clusters(clusters, [body.parent for body in tree.bodies])
    assemblies = assemble_clusters(members)
    nodes = tuple(_node(members, k, above[k], each) for k, each in enumerate(assemblies))
    idle = tuple(lock for each in assemblies if each for lock in each.idle)
    description = replace(description, constraints=(*description.constraints, *idle))
    springs = build_springs(tree, description.springs, description.links, gravity)
    return ClusterTree(description, tree, nodes, gravity, idle, springs)


def _node(
    members: ClusterAssembly, k: int, parent: int | None, assembly: Assembly | None
) -> ClusterNode:
    """One cluster, with its assembly if it has constraints."""
    numbers, bodies = members.clusters[k], members.bodies(k)
    outside = (0,) if parent is None else members.clusters[parent]
    if assembly is None:
        independent = tuple(range(sum(body.model.nv for body in bodies)))
        home = np.concatenate([*members.guess(k).values()])
    else:
        independent, home = assembly.independent, assembly.home
    node = ClusterNode(
        name=bodies[0].name,
        bodies=bodies,
        numbers=numbers,
        parent=parent,
        inside=tuple(_position(numbers, body.parent) for body in bodies),
        output=tuple(_position(outside, body.parent) for body in bodies),
        loop=assembly.loop if assembly else None,
        independent=independent,
        home=home,
        warnings=assembly.warnings if assembly else (),
        actuated=_actuated(members.description, bodies, independent),
        driven=(),
    )
    G = np.asarray(ca.DM(ca.densify(node.velocity_map(ca.DM(home)))))
    return replace(node, driven=driven_coordinates(G, node.actuated))


def _actuated(
    description: RobotDescription, bodies: Sequence[Body], independent: Sequence[int]
) -> tuple[int, ...]:
    """Velocity coordinates that actuators act on; never those of a floating joint."""
    joints = [body.joint for body in bodies for _ in range(body.model.nv)]
    if description.actuated_joints is None:
        return tuple(j for j in independent if joints[j].type != "floating")
    return tuple(j for j, joint in enumerate(joints) if joint.name in description.actuated_joints)


def _position(numbers: tuple[int, ...], number: int) -> int | None:
    return numbers.index(number) if number in numbers else None


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
