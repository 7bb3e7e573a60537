"""Minimal clusters: group bodies until the quotient of the spanning tree is a tree again.

Bodies that one constraint ties together must share a cluster. Beyond that, bodies are merged
only where the quotient graph would not be a tree: every cluster needs one parent cluster
(Chignoli 2024, Sec. II-D). A cluster may hang from several bodies of its parent cluster, which
the paper leaves to future work (its footnote 2); that keeps clusters smaller.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cancelling import cancellable
from rbda_ros.cluster_tree.closing.assembly import Assembly, AssemblyError, Wishes, assemble
from rbda_ros.cluster_tree.closing.idle import RodSearch
from rbda_ros.cluster_tree.closing.tolerances import NEARLY_CLOSED, rounding_gap
from rbda_ros.cluster_tree.constraints import bodies_tied, whole_residual
from rbda_ros.cluster_tree.loops import build_loop
from rbda_ros.cluster_tree.spanning_tree import Body, SpanningTree
from rbda_ros.description.link_tree import circles
from rbda_ros.description.model import Constraint, Joint, RobotDescription
from rbda_ros.errors import DescriptionError, Problem
from rbda_ros.spatial import Array

Bodies = frozenset[int]
Partition = frozenset[Bodies]

MAX_VISITS = 100_000
"""Bodies visited in the search of one region before the best partition so far is taken. Robots
need a few hundred; the bound keeps loading quick where a file asks for the impossible."""


def find_clusters(
    parents: Sequence[int], constraint_sets: Iterable[Iterable[int]]
) -> tuple[tuple[int, ...], ...]:
    """The cheapest valid clustering, clusters in regular order, bodies ascending in each.

    Args:
        parents: ``parents[i - 1]`` is lambda_t(i), the parent of body i; 0 is the fixed base.
            Parents come before children.
        constraint_sets: for each constraint, the bodies whose joints it ties together.

    Cost is the sum of cubed cluster sizes, as dense factorizations have it. The search is made
    region by region, so that the legs of a robot do not multiply each other's choices.
    """
    parent = dict(enumerate(parents, start=1))
    start = _tied_together(len(parents), constraint_sets)
    clusters: list[Bodies] = []
    for region, tied in _regions(start, parent).items():
        # Seen from inside a region, everything outside is the base.
        inside = {i: parent[i] if parent[i] in region else 0 for i in region}
        clusters.extend(_cheapest(frozenset(tied), inside))
    return _regular_order(clusters, parents)


def _regions(start: Partition, parent: Mapping[int, int]) -> dict[Bodies, list[Bodies]]:
    """Sets of bodies that need not be merged with each other, and what is tied in each.

    A cluster whose bodies hang from different ones can be repaired with the bodies on the paths
    up to their nearest common ancestor, and with that ancestor, so these are a region; regions
    that meet are one. Then every body of a region but its top has its parent in the region, and
    intersecting a valid clustering with the regions leaves it valid and makes it no dearer.
    """
    region_of = {i: cluster for cluster in start for i in cluster}
    pending = [c for c in sorted(start, key=min) if len({parent[i] for i in c} - c) > 1]
    while pending:
        closed = _with_paths(pending.pop(), parent)
        met = frozenset().union(*(region_of[i] for i in closed))
        region_of.update(dict.fromkeys(met, met))
        if met != closed:
            pending.append(met)
    regions: dict[Bodies, list[Bodies]] = {}
    for cluster in start:
        regions.setdefault(region_of[min(cluster)], []).append(cluster)
    return regions


def _with_paths(bodies: Bodies, parent: Mapping[int, int]) -> Bodies:
    """The bodies, and those between them up to their nearest common ancestor and with it."""
    found = set(bodies)
    tips = [-i for i in bodies]  # the heap gives the smallest, and we need the last body
    heapq.heapify(tips)
    while len(tips) > 1:
        above = parent[-heapq.heappop(tips)]
        if above not in found:
            found.add(above)
            heapq.heappush(tips, -above)
    return frozenset(found - {0})


def _cheapest(start: Partition, parent: Mapping[int, int]) -> Partition:
    """The cheapest coarsening of ``start`` whose quotient is a tree.

    Whenever two parents P and Q of a cluster C differ, every valid clustering merges P with Q, C
    with P, or C with Q: the search branches over these three and is exact until MAX_VISITS.
    """
    best: Partition | None = None
    best_cost, visits = float("inf"), 0
    seen: set[Partition] = set()
    pending = [start]
    while pending and (best is None or visits < MAX_VISITS):
        partition = pending.pop()
        if partition in seen or _cost(partition) >= best_cost:
            continue
        seen.add(partition)
        visits += len(parent)
        options = _repairs(partition, parent)
        if not options:
            best, best_cost = partition, _cost(partition)
        # The cheapest repair is tried first, so that a good bound is there early.
        pending.extend(sorted(options, key=_order, reverse=True))
    assert best is not None  # one cluster of all bodies is always valid
    return best


def _tied_together(count: int, constraint_sets: Iterable[Iterable[int]]) -> Partition:
    cluster_of = {i: frozenset([i]) for i in range(1, count + 1)}
    for bodies in constraint_sets:
        merged = frozenset().union(*(cluster_of[i] for i in bodies))
        cluster_of.update(dict.fromkeys(merged, merged))
    return frozenset(cluster_of.values())


def _cost(partition: Partition) -> int:
    return sum(len(cluster) ** 3 for cluster in partition)


def _order(partition: Partition) -> tuple[int, list[list[int]]]:
    """Cheapest first; ties in the order of body numbers, the same in every run."""
    return _cost(partition), sorted(sorted(cluster) for cluster in partition)


def _repairs(partition: Partition, parent: Mapping[int, int]) -> list[Partition]:
    """Merges: every valid coarsening makes at least one. None if the quotient is a tree."""
    base = frozenset([0])
    cluster_of = {i: cluster for cluster in partition for i in cluster} | {0: base}
    parent_of: dict[Bodies, Bodies] = {}
    for cluster in sorted(partition, key=min):
        above = sorted({cluster_of[parent[i]] for i in cluster} - {cluster}, key=min)
        if len(above) > 1:
            p, q = above[:2]
            pairs = [(p, q), (cluster, p), (cluster, q)]
            return [_merge(partition, *pair) for pair in pairs if base not in pair]
        parent_of[cluster] = above[0]
    # A circle of clusters, each the parent of the next, can only become one cluster.
    return [_merge(partition, *circle) for circle in itertools.islice(circles(parent_of), 1)]


def _merge(partition: Partition, *clusters: Bodies) -> Partition:
    return (partition - set(clusters)) | {frozenset().union(*clusters)}


def parent_clusters(
    clusters: Sequence[Sequence[int]], parents: Sequence[int]
) -> tuple[int | None, ...]:
    """For each cluster the index of its parent cluster; None where it hangs from the base."""
    index_of = {i: k for k, cluster in enumerate(clusters) for i in cluster}
    above = ({index_of.get(parents[i - 1]) for i in cluster} for cluster in clusters)
    return tuple(next(iter(indices - {k}), None) for k, indices in enumerate(above))


def _regular_order(
    partition: Iterable[Bodies], parents: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Clusters depth first, children by their lowest body."""
    clusters = sorted(tuple(sorted(cluster)) for cluster in partition)
    children: dict[int | None, list[int]] = {}
    for k, parent in enumerate(parent_clusters(clusters, parents)):
        children.setdefault(parent, []).append(k)
    ordered, pending = [], children.get(None, [])[::-1]
    while pending:
        k = pending.pop()
        ordered.append(clusters[k])
        pending.extend(children.get(k, [])[::-1])
    return tuple(ordered)


