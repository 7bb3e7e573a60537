"""Random states of a robot: inside the limits of its joints, and on its loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import ClosureError, ModelError
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

UNBOUNDED = np.pi
"""How far a joint without limits is moved from the assembly, at most [rad, m]."""
SPEED = 1.0
"""Standard deviation of velocities [rad/s, m/s]; joints that are slower stay below their limit."""
SHORTER = 0.7
"""By how much a way is shortened that leads out of the limits, or where loops do not close."""
TRIALS = 40
"""Ways that are shortened until then: what is left is 1e-6 of the first."""


def random_state(robot: Robot, seed: int | np.random.Generator | None = None) -> State:
    """A random state: ``q`` on the loops and inside the limits, ``yd`` within those of velocities.

    Joints without limits move by up to half a turn. A floating base has a random orientation and is
    up to 1 m away from the origin.

    Args:
        seed: of the random numbers, or their generator.

    Raises:
        ClosureError: there is no position inside the limits near the assembly.
    """
    rng = np.random.default_rng(seed)
    limits, independent = robot.limits, list(robot.independent_coordinates)
    home = _with_random_base(robot, rng)
    way = _random_way(robot, rng)
    q = _reached(robot, home, way)
    speed = np.minimum(limits.velocity[independent], 3.0 * SPEED)
    yd = np.clip(rng.normal(0.0, SPEED, robot.ny), -speed, speed)
    return robot.state(q, yd)


def _with_random_base(robot: Robot, rng: np.random.Generator) -> Array:
    home = robot.tree.home.copy()
    if robot.floating_base:
        home[:3] += rng.uniform(-1.0, 1.0, 3)
        quaternion = rng.normal(size=4)
        home[3:7] = quaternion / np.linalg.norm(quaternion)
    return home


def _random_way(robot: Robot, rng: np.random.Generator) -> Array:
    """A change (ny,) of y from the assembly, inside the limits of its own joints."""
    layout, limits, home = robot.coordinates, robot.limits, robot.tree.home
    way = np.zeros(robot.ny)
    for k, j in enumerate(robot.independent_coordinates):
        if j < layout.base_nv:
            continue
        at = layout.scalar_positions.get(layout.owners[j])
        lower = upper = np.nan
        if at is not None:
            lower, upper = limits.lower[at] - home[at], limits.upper[at] - home[at]
        lower = lower if np.isfinite(lower) else -UNBOUNDED
        upper = upper if np.isfinite(upper) else UNBOUNDED
        way[k] = rng.uniform(min(lower, upper), upper)
    return way


def _reached(robot: Robot, home: Array, way: Array) -> Array:
    """A closed position as far along a way as limits and loops let it go."""
    step = robot.spanning_velocity(home, way)
    for trial in range(TRIALS):
        moved = robot.tree.integrate(home, SHORTER**trial * step)
        try:
            q = robot._closer.close_nearby(moved, home) if robot.tree.has_loops else moved
            if q is not None and _is_inside(robot, q):
                return robot.state(q).q
        except ModelError:
            continue  # off the branch, or at a dead point
    raise ClosureError(
        f"{robot.name}: no position inside the limits is found near the assembly; check its limits"
    )


def _is_inside(robot: Robot, q: Array) -> bool:
    return bool(((q >= robot.limits.lower) & (q <= robot.limits.upper)).all())
