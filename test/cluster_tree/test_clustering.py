"""Clusters against a brute-force search over all partitions, and on named topologies."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_table import MECHANISMS

from rbda_ros.cluster_tree.clustering import find_clusters, parent_clusters

Clusters = Sequence[Sequence[int]]


@st.composite
def graphs(draw, most_bodies: int):
    """A random tree (parents before children) and random sets of bodies that loops tie."""
    count = draw(st.integers(1, most_bodies))
    parents = [draw(st.integers(0, i)) for i in range(count)]
    body_sets = st.sets(st.integers(1, count), min_size=1, max_size=4)
    return parents, draw(st.lists(body_sets, max_size=3))


def is_valid(clusters: Clusters, parents: Sequence[int], tied: Sequence[set[int]]) -> bool:
    """Whether every constraint is inside one cluster and the quotient graph is a tree."""
    cluster_of = {i: k for k, cluster in enumerate(clusters) for i in cluster} | {0: None}
    if any(len({cluster_of[i] for i in bodies}) > 1 for bodies in tied):
        return False
    above: dict[int | None, int | None] = {}
    for k, cluster in enumerate(clusters):
        found = {cluster_of[parents[i - 1]] for i in cluster} - {k}
        if len(found) != 1:
            return False
        (above[k],) = found
    for k in above:
        steps = 0
        while k is not None:
            k, steps = above[k], steps + 1
            if steps > len(clusters):
                return False  # a ring that never reaches the base
    return True


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in partitions(rest):
        yield [[first], *partition]
        for k, block in enumerate(partition):
            yield [*partition[:k], [first, *block], *partition[k + 1 :]]


def cost(clusters: Clusters) -> int:
    return sum(len(cluster) ** 3 for cluster in clusters)


def refines(fine: Clusters, coarse: Clusters) -> bool:
    return all(any(set(block) <= set(whole) for whole in coarse) for block in fine)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(graphs(most_bodies=30))
def test_the_quotient_is_a_tree_in_regular_order(graph):
    parents, tied = graph
    clusters = find_clusters(parents, tied)
    assert sorted(itertools.chain(*clusters)) == list(range(1, len(parents) + 1))
    assert is_valid(clusters, parents, tied)
    above = parent_clusters(clusters, parents)
    assert all(l is None or l < k for k, l in enumerate(above))
    cluster_of = {i: k for k, cluster in enumerate(clusters) for i in cluster}
    for k, (cluster, l) in enumerate(zip(clusters, above, strict=True)):
        assert list(cluster) == sorted(cluster)
        assert {cluster_of.get(parents[i - 1]) for i in cluster} <= {k, l}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(graphs(most_bodies=7))
def test_no_valid_clustering_is_cheaper_or_finer(graph):
    parents, tied = graph
    clusters = find_clusters(parents, tied)
    bodies = range(1, len(parents) + 1)
    for other in partitions(list(bodies)):
        if is_valid(other, parents, tied):
            assert cost(other) >= cost(clusters)
            assert not refines(other, clusters) or len(other) == len(clusters)


def test_numbering_does_not_depend_on_the_order_of_constraints():
    parents = [0, 1, 1, 2, 3, 0, 6, 6]
    tied = [{4, 5}, {7, 8}, {2, 4}]
    expected = find_clusters(parents, tied)
    for order in itertools.permutations(tied):
        assert find_clusters(parents, order) == expected


def test_figure_4_of_chignoli_2024():
    """The features that its text and caption tell of Fig. 4; the drawing is not in our source.

    Bodies 2, 3, 6, 7: nested loops (a chord 2-3 inside the chord 6-7). Body 4 is in two loops.
    Cluster 15 has base bodies 15 and 16. Lambda(4) = 1, Lambda(14) = 11.
    """
    #          1  2  3  4  5  6  7  8  9 10 11 12 13  14  15  16
    parents = [0, 1, 1, 1, 1, 2, 3, 4, 5, 4, 8, 9, 6, 11, 13, 13]
    tied = [{2, 3}, {2, 6, 3, 7}, {4, 5}, {4, 8, 5, 9}, {15, 16}]
    clusters = find_clusters(parents, tied)
    assert set(clusters) == {
        (1,), (2, 3, 6, 7), (13,), (15, 16), (4, 5, 8, 9), (10,), (11,), (12,), (14,),
    }  # fmt: skip
    above = dict(zip(clusters, parent_clusters(clusters, parents), strict=True))
    assert clusters[above[2, 3, 6, 7]] == clusters[above[4, 5, 8, 9]] == (1,)
    assert clusters[above[14,]] == (11,)
    base_bodies = [i for i in (15, 16) if parents[i - 1] not in (15, 16)]
    assert base_bodies == [15, 16]


@pytest.mark.parametrize(
    ("parents", "tied", "expected"),
    [
        ([0, 1, 2], [], [(1,), (2,), (3,)]),
        ([0, 1, 1], [{2, 3}], [(1,), (2, 3)]),
        # A gear over a joint between: that body is on the path and must come along.
        ([0, 1, 2], [{1, 3}], [(1, 2, 3)]),
        # Two branches whose tips are geared: the tips hang from both roots.
        ([0, 1, 0, 3], [{2, 4}], [(1, 3), (2, 4)]),
        # The same under the fixed base, which no cluster can take in.
        ([0, 1, 0], [{2, 3}], [(1, 2, 3)]),
        # Overlapping loops share a body; chained loops do not.
        ([0, 1, 1, 1], [{2, 3}, {3, 4}], [(1,), (2, 3, 4)]),
        ([0, 0, 1, 1], [{1, 2}, {3, 4}], [(1, 2), (3, 4)]),
        # Clusters that would be each other's parents: 2 above 3, and 1 above 4.
        ([0, 0, 2, 1], [{1, 3}, {2, 4}], [(1, 2, 3, 4)]),
    ],
    ids=["chain", "gear", "path", "tips", "base", "overlapping", "chained", "ring"],
)
def test_named_topologies(parents, tied, expected):
    assert list(find_clusters(parents, tied)) == expected


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_have_the_clusters_counted_by_hand(name):
    mechanism = MECHANISMS[name]
    found = {frozenset(b.joint.name for b in node.bodies) for node in mechanism.tree().clusters}
    expected = {frozenset(joints.split()) for joints in mechanism.clusters}
    if mechanism.floating_base and not any("floating_base" in group for group in expected):
        expected.add(frozenset({"floating_base"}))
    assert found == expected


def geared_chain(bodies: int, gears: int, rotor_back: int) -> tuple[list[int], list[set[int]]]:
    """A chain with rotors ``rotor_back`` bodies below the link they turn."""
    parents, tied = list(range(bodies)), []
    for g in range(gears):
        link = rotor_back + 1 + g * (bodies - rotor_back - 1) // gears
        parents.append(link - rotor_back - 1)
        tied.append({link, len(parents)})
    return parents, tied


@pytest.mark.parametrize("rotor_back", [0, 1, 2])
def test_long_chains_of_gears_are_clustered_quickly(rotor_back):
    parents, tied = geared_chain(2000, 500, rotor_back)
    start = time.process_time()
    clusters = find_clusters(parents, tied)
    assert time.process_time() - start < 2.0
    assert is_valid(clusters, parents, tied)
    # Rotors on the link below need a pair; one further back, the link between comes along.
    assert max(map(len, clusters)) <= 2 + rotor_back


def test_many_choices_that_meet_are_settled_quickly():
    """A rotor two links back on every joint: all choices hang together, and no bound is proven."""
    parents, tied = geared_chain(300, 299, 1)
    start = time.process_time()
    clusters = find_clusters(parents, tied)
    assert time.process_time() - start < 3.0
    assert is_valid(clusters, parents, tied)


def test_many_separate_choices_do_not_spoil_each_other():
    """Ten legs whose rotor sits two links back: each is as cheap as it would be alone."""
    parents, tied = geared_chain(4, 1, 2)
    alone = cost(find_clusters(parents, tied))
    legs, sets = [], []
    for leg in range(10):
        first = leg * len(parents)
        legs += [p + first if p else 0 for p in parents]
        sets += [{i + first for i in bodies} for bodies in tied]
    assert cost(find_clusters(legs, sets)) == 10 * alone
