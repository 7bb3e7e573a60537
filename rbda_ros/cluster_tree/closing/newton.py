"""Newton steps on ``phi(q) = 0`` (2) of one cluster: in kernels, and outside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    LONGEST_STEP,
    ON_LOOPS,
    SEARCH_STEPS,
    STALLED,
    STRAIGHT,
)
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.spanning_tree import joint_slices
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.spatial import Array, Matrix


def newton_steps(
    loop: Loop, start: Matrix, target: Matrix, free: Sequence[int], steps: int
) -> tuple[Matrix, Matrix]:
    """The position (nq) after a fixed number of steps, and 1 where its branch is in doubt, else 0.

    Straight-line code, for kernels. The first step goes along the rates at the start, so that the
    branch is the one they continue; the others are Newton's.

    Args:
        loop: whose known joints have as many positions as velocities; others that are not free,
            as a floating base, stay where they start.
        start: (nq) where to start; of the symbols that are traced.
        target: (nq) the same with the known entries where they should be.
        free: velocity coordinates that may move; where the loop is linear one step moves them all
            the way.
        steps: how many, two at least, where it is not linear.
    """
    columns, q = list(free), ca.SX(target)

    def moved_by(at: Matrix, step: Matrix) -> Matrix:
        return moved_along(loop, at, columns, step)

    if loop.constant or not columns:
        return moved_by(q, least_squares(loop.K(q)[:, columns], -loop.phi(q))), ca.DM(0.0)
    places = loop.scalar_positions
    known = [j for j in places if j not in columns]
    entries = [places[j] for j in known]
    others = [i for i in range(q.rows()) if i not in entries]
    way = (target - start)[entries]

    def step_and_rates(at: Matrix) -> tuple[Matrix, Matrix]:
        """Newton's step (free), and how far the rates take these entries on the way (free)."""
        K = loop.K(at)
        both = least_squares(K[:, columns], -ca.horzcat(loop.phi(at), K[:, known] @ way))
        return both[:, 0], both[:, 1]

    first, before = step_and_rates(start)
    predicted = q = moved_by(q, first + before)
    for _ in range(steps - 2):
        q = moved_by(q, least_squares(loop.K(q)[:, columns], -loop.phi(q)))
    last, after = step_and_rates(q)
    q = moved_by(q, last)
    curved = [i for i, j in enumerate(columns) if loop.curved_velocities[j]]
    given = [i for i, j in enumerate(known) if loop.curved_velocities[j]]
    ends = [i for i in others if loop.curved[i]]
    return q, in_doubt(
        _largest(way[given], first[curved], before[curved], after[curved]),
        _largest((after - before)[curved], (q - predicted)[ends]),
    )


def moved_along(loop: Loop, q: Matrix, columns: Sequence[int], step: Matrix) -> Matrix:
    """The position (nq) that a step of some velocity coordinates leads to from q.

    Quaternions go along their rate and are then made of length one again: the same as turning by
    the step, to first order, for less.
    """
    if q.rows() == loop.nv:
        q = ca.SX(q)
        q[list(columns)] += step
        return q
    whole = ca.SX(loop.nv, 1)
    whole[list(columns)] = step
    parts = []
    for body, in_q, in_qd in joint_slices(loop.bodies):
        moved = q[in_q] + body.model.rate(q[in_q], whole[in_qd])
        if body.model.nq != body.model.nv:
            quaternion = moved[-4:]
            moved = ca.vertcat(moved[:-4], quaternion / ca.sqrt(ca.sumsqr(quaternion)))
        parts.append(moved)
    return ca.vertcat(*parts)


def in_doubt(moved: Any, bent: Any) -> Any:
    """Whether a step may have led to another branch than its own; numbers, or traced symbols.

    Where branches meet, rates change over any distance, however short: at a dead point of the
    known joints those of the two branches are opposed, where branches cross they differ.

    Args:
        moved: how far the step led: the known joints, and the others by their rates [rad, m].
        bent: by how much it was not straight: the largest difference between what the rates at
            its two ends say, and between where they led to and where the loop closes.
    """
    return bent > STRAIGHT * moved + ON_LOOPS


def _largest(*vectors: Matrix) -> Matrix:
    return reduce(ca.fmax, ca.vertsplit(ca.fabs(ca.vertcat(0.0, *vectors))))


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


def closed_around(
    loop: Loop, q: Array, rng: np.random.Generator, reaches: Iterable[float]
) -> Iterator[Array]:
    """Closed positions (nq,) near q: one at most of each standard deviation of the joints."""
    for reach in reaches:
        closed = solve(loop, loop.integrate(q, rng.normal(0.0, reach, loop.nv)), range(loop.nv))
        if closed.ok:
            yield closed.q


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
