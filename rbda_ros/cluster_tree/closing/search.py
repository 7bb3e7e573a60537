"""Loop closure: positions that satisfy phi(q) = 0, by damped Newton steps (outside the kernel)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.errors import ClosureError, InputError

Array = NDArray[np.float64]

CLOSED = 1e-9
"""Largest |phi| of a loop that counts as closed [m, or sine of an angle]."""
ITERATIONS = 60
MOST_STALLED = 6
"""Steps in a row that gain less than a tenth before a search is given up: out of reach."""
LONGEST_STEP = 0.5
"""Newton steps are shortened to this [rad, m], so that they stay on their branch."""
FOLLOW_STEP = 0.25
"""How far the known joints move at first [rad, m] when a branch is followed."""
FOLLOW_ERROR = 0.1
"""Most that the others may end up from where their rates took them [rad, m]; else the step was
too long to be sure of the branch."""
SHORTEST_FOLLOW_STEP = 1e-4
LONGEST_FOLLOW = 100.0
"""Joints that have farther to go are not followed there [rad, m]: it would take seconds."""
MOST_FOLLOW_STEPS = 500
RESTARTS = 24
RANK_TOLERANCE = 1e-7


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
    """Newton from ``start`` (nq,), moving only the velocity coordinates in ``free``.

    Each step is the shortest that solves the linearized loop; it is halved until it helps, and
    the search goes on to the last digit.
    """
    q, columns, nv = start, list(free), loop.nv
    phi = loop.residual(q)
    stalled = 0
    for _ in range(ITERATIONS):
        if not columns or not np.any(phi) or stalled == MOST_STALLED:
            break
        step = np.zeros(nv)
        step[columns] = _shortest(loop.jacobian(q)[:, columns], -phi)
        improved = _line_search(loop, q, phi, step)
        if improved is None:
            break
        stalled = stalled + 1 if np.linalg.norm(improved[1]) > 0.9 * np.linalg.norm(phi) else 0
        q, phi = improved
    error = float(np.abs(phi).max(initial=0.0))
    turned_over = bool(np.any(np.asarray(loop.alignment(q)) < 0.0))
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


def close_cluster(node: ClusterNode, known: Mapping[int, Array], guess: Array) -> Array:
    """The closed position (nq,) of a cluster some of whose joints are known.

    The assembly branch is that of ``guess``, else that of the assembly: where a plain Newton
    search fails or lands on another branch, the known joints are moved there in small steps.
    Where that leads nowhere, as from a dead point, the search starts again from near there.

    Args:
        node: the cluster.
        known: position of each known joint, by its place in the cluster. Where more are known
            than needed, those that determine the others best are kept and the rest are guesses;
            the independent joints go first.
        guess: (nq,) where to start, e.g. the last position.

    Raises:
        InputError: the known joints do not determine the others.
        ClosureError: no closed position was found; it names the loop and the gap.
    """
    target = guess.copy()
    for i, position in known.items():
        target[node.position_ranges[i]] = position
    if node.loop is None:
        return target
    held = held_coordinates(node, known, target)
    free = [j for j in range(node.nv) if j not in held]
    direct = solve(node.loop, target, free)
    if direct.ok and _side(node.loop, direct.q, free) == _side(node.loop, guess, free):
        return direct.q
    for start in (guess, node.home):
        followed = _follow(node, start, target, held, free)
        if followed is not None and followed.ok:
            return followed.q
    best = _restarted(node.loop, target, free, _side(node.loop, guess, free), direct)
    if best.ok:
        return best.q
    raise ClosureError(_failure(node, best))


def _restarted(
    loop: Loop, target: Array, free: Sequence[int], side: float, direct: Closed
) -> Closed:
    """The best of several searches from near the target, on the given side if possible."""
    rng = np.random.default_rng(0)
    attempts = [direct]
    for restart in range(RESTARTS):
        step = np.zeros(loop.nv)
        step[list(free)] = rng.normal(0.0, 0.2 * 1.12**restart, len(free))
        closed = solve(loop, loop.integrate(target, step), free)
        if closed.ok and _side(loop, closed.q, free) == side:
            return closed
        attempts.append(closed)
    return min(attempts, key=lambda closed: (not closed.ok, closed.error))


def _failure(node: ClusterNode, closed: Closed) -> str:
    assert node.loop is not None
    name, gap = worst_constraint(node.loop, closed.q)
    if closed.error <= CLOSED:
        return f"constraint {name!r} closes only with its axes opposed; start from another guess"
    return (
        f"constraint {name!r} of cluster {node.name!r} does not close: {gap:.3g} is left;"
        " the given joint positions are out of its reach"
    )


def held_coordinates(node: ClusterNode, known: Collection[int], near: Array) -> list[int]:
    """The known velocity coordinates to go by: as many as determine the rest, y if it is there.

    Args:
        node: the cluster; it has a loop.
        known: places in the cluster of the joints that are known.
        near: (nq,) position at which they should determine the rest well.

    Raises:
        InputError: they determine the others nowhere; it names them.
    """
    assert node.loop is not None
    given = [
        j for i, body_range in enumerate(node.velocity_ranges) if i in known for j in body_range
    ]
    if set(node.independent) <= set(given):
        return list(node.independent)
    unknown = [j for j in range(node.nv) if j not in given]
    rank = node.nv - node.ny
    for q in chain((near, node.home), _around(node)):  # each may be a dead point
        K = node.loop.jacobian(q)
        basis, triangle = scipy.linalg.qr(K[:, unknown], mode="economic")
        if unknown and np.abs(np.diag(triangle)).min() < RANK_TOLERANCE:
            continue
        left = K[:, given] - basis @ (basis.T @ K[:, given])
        _, _, order = scipy.linalg.qr(left, mode="economic", pivoting=True)
        dependent = {given[int(j)] for j in order[: rank - len(unknown)]}
        if len(unknown) <= rank:
            return [j for j in given if j not in dependent]
    names = [name for body in node.bodies for name in body.velocity_names]
    raise InputError(
        f"joints {', '.join(names[j] for j in given) or '(none)'} do not determine"
        f" {', '.join(names[j] for j in unknown)}; give also some of these, or the independent"
        f" joints {', '.join(names[j] for j in node.independent)}"
    )


def _side(loop: Loop, q: Array, free: Sequence[int]) -> float:
    """Sign of det K_free: it changes where branches of the assembly meet."""
    K = loop.jacobian(q)[:, list(free)]
    return float(np.sign(np.linalg.det(K))) if K.shape[0] == K.shape[1] else 0.0


def _around(node: ClusterNode) -> Iterator[Array]:
    """A few closed positions near the assembly."""
    assert node.loop is not None
    rng = np.random.default_rng(0)
    for _ in range(4):
        near = node.loop.integrate(node.home, rng.normal(0.0, 0.1, node.nv))
        closed = solve(node.loop, near, range(node.nv))
        if closed.ok:
            yield closed.q


def _follow(
    node: ClusterNode, start: Array, target: Array, held: Sequence[int], free: Sequence[int]
) -> Closed | None:
    """Move the held joints from a closed start to their targets, never leaving the branch.

    Steps are predicted with the rates of the free joints, then closed; they grow while the
    prediction is good and are halved where it is not. None where no branch can be followed.
    """
    assert node.loop is not None
    loop = node.loop
    move, start = _straight_move(node, start, target, held)
    length = np.abs(move).max(initial=0.0)
    closed = solve(loop, start, free)
    if not closed.ok or not length <= LONGEST_FOLLOW:
        return None
    side = _side(loop, closed.q, free)
    done, part = 0.0, 1.0 if length <= FOLLOW_STEP else FOLLOW_STEP / length
    for _ in range(MOST_FOLLOW_STEPS):
        part = min(part, 1.0 - done)
        if part <= 0.0:
            break
        step = part * move
        K = loop.jacobian(closed.q)
        step[list(free)] = np.linalg.lstsq(K[:, list(free)], -K @ step, rcond=1e-8)[0]
        predicted = loop.integrate(closed.q, step)
        trial = solve(loop, predicted, free)
        error = np.abs(trial.q - predicted).max(initial=0.0)
        if trial.ok and error <= FOLLOW_ERROR and _side(loop, trial.q, free) == side:
            closed, done, part = trial, done + part, 2 * part
        elif part * length < SHORTEST_FOLLOW_STEP:
            return None
        else:
            part /= 2
    if done < 1.0:
        return None
    arrived = closed.q.copy()
    for i, body_range in enumerate(node.velocity_ranges):  # without the rounding of many steps
        if set(body_range) <= set(held):
            arrived[node.position_ranges[i]] = target[node.position_ranges[i]]
    return solve(loop, arrived, free)


def _straight_move(
    node: ClusterNode, start: Array, target: Array, held: Sequence[int]
) -> tuple[Array, Array]:
    """The way (nv,) of the held joints, and the start; joints with quaternions jump at once."""
    move, start = np.zeros(node.nv), start.copy()
    ranges = zip(node.bodies, node.position_ranges, node.velocity_ranges, strict=True)
    for body, in_q, in_qd in ranges:
        is_held = [j for j in in_qd if j in held]
        if body.model.nq == body.model.nv:
            in_q_held = [in_q[j - in_qd.start] for j in is_held]
            move[is_held] = target[in_q_held] - start[in_q_held]
        elif is_held:
            start[in_q] = target[in_q]
    return move, start


def worst_constraint(loop: Loop, q: Array) -> tuple[str, float]:
    """Name and |phi| of the constraint that is violated most at q."""
    phi = np.abs(loop.residual(q))
    worst = int(np.argmax(phi))
    return loop.constraints[loop.row_constraint[worst]].name, float(phi[worst])
