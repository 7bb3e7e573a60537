"""A state that was checked: made where arguments come in, and trusted from there on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rbda_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class State:
    """Position and velocity of one robot, on its loops and away from their dead points.

    `Robot.state` returns it; every method accepts it instead of a position.

    Attributes:
        q: (nq,) spanning position, with unit quaternions [rad, m]; or a batch (N, nq).
        yd: (ny,) independent velocity [rad/s, m/s], zero where none was given; or (N, ny).
        residual: largest |phi(q)| of the loops [m, or sine of an angle]; 0 without loops.
        conditioning: how well y determines the worst loop, from 0 at a dead point to 1.
        of: whose state it is; robots that differ only in their payloads share their states.
    """

    q: Array
    yd: Array
    residual: float
    conditioning: float
    of: object = field(repr=False)

    @property
    def single(self) -> bool:
        """Whether it is one state, not a batch."""
        return self.q.ndim == 1 and self.yd.ndim == 1

    def with_velocity(self, yd: Array) -> State:
        """The same position with another independent velocity (ny,) that was checked."""
        return replace(self, yd=yd)
