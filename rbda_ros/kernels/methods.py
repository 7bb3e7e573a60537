"""Which loops forward dynamics embeds, and which it closes by their forces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rbda_ros.cluster_tree.constraints import bodies_tied
from rbda_ros.cluster_tree.open_loops import open_loops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Constraint
from rbda_ros.errors import DescriptionError
from rbda_ros.kernels.trace import trace

LARGEST_CLUSTER = 24
"""Bodies of a cluster beyond which embedding its loops is not even tried: it costs their cube."""


@dataclass(frozen=True)
class Trial:
    """Instructions of forward dynamics with one loop embedded, and with it closed by its forces.

    ``embedded`` is None where the cluster would be too large to try.
    """

    embedded: int | None
    by_forces: int


@dataclass(frozen=True)
class Methods:
    """The choice for one robot.

    Attributes:
        by_forces: names of the constraints that are closed by their forces.
        trials: for each ``auto`` constraint, what decided the choice.
    """

    by_forces: frozenset[str]
    trials: Mapping[str, Trial]


def choose_methods(tree: ClusterTree) -> Methods:
    """Follow what the constraints say, and count instructions where they say ``auto``.

    All ``auto`` loops are first left open. Then they are embedded one by one, small ones first,
    wherever that makes the traced forward dynamics shorter. Where embedding all of them is
    shorter still, because they share a cluster, it is preferred.
    """
    asked = {c.name: c.method or "embed" for c in tree.description.constraints}
    forced = frozenset(name for name, method in asked.items() if method == "proximal")
    undecided = [c for c in tree.description.constraints if c.method == "auto"]
    by_forces = forced | {c.name for c in undecided}
    if not undecided:
        return Methods(by_forces, {})
    shortest = _instructions(tree, by_forces)
    if shortest is None:
        return Methods(forced, {})
    everything_open = shortest
    trials: dict[str, Trial] = {}
    for constraint in sorted(undecided, key=lambda c: len(bodies_tied(tree.spanning, c))):
        name = constraint.name
        embedded = None
        if _cluster_size(tree, constraint) <= LARGEST_CLUSTER:
            embedded = _instructions(tree, by_forces - {name})
        trials[name] = Trial(embedded, shortest)
        if embedded is not None and embedded < shortest:
            by_forces, shortest = by_forces - {name}, embedded
    if by_forces != forced and max(_cluster_size(tree, c) for c in undecided) <= LARGEST_CLUSTER:
        all_embedded = _instructions(tree, forced)
        if all_embedded is not None and all_embedded < shortest:
            by_forces = forced
            trials = {c.name: Trial(all_embedded, everything_open) for c in undecided}
    return Methods(by_forces, trials)


def _instructions(tree: ClusterTree, by_forces: Collection[str]) -> int | None:
    """Instructions of forward dynamics; None where what is left embedded locks a joint."""
    try:
        loops = open_loops(tree, by_forces) if by_forces else None
    except DescriptionError:
        return None
    return trace(tree, "forward_dynamics", loops=loops).instructions


def _cluster_size(tree: ClusterTree, constraint: Constraint) -> int:
    """Bodies of the cluster that a constraint makes part of when all loops are embedded."""
    body = min(bodies_tied(tree.spanning, constraint))
    return len(tree.clusters[tree.place_of(body)[0]].bodies)
