"""Newton steps on ``phi(q) = 0`` (2) of one cluster: in kernels, and outside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    LONGEST_STEP,
    SEARCH_STEPS,
    STALLED,
)
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.spatial import Array, Matrix


def newton_steps(loop: Loop, q: Matrix, free: Sequence[int], steps: int) -> Matrix:
    """The position (nq) after a fixed number of full steps: straight-line code, for kernels.

    Args:
        loop: of joints that have as many positions as velocities.
        q: (nq) position to start from; of the symbols that are traced.
        free: entries that may move; where the loop is linear one step moves them all the way.
        steps: how many, where it is not linear.
    """
    for _ in range(1 if loop.constant else steps):
        K, phi = loop.K(q), loop.phi(q)
        q[list(free)] += least_squares(K[:, list(free)], -phi)
    return q


@dataclass(frozen=True, eq=False)
class Closed:
    """Where a search ended: position (nq,), largest |phi|, and whether frames are turned over.

    Rows of sines vanish at 180 degrees too: a cut whose axes end up opposed is not closed.
    """

    q: Array
    error: float
    turned_over: bool

    @property
    def ok(self) -> bool:
        """Whether every loop closes."""
        return self.error <= CLOSED and not self.turned_over


def solve(loop: Loop, start: Array, free: Sequence[int]) -> Closed:
    """Damped Newton from ``start`` (nq,), moving only the velocity coordinates in ``free``.

    Each step is the shortest that solves the linearized loop; it is halved until it helps, and
    the search goes on to the last digit.
    """
    check_cancelled()
    q, columns, nv = start, list(free), loop.nv
    phi = loop.residual(q)
    stalled = 0
    for _ in range(SEARCH_STEPS):
        if not columns or not np.any(phi) or stalled == STALLED:
            break
        step = np.zeros(nv)
        step[columns] = _shortest(loop.jacobian(q)[:, columns], -phi)
        improved = _line_search(loop, q, phi, step)
        if improved is None:
            break
        stalled = stalled + 1 if np.linalg.norm(improved[1]) > 0.9 * np.linalg.norm(phi) else 0
        q, phi = improved
    error = float(np.abs(phi).max(initial=0.0))
    turned_over = bool(np.any(loop.cosines(q) < 0.0))
    return Closed(q, error if math.isfinite(error) else math.inf, turned_over)


def _shortest(K: Array, rhs: Array) -> Array:
    if not np.all(np.isfinite(K)) or not np.all(np.isfinite(rhs)):
        return np.zeros(K.shape[1])
    step = np.asarray(np.linalg.lstsq(K, rhs, rcond=1e-8)[0], float)
    size = np.abs(step).max(initial=0.0)
    return step if size <= LONGEST_STEP else step * (LONGEST_STEP / size)


def _line_search(loop: Loop, q: Array, phi: Array, step: Array) -> tuple[Array, Array] | None:
    for halvings in range(12):
        trial = loop.integrate(q, step / 2**halvings)
        trial_phi = loop.residual(trial)
        if np.linalg.norm(trial_phi) < np.linalg.norm(phi):
            return trial, trial_phi
    return None


def worst_constraint(loop: Loop, q: Array) -> tuple[str, float]:
    """Name and |phi| of the constraint that is violated most at q."""
    phi = np.abs(loop.residual(q))
    worst = int(np.argmax(phi))
    return loop.constraints[loop.row_constraint[worst]].name, float(phi[worst])
