"""Where each joint's coordinates are in spanning vectors, and where a floating base's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Coordinates:
    """The layout of spanning vectors: positions q (nq,) and velocities qd (nv,).

    A floating base, if there is one, comes first in both.

    Attributes:
        positions: entries of q by joint name, in model order.
        velocities: entries of qd, likewise.
        base_nq: how many entries of q are the floating base's: 7, or 0 without one.
        base_nv: how many entries of qd are: 6, or 0.
    """

    positions: Mapping[str, range]
    velocities: Mapping[str, range]
    base_nq: int
    base_nv: int

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Joints that move, in model order, without the floating base's own."""
        names = tuple(self.positions)
        return names[1:] if self.base_nq else names

    @cached_property
    def scalar_positions(self) -> dict[str, int]:
        """Entry of q of each joint that has just one."""
        return {joint: place[0] for joint, place in self.positions.items() if len(place) == 1}

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """For each entry of qd, the joint it belongs to."""
        return tuple(joint for joint, place in self.velocities.items() for _ in place)


def ranges(sizes: Iterable[int]) -> tuple[range, ...]:
    """Where parts of these sizes are in the vector that stacks them."""
    starts = itertools.accumulate(sizes, initial=0)
    return tuple(range(start, stop) for start, stop in itertools.pairwise(starts))
