"""The first closed position of a cluster: near the guess if there is one, else from anywhere.

From anywhere, Levenberg-Marquardt steps lead to near a closed position. The rows that kernels keep
are as few as can be, and vanish where axes are opposed too; here all rows are taken (`Loop.whole`),
whose squares have few minima besides the closed positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rbda_ros.cluster_tree.closing.independent import AssemblyError
from rbda_ros.cluster_tree.closing.newton import Closed, solve, worst_constraint
from rbda_ros.cluster_tree.closing.tolerances import (
    AGREEING_STARTS,
    APPROACH_STEPS,
    ASSEMBLY_RESTARTS,
    CLOSED,
    LONGEST_STEP,
    MORE_FOR_LIMITS,
    NEAR_STARTS,
    RANK_TOLERANCE,
    ROUNDED,
    SAME_GAP,
    SAMPLES,
)
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.spanning_tree import joint_slices
from rbda_ros.errors import Problem
from rbda_ros.spatial import Array


def find_closed(loop: Loop, guess: Array, rng: np.random.Generator, rounding: float) -> Array:
    """A closed position (nq,), or one that leaves no more than ``rounding`` explains.

    Newton steps from the guess keep its branch. Where they fail, all rows are tried, from the
    guess and then from ever farther around it: a fixed number of starts. Positions outside
    joint limits are taken only where no other is found soon.

    Raises:
        AssemblyError: none was found; it tells what the gaps are.
    """
    direct = solve(loop, guess, range(loop.nv))
    if direct.ok:
        return direct.q
    around: list[Array] = []
    for start in _starts(loop, guess, rng, range(NEAR_STARTS)):
        around.append(start)
        closed = solve(loop, start, range(loop.nv))
        if closed.ok and not outside_limits(loop, closed.q):
            return closed.q
    farther = _starts(loop, guess, rng, range(NEAR_STARTS, ASSEMBLY_RESTARTS))
    nearest: list[Approach] = []
    outside: list[Array] = []
    nearly: list[Closed] = []
    for start in itertools.chain([guess], around, farther):
        near = approach(loop, start)
        nearest.append(near)
        closed = solve(loop, near.q, range(loop.nv))
        if closed.ok and not outside_limits(loop, closed.q):
            return closed.q
        if closed.ok:
            outside.append(closed.q)
        elif closed.error <= rounding and not closed.turned_over:
            nearly.append(closed)
        if len(outside) + len(nearly) > MORE_FOR_LIMITS:
            break
    if outside:
        return outside[0]
    if nearly:
        return min(nearly, key=lambda closed: closed.error).q
    raise AssemblyError(_failure(loop, nearest))


def _starts(loop: Loop, guess: Array, rng: np.random.Generator, restarts: range) -> Iterator[Array]:
    for restart in restarts:
        yield loop.integrate(guess, rng.normal(0.0, 0.1 * 1.1**restart, loop.nv))


def outside_limits(loop: Loop, q: Array) -> list[str]:
    """Names of the joints of one coordinate whose position is beyond their limits."""
    names = []
    for body, in_q, _ in joint_slices(loop.bodies):
        if body.model.nq == 1:
            lower, upper = body.joint.limits.lower, body.joint.limits.upper
            if lower < upper and not lower - CLOSED <= q[in_q.start] <= upper + CLOSED:
                names.append(body.joint.name)
    return names


def _failure(loop: Loop, nearest: list[Approach]) -> Problem:
    """Residual at the nearest position, and whether a longer search might have helped."""
    best = min(nearest, key=lambda near: near.gap)
    name, error = worst_constraint(loop, best.q)
    gaps = gaps_of(loop, best.q)
    turned_over = bool(np.any(loop.cosines(best.q) < 0.0))
    left = "its axes are opposed" if turned_over and error <= CLOSED else f"{error:.3g} is left"
    others = ", ".join(f"{other!r} {gap:.2g}" for other, gap in gaps.items() if other != name)
    stays, gap = _gap_that_stays(loop, best.q)
    # One start may end in a false minimum; several that end at the same gap do not.
    agreeing = sum(near.gap <= (1.0 + SAME_GAP) * best.gap for near in nearest)
    if gap:
        verdict = f"its dimensions cannot close: {gap:.3g} of {stays!r} stay at all joint positions"
    elif agreeing >= AGREEING_STARTS:
        verdict = "its dimensions cannot close"
    else:
        verdict = "the search may have missed a way"
    reason = (
        f"the loop does not close: {left} at the best position found"
        + (f" (and of {others})" if others else "")
        + f"; {verdict}"
    )
    return Problem(
        f"constraint {name!r}",
        reason,
        "check frames, lengths and ratios, or give an 'assembly' guess for its joints",
    )


def _gap_that_stays(loop: Loop, q: Array) -> tuple[str, float]:
    """The largest part of phi at q (nq,) that no joint motion changes: its constraint and size.

    For example, three parallel hinges change nothing along their axis. As files round angles, they
    may change it a little; the result is zero if that might be enough to close the loop.
    """
    rng = np.random.default_rng(0)
    around = [loop.integrate(q, rng.normal(0.0, 1.0, loop.nv)) for _ in range(SAMPLES)]
    K = np.hstack([loop.jacobian(at) for at in around])
    if not np.all(np.isfinite(K)):
        return "", 0.0
    U, values, _ = np.linalg.svd(K, full_matrices=True)
    values = np.pad(values, (0, len(U) - len(values)))
    owners = np.array(loop.row_constraint)
    for tolerance in (RANK_TOLERANCE, ROUNDED):
        moved = tolerance * values.max(initial=0.0)
        fixed = U[:, values <= moved]
        stays = fixed @ (fixed.T @ loop.residual(q))
        owner = owners[int(np.argmax(np.abs(stays)))]
        gap = float(np.linalg.norm(stays[owners == owner]))
        if gap > 10.0 * moved:
            return loop.constraints[owner].name, gap
    return "", 0.0


def gaps_of(loop: Loop, q: Array) -> dict[str, float]:
    """Largest |phi| of each constraint at q (nq,)."""
    gaps: dict[str, float] = {}
    for owner, row in zip(loop.row_constraint, np.abs(loop.residual(q)), strict=True):
        name = loop.constraints[owner].name
        gaps[name] = max(gaps.get(name, 0.0), float(row))
    return gaps


_CLOSE_ENOUGH = 1e-20
_NO_GAIN = 1e-7
_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e6


@dataclass(frozen=True, eq=False)
class Approach:
    """Where the steps ended.

    Attributes:
        q: (nq,) position.
        gap: length of the vector of all rows there.
    """

    q: Array
    gap: float


def approach(loop: Loop, start: Array) -> Approach:
    """The position nearest to closed that is downhill from ``start`` (nq,)."""
    q, damping = start, 1e-3
    rows, K = loop.whole_rows(q)
    cost = float(rows @ rows)
    for _ in range(APPROACH_STEPS):
        if not np.isfinite(cost) or not np.all(np.isfinite(K)):
            return Approach(start, np.inf)
        if cost <= _CLOSE_ENOUGH or damping > _MOST_DAMPING:
            break
        trial = loop.integrate(q, _shortened(loop, _damped_step(K, rows, damping)))
        trial_rows, trial_K = loop.whole_rows(trial)
        trial_cost = float(trial_rows @ trial_rows)
        if not trial_cost < cost:
            damping *= 4
            continue
        gain = cost - trial_cost
        q, rows, K, cost = trial, trial_rows, trial_K, trial_cost
        damping = max(damping / 8, _LEAST_DAMPING)
        if gain < _NO_GAIN * cost:
            break
    return Approach(q, float(np.sqrt(cost)))


def _damped_step(K: Array, rows: Array, damping: float) -> Array:
    """The step that minimises ``|K step + rows|^2 + damping |step|^2``; never squares K."""
    nv = K.shape[1]
    stacked = np.vstack([K, np.sqrt(damping) * np.eye(nv)])
    rhs = np.concatenate([-rows, np.zeros(nv)])
    return np.asarray(np.linalg.lstsq(stacked, rhs, rcond=None)[0], float)


def _shortened(loop: Loop, step: Array) -> Array:
    """The step, scaled down where joints that the loop is not linear in would turn too far."""
    bound = np.abs(step)
    if loop.curved.size == step.size:
        bound = bound[loop.curved]
    size = bound.max(initial=0.0) / (2 * LONGEST_STEP)
    return step if size <= 1.0 else step / size
