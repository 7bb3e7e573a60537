"""Which of the joints that callers name to go by; the choices made last are cached."""

from __future__ import annotations

from collections.abc import Collection

from rbda_ros.cluster_tree.closing.determining import (
    Measured,
    check_names,
    closes_by_newton,
    determining_coordinates,
    determining_positions,
    independent_positions,
    measured_joints,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.cache import LruCache
from rbda_ros.spatial import Array

MOST_CHOICES = 256
"""Sets of names whose choice is cached; callers mostly use a few."""

Positions = tuple[tuple[str, ...], tuple[int, ...]]


class JointChoices:
    """Chooses, in each cluster, the independent joints if all are given, else what is.

    Attributes:
        independent_positions: entries of q that are the position of y; None where y has only part
            of some joint.
        newton_positions: the same where Newton steps in a kernel can close the loops from them;
            else None.
    """

    def __init__(self, tree: ClusterTree) -> None:
        self._tree = tree
        self.independent_positions = independent_positions(tree)
        self.newton_positions = self.independent_positions if closes_by_newton(tree) else None
        self._positions: LruCache[tuple[str, ...], tuple[Positions | None]] = LruCache(MOST_CHOICES)
        self._coordinates: LruCache[frozenset[str], tuple[int, ...]] = LruCache(MOST_CHOICES)

    def check_names(self, names: Collection[str]) -> None:
        """Refuse names that are no moving joints."""
        check_names(self._tree, names)

    def positions(self, names: tuple[str, ...]) -> Positions | None:
        """Names and entries of q to hold, where Newton steps in a kernel do the rest; else None."""
        (chosen,) = self._positions.get_or_make(
            names, lambda: (determining_positions(self._tree, names),)
        )
        return chosen

    def coordinates(self, what: str, names: Collection[str], q: Array) -> tuple[int, ...]:
        """Spanning velocity coordinates to hold; see `determining_coordinates`."""
        key = frozenset(names)
        coordinates = self._coordinates.get(key)
        if coordinates is None:
            coordinates, everywhere = determining_coordinates(self._tree, what, names, q)
            if everywhere:
                self._coordinates.put(key, coordinates)
        return coordinates

    def measured(self, what: str, names: Collection[str]) -> Measured:
        """Of the joints that are measured or given, one number each, those to go by."""
        return measured_joints(self._tree, what, names)
