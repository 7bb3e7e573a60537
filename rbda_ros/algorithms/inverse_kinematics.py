"""Iterative inverse kinematics (Featherstone 2010, Fig. 6), made robust on the cluster tree.

The figure's Newton step ``J dy = error`` becomes a damped one (Levenberg and Marquardt), limited
in length and by the joint limits, and a target out of reach ends in the nearest position found
and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONGEST_STEP = 0.5
"""Longest step of any coordinate [rad, m]."""


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the search ended.

    Attributes:
        q: (nq,) spanning position.
        reached: whether the target is met to the tolerance.
        error: (6,) what is left: position [m], then rotation vector [rad], world axes.
        iterations: how many steps it took.
    """

    q: Array
    reached: bool
    error: Array
    iterations: int


@dataclass(frozen=True)
class Problem:
    """An inverse-kinematics problem as functions of the spanning position.

    Attributes:
        error: ``q -> (m,)`` target minus pose.
        jacobian: ``q -> (m, ny)`` of the pose.
        move: ``q, dy -> q`` along the constraint manifold and within the limits; None where the
            loops cannot follow.
    """

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    move: Callable[[Array, Array], Array | None]


def solve(problem: Problem, start: Array, tolerance: float, most_iterations: int) -> Reached:
    """Steps from ``start`` until the error is below ``tolerance`` or cannot be made smaller."""
    q, error = start, problem.error(start)
    damping = 1e-3
    for iteration in range(most_iterations):
        if np.abs(error).max(initial=0.0) <= tolerance:
            return Reached(q, True, error, iteration)
        J = problem.jacobian(q)
        step = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(len(error)), error)
        step *= min(1.0, LONGEST_STEP / np.abs(step).max(initial=LONGEST_STEP))
        trial = problem.move(q, step)
        if trial is not None and np.linalg.norm(new := problem.error(trial)) < np.linalg.norm(
            error
        ):
            q, error, damping = trial, new, max(damping / 10, 1e-12)
        elif damping < 1e6:
            damping *= 10
        else:
            break
    return Reached(q, bool(np.abs(error).max(initial=0.0) <= tolerance), error, most_iterations)