def ties_base(tree: SpanningTree, constraints: Iterable[Constraint]) -> bool:
    """Whether a constraint ties the first body, which is the base where that floats."""
    return any(1 in bodies_tied(tree, constraint) for constraint in constraints)


def without_fixed(tree: SpanningTree, description: RobotDescription) -> RobotDescription:
    """The description without cuts that fixed joints hold, with a warning for each.

    Raises:
        DescriptionError: fixed joints hold a cut open, or the floating base is tied.
    """
    problems, warnings, kept = [], [], []
    for constraint in description.constraints:
        tied = bodies_tied(tree, constraint)
        element = f"constraint {constraint.name!r}"
        if not tied:
            gap = float(ca.norm_inf(ca.DM(whole_residual(tree, constraint, {}, {}))))
            if gap <= NEARLY_CLOSED:
                warnings.append(f"{element}: its links are fixed to each other, and it is left out")
            else:
                reason = f"its links are fixed to each other, {gap:.3g} apart"
                problems.append(Problem(element, reason, "remove it, or correct a fixed joint"))
            continue
        kept.append(constraint)
        if tree.floating_base and 1 in tied:
            reason = "it ties the floating base to the world"
            problems.append(Problem(element, reason, "remove it, or load without floating base"))
    if problems:
        raise DescriptionError(problems)
    return replace(
        description, constraints=tuple(kept), warnings=(*description.warnings, *warnings)
    )


def by_cluster(
    tree: SpanningTree, clusters: Sequence[tuple[int, ...]], constraints: Iterable[Constraint]
) -> list[list[Constraint]]:
    """The constraints among the bodies of each cluster, in the order of the file."""
    cluster_of = {number: k for k, numbers in enumerate(clusters) for number in numbers}
    inside: list[list[Constraint]] = [[] for _ in clusters]
    for constraint in constraints:
        inside[cluster_of[min(bodies_tied(tree, constraint))]].append(constraint)
    return inside


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
        wishes = _wishes(self.description, bodies, self.tree.floating_base and 1 in numbers)
        loop = build_loop(self.tree, numbers, self.constraints[k], guess)
        rods = RodSearch(self.tree, numbers, self.constraints[k], self.description.idle_freedoms)
        start = np.concatenate([guess[i] for i in numbers])
        rounding = rounding_gap(self.description.digits, len(numbers))
        return assemble(loop, start, wishes, rods, rounding)


def _guess(description: RobotDescription, body: Body) -> Array:
    """Position of a body's joint at the assembly guess."""
    given = description.assembly.get(body.joint.name, body.model.neutral)
    position = np.atleast_1d(np.array(given, dtype=float))
    if body.model.nq != body.model.nv:  # a quaternion, which files round
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
