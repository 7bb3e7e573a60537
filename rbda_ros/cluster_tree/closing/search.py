"""Search for positions that satisfy ``phi(q) = 0``, outside the kernels: from any start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rbda_ros.cluster_tree.closing.determining import determining_in_cluster
from rbda_ros.cluster_tree.closing.newton import Closed, solve, worst_constraint
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    FOLLOW_ERROR,
    FOLLOW_STEP,
    LONGEST_FOLLOW,
    MOST_EXPLAINED,
    MOST_FOLLOW_STEPS,
    NEARBY,
    SEARCH_RESTARTS,
    SHORTEST_FOLLOW_STEP,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.errors import ClosureError
from rbda_ros.spatial import Array


def close_cluster(
    node: ClusterNode, known: Mapping[int, Array], guess: Array, may_jump: bool = True
) -> Array:
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
        may_jump: whether the others may end up anywhere; if not, then no farther from the guess
            than the known ones explain.

    Raises:
        InputError: the known joints do not determine the others.
        ClosureError: no closed position was found; it names the loop and the gap.
    """
    target = guess.copy()
    for i, position in known.items():
        target[node.position_ranges[i]] = position
    if node.loop is None:
        return target
    determining = determining_in_cluster(node, known, target)
    free = [j for j in range(node.nv) if j not in determining]
    direct = solve(node.loop, target, free)
    reach = math.inf if may_jump else _reach(node.loop, guess, target, free)
    side = _side(node.loop, guess, free)
    same_branch = direct.ok and _side(node.loop, direct.q, free) == side
    if same_branch and _moved(node.loop, direct.q, guess) <= reach:
        return direct.q
    for start in (guess, node.home) if may_jump else (guess,):
        followed = _follow(node, start, target, determining, free)
        if followed is not None and followed.ok:
            return followed.q
    best = _restarted(node.loop, target, free, side, direct)
    if best.ok and _moved(node.loop, best.q, guess) <= reach:
        return best.q
    raise ClosureError(_failure(node, best))


def _moved(loop: Loop, q: Array, guess: Array) -> float:
    """How far the joints that a loop is not linear in are from the guess; gears may run far."""
    return float(np.abs(q - guess)[loop.curved].max(initial=0.0))


def _reach(loop: Loop, guess: Array, target: Array, free: Sequence[int]) -> float:
    """How far joints may move where the known ones move from the guess to the target.

    What the rates at the guess say, several times over: near a dead point the others move with
    the square root of the way.
    """
    given = float(np.abs(target - guess).max(initial=0.0))
    if loop.curved.size != loop.nv:  # joints with quaternions: their way is no difference
        return NEARBY + MOST_EXPLAINED * given
    K = loop.jacobian(guess)
    way = target - guess
    rates = np.linalg.lstsq(K[:, list(free)], -K @ way, rcond=1e-3)[0]
    explained = float(np.abs(rates)[loop.curved[list(free)]].max(initial=0.0))
    return NEARBY + MOST_EXPLAINED * max(explained, given)


def _restarted(
    loop: Loop, target: Array, free: Sequence[int], side: float, direct: Closed
) -> Closed:
    """The best of several searches from near the target, on the given side if possible."""
    rng = np.random.default_rng(0)
    attempts = [direct]
    for restart in range(SEARCH_RESTARTS):
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
    if closed.ok:
        return (
            f"constraint {name!r} of cluster {node.name!r} closes only far from the guess, on"
            " another branch: the given joint positions are out of reach of this one"
        )
    if closed.error <= CLOSED:
        return f"constraint {name!r} closes only with its axes opposed; start from another guess"
    return (
        f"constraint {name!r} of cluster {node.name!r} does not close: {gap:.3g} is left;"
        " the given joint positions are out of its reach"
    )


def _side(loop: Loop, q: Array, free: Sequence[int]) -> float:
    """Sign of det K_free: it changes where branches of the assembly meet."""
    K = loop.jacobian(q)[:, list(free)]
    return float(np.sign(np.linalg.det(K))) if K.shape[0] == K.shape[1] else 0.0


def _follow(
    node: ClusterNode, start: Array, target: Array, known: Sequence[int], free: Sequence[int]
) -> Closed | None:
    """Move the known joints from a closed start to their targets, never leaving the branch.

    Steps are predicted with the rates of the free joints, then closed; they grow while the
    prediction is good and are halved where it is not. None where no branch can be followed.
    """
    assert node.loop is not None
    loop = node.loop
    move, start = _straight_move(node, start, target, known)
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
        if set(body_range) <= set(known):
            arrived[node.position_ranges[i]] = target[node.position_ranges[i]]
    return solve(loop, arrived, free)


def _straight_move(
    node: ClusterNode, start: Array, target: Array, known: Sequence[int]
) -> tuple[Array, Array]:
    """The way (nv,) of the known joints, and the start; joints with quaternions jump at once."""
    move, start = np.zeros(node.nv), start.copy()
    ranges = zip(node.bodies, node.position_ranges, node.velocity_ranges, strict=True)
    for body, in_q, in_qd in ranges:
        known_here = [j for j in in_qd if j in known]
        if body.model.nq == body.model.nv:
            known_in_q = [in_q[j - in_qd.start] for j in known_here]
            move[known_here] = target[known_in_q] - start[known_in_q]
        elif known_here:
            start[in_q] = target[in_q]
    return move, start
