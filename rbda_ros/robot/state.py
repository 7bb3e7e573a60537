"""States, which are checked once and then trusted; random states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import ClosureError, InputError, ModelError
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class State:
    """Position and velocity of one robot, on its loops and away from their dead points.

    `Robot.state` returns it; every method accepts it instead of a position. Its arrays are its own
    and read-only: copy one to change it.

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

    def __post_init__(self) -> None:
        """Copy writeable arrays: numbers that change after the check would not be checked again."""
        for name in ("q", "yd"):
            given = getattr(self, name)
            if given.flags.writeable:
                own = given.copy()
                own.flags.writeable = False
                object.__setattr__(self, name, own)

    @property
    def single(self) -> bool:
        """Whether it is one state, not a batch."""
        return self.q.ndim == 1 and self.yd.ndim == 1

    def with_velocity(self, yd: Array) -> State:
        """The same position with another independent velocity (ny,) that was checked."""
        return replace(self, yd=yd)


UNBOUNDED = np.pi
"""How far a joint without limits is moved from the assembly, at most [rad, m]."""
SPEED = 1.0
"""Standard deviation of velocities [rad/s, m/s]; joints that are slower stay below their limit."""
SHORTER = 0.7
"""By how much a way is shortened that leads out of the limits, or where loops do not close."""
TRIALS = 40
"""Ways that are shortened until then: what is left is 1e-6 of the first."""


def random_state(
    robot: Robot, seed: int | np.random.Generator | None = None, count: int | None = None
) -> State:
    """A random state: ``q`` on the loops and inside the limits, ``yd`` within those of velocities.

    Joints without limits move by up to half a turn. A floating base has a random orientation and is
    up to 1 m away from the origin.

    Args:
        seed: of the random numbers, or their generator.
        count: how many states, for a batch: ``q`` (count, nq), ``yd`` (count, ny). The first is the
            one that the same seed gives without it.

    Raises:
        ClosureError: there is no position inside the limits near the assembly.
    """
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise InputError(f"count is {count!r}; give how many states, or None for one")
    rng = np.random.default_rng(seed)
    lower, upper = _bounds(robot)
    speed = np.minimum(robot.limits.velocity[list(robot.independent_coordinates)], 3.0 * SPEED)
    q, yd = np.empty((count or 1, robot.nq)), np.empty((count or 1, robot.ny))
    for i in range(1 if count is None else count):
        home = _with_random_base(robot, rng)
        q[i] = _reached(robot, home, rng.uniform(lower, upper))
        yd[i] = np.clip(rng.normal(0.0, SPEED, robot.ny), -speed, speed)
    return robot.state(q[0], yd[0]) if count is None else robot.state(q[:count], yd[:count])


def _with_random_base(robot: Robot, rng: np.random.Generator) -> Array:
    home = robot.neutral()
    if robot.floating_base:
        home[:3] += rng.uniform(-1.0, 1.0, 3)
        quaternion = rng.normal(size=4)
        home[3:7] = quaternion / np.linalg.norm(quaternion)
    return home


def _bounds(robot: Robot) -> tuple[Array, Array]:
    """How far (ny,) y may move from the assembly within the limits of its joints; 0 for a base."""
    layout, limits, home = robot.coordinates, robot.limits, robot.neutral()
    lower, upper = np.full(robot.ny, -UNBOUNDED), np.full(robot.ny, UNBOUNDED)
    for k, j in enumerate(robot.independent_coordinates):
        at = None if j < layout.base_nv else layout.scalar_positions.get(layout.owners[j])
        if j < layout.base_nv:
            lower[k] = upper[k] = 0.0
        elif at is not None:
            low, high = limits.lower[at] - home[at], limits.upper[at] - home[at]
            upper[k] = high if np.isfinite(high) else UNBOUNDED
            lower[k] = min(low if np.isfinite(low) else -UNBOUNDED, upper[k])
    return lower, upper


def _reached(robot: Robot, home: Array, way: Array) -> Array:
    """A closed position as far along a move (ny,) as limits and loops allow."""
    start = robot.state(home)
    for trial in range(TRIALS):
        moved = robot.integrate(start, way, SHORTER**trial)
        try:
            q = robot._closer.close_nearby(moved, home) if robot.has_loops else moved
            if q is not None and robot.within_limits(q):
                return robot.state(q).q
        except ModelError:
            continue  # off the branch, or at a dead point
    raise ClosureError(
        f"{robot.name}: no position inside the limits is found near the assembly; check its limits"
    )
