"""Minimal clusters: group bodies until the quotient of the spanning tree is a tree again.

Bodies that one constraint ties together must share a cluster. Beyond that, bodies are merged
only where the quotient graph would not be a tree: every cluster needs one parent cluster
(Chignoli 2024, Sec. II-D). A cluster may hang from several bodies of its parent cluster, which
the paper leaves to future work (its footnote 2); that keeps clusters smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Partition = frozenset[frozenset[int]]

SEARCH_LIMIT = 2000
"""Partitions looked at before the best one so far is taken. Robots need fewer than ten."""


def find_clusters(
    parents: Sequence[int], constraint_sets: Iterable[Iterable[int]]
) -> tuple[tuple[int, ...], ...]:
    """The cheapest valid clustering, clusters in regular order, bodies ascending in each.

    Args:
        parents: ``parents[i - 1]`` is lambda_t(i), the parent of body i; 0 is the fixed base.
            Parents come before children.
        constraint_sets: for each constraint, the bodies whose joints it ties together.

    Cost is the sum of cubed cluster sizes, as dense factorizations have it. Whenever two
    parents P and Q of a cluster C differ, every valid clustering merges P with Q, C with P, or C
    with Q: the search branches over these three and is exact until SEARCH_LIMIT.
    """
    start = _tied_together(len(parents), constraint_sets)
    best: Partition | None = None
    best_cost = float("inf")
    seen: set[Partition] = set()
    pending = [start]
    while pending and (best is None or len(seen) < SEARCH_LIMIT):
        partition = pending.pop()
        if partition in seen or _cost(partition) >= best_cost:
            continue
        seen.add(partition)
        options = _repairs(partition, parents)
        if not options:
            best, best_cost = partition, _cost(partition)
        # The cheapest repair is tried first, so that a good bound is there early.
        pending.extend(sorted(options, key=_order, reverse=True))
    assert best is not None  # one cluster of all bodies is always valid
    return _regular_order(best, parents)


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


def _repairs(partition: Partition, parents: Sequence[int]) -> list[Partition]:
    """Merges of which every valid coarsening makes at least one; none if the quotient is a tree."""
    base = frozenset([0])
    cluster_of = {i: cluster for cluster in partition for i in cluster} | {0: base}
    parent_of: dict[frozenset[int], frozenset[int]] = {}
    for cluster in sorted(partition, key=min):
        above = sorted({cluster_of[parents[i - 1]] for i in cluster} - {cluster}, key=min)
        if len(above) > 1:
            p, q = above[:2]
            pairs = [(p, q), (cluster, p), (cluster, q)]
            return [_merge(partition, *pair) for pair in pairs if base not in pair]
        parent_of[cluster] = above[0]
    ring = _ring(parent_of)
    # A ring of clusters, each the parent of the next, can only become one cluster.
    return [_merge(partition, *ring)] if ring else []


def _ring(parent_of: dict[frozenset[int], frozenset[int]]) -> list[frozenset[int]]:
    """Clusters that are each other's ancestors; empty where all descend from the base."""
    descends: set[frozenset[int]] = set()
    for cluster in sorted(parent_of, key=min):
        walk: dict[frozenset[int], None] = {}
        while cluster in parent_of and cluster not in descends and cluster not in walk:
            walk[cluster] = None
            cluster = parent_of[cluster]
        if cluster in walk:
            steps = list(walk)
            return steps[steps.index(cluster) :]
        descends.update(walk)
    return []


def _merge(partition: Partition, *clusters: frozenset[int]) -> Partition:
    return (partition - set(clusters)) | {frozenset().union(*clusters)}


def parent_clusters(
    clusters: Sequence[Sequence[int]], parents: Sequence[int]
) -> tuple[int | None, ...]:
    """For each cluster the index of its parent cluster; None where it hangs from the base."""
    index_of = {i: k for k, cluster in enumerate(clusters) for i in cluster}
    above = ({index_of.get(parents[i - 1]) for i in cluster} for cluster in clusters)
    return tuple(next(iter(indices - {k}), None) for k, indices in enumerate(above))


def _regular_order(partition: Partition, parents: Sequence[int]) -> tuple[tuple[int, ...], ...]:
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
