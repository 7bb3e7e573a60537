"""Joint states as the stream reads them, whatever read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rbda_ros.node.stream.rates import Vector


@dataclass(eq=False)
class JointStates:
    """One message.

    Attributes:
        names: the same object for messages that name the same joints.
        time: its stamp [ns].
        position, velocity, effort: as many as names, or not.
    """

    __slots__ = ("effort", "names", "position", "time", "velocity")
    names: tuple[str, ...]
    time: int
    position: Vector
    velocity: Vector
    effort: Vector


class Form(Protocol):
    """Where the numbers are in messages that are read in place.

    Attributes:
        names: of the joints.
        size: of such a message, in bytes.
        position_at, velocity_at, effort_at: where the numbers begin.
        counts: how many positions, velocities and efforts there are.
        has_positions, has_velocities, has_efforts: whether there is one for every name.
        pattern, mask: what all such messages have in common, up to the velocities.
    """

    names: tuple[str, ...]
    size: int
    position_at: int
    velocity_at: int
    effort_at: int
    counts: tuple[int, int, int]
    has_positions: bool
    has_velocities: bool
    has_efforts: bool
    pattern: bytes
    mask: bytes
