"""Search for positions that satisfy ``phi(q) = 0``, outside the kernels: from any start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.closing.independent import determining_in_cluster
from rbda_ros.cluster_tree.closing.newton import Closed, in_doubt, solve, worst_constraint
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    FOLLOW_STEP,
    LONGEST_FOLLOW,
    MAX_EXPLAINED,
    MAX_FOLLOW_STEPS,
    MEETING,
    NEARBY,
    SEARCH_RESTARTS,
    SHORTEST_FOLLOW_STEP,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.spanning_tree import joint_slices
from rbda_ros.errors import ClosureError
from rbda_ros.spatial import Array


def close_cluster(
    node: ClusterNode, known: Mapping[int, Array], guess: Array, may_jump: bool = True
) -> Array:
    """The closed position (nq,) of a cluster some of whose joints are known.

    The result is on the assembly branch of ``guess``: the known joints move from the guess to their
    positions in steps that stay on the branch. If that fails, as from a dead point, the search
    restarts from random positions near the target.

    Args:
        node: the cluster.
        known: position of each known joint, by its place in the cluster. Where more are known
            than needed, those that determine the others best are kept and the rest are guesses;
            the independent joints go first.
        guess: (nq,) where to start, e.g. the last position.
        may_jump: whether the other joints may end up on any branch. If not, they end up on that of
            the guess or, if the guess is not closed, no farther from it than the motion of the
            known joints explains (`_reach`).

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
    if may_jump and (direct := close_directly(node.loop, guess, target, free)) is not None:
        return direct
    closed, part = _follow(node, guess, target, determining, free)
    if part == 1.0:
        return closed.q
    best, moved = _restarted(node.loop, guess, target, free)
    reach = _reach(node.loop, guess, target, free, closed.ok)
    if best.ok and (may_jump or (part == 0.0 and moved <= reach)):
        return best.q
    raise ClosureError(_failure(node, best))


def close_directly(loop: Loop, guess: Array, target: Array, free: Sequence[int]) -> Array | None:
    """A position (nq,) by Newton steps from the target; None off the branch of the guess."""
    direct = solve(loop, target, free)
    on_branch = direct.ok and _side(loop, direct.q, free) == _side(loop, guess, free)
    return direct.q if on_branch else None


def _moved(loop: Loop, q: Array, guess: Array) -> float:
    """How far the joints that a loop is not linear in are from the guess; gears may run far."""
    return float(np.abs(q - guess)[loop.curved].max(initial=0.0))


def _reach(loop: Loop, guess: Array, target: Array, free: Sequence[int], closed: bool) -> float:
    """How far joints may move from a guess whose branch could not be followed to the target.

    That is `MAX_EXPLAINED` times as far as the rates at the guess predict, and a margin: near a
    dead point joints move with the square root of the way; if the guess is not closed, `NEARBY`.
    """
    way = target - guess
    given = explained = float(np.abs(way).max(initial=0.0))
    if loop.curved.size == loop.nv:  # of joints with quaternions the way is no difference
        K = loop.jacobian(guess)
        rates = np.linalg.lstsq(K[:, list(free)], -K @ way, rcond=1e-3)[0]
        explained = float(np.abs(rates)[loop.curved[list(free)]].max(initial=given))
    nearby = min(NEARBY, 2.0 * math.sqrt(given)) if closed else NEARBY
    return nearby + MAX_EXPLAINED * explained


def _restarted(
    loop: Loop, guess: Array, target: Array, free: Sequence[int]
) -> tuple[Closed, float]:
    """The best of several searches from near the target, and how far from the guess it is.

    Best is the closed position nearest to the guess, of those on its side (`_side`) if there are.
    """
    side = _side(loop, guess, free)
    rng = np.random.default_rng(0)
    found = [solve(loop, target, free)]
    for restart in range(SEARCH_RESTARTS):
        step = np.zeros(loop.nv)
        step[list(free)] = rng.normal(0.0, 0.2 * 1.12**restart, len(free))
        found.append(solve(loop, loop.integrate(target, step), free))

    def rank(closed: Closed) -> tuple[bool, bool, float]:
        if not closed.ok:
            return True, True, closed.error
        return False, _side(loop, closed.q, free) != side, _moved(loop, closed.q, guess)

    best = min(found, key=rank)
    return best, _moved(loop, best.q, guess)


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
) -> tuple[Closed, float]:
    """Move the known joints from a start to their targets without leaving the branch.

    Each step is predicted with the rates of the free joints, then closed. Steps grow while the
    motion is nearly straight, and are halved where it is not.

    Returns:
        The last position, and the part of the way that it is at: 1 at the targets, 0 if the start
        does not close or the way is too long.
    """
    assert node.loop is not None
    loop, columns = node.loop, list(free)
    move, start = _straight_move(node, start, target, known)
    curved = _curved_velocities(node)
    length = np.abs(move[curved]).max(initial=0.0)
    closed = solve(loop, start, free)
    if not closed.ok or not length <= LONGEST_FOLLOW:
        return closed, 0.0
    done, part = 0.0, 1.0 if length <= FOLLOW_STEP else FOLLOW_STEP / length
    rates = _rates(loop, closed.q, move, columns)
    for _ in range(MAX_FOLLOW_STEPS):
        part = min(part, 1.0 - done)
        if part <= 0.0:
            break
        predicted = loop.integrate(closed.q, part * rates)
        trial = solve(loop, predicted, free)
        ahead = _rates(loop, trial.q, move, columns)
        moved = part * np.abs([rates[curved], ahead[curved]]).max(initial=0.0)
        bent = part * np.abs(ahead - rates)[curved].max(initial=0.0)
        bent = max(bent, _moved(loop, trial.q, predicted))
        if trial.ok and math.isfinite(bent) and not in_doubt(moved, bent):
            closed, rates, done = trial, ahead, done + part
            part *= 1 if in_doubt(moved, 2 * bent) else 2
        elif part * length < SHORTEST_FOLLOW_STEP:
            break
        else:
            part /= 2
    if (1.0 - done) * length > 8 * SHORTEST_FOLLOW_STEP:  # some rejected steps are left over
        return closed, done
    arrived = closed.q.copy()
    for i, body_range in enumerate(node.velocity_ranges):  # without the rounding of many steps
        if set(body_range) <= set(known):
            arrived[node.position_ranges[i]] = target[node.position_ranges[i]]
    last = solve(loop, arrived, free)
    near = last.ok and _moved(loop, last.q, closed.q) <= MEETING
    return (last, 1.0) if near else (closed, done)


def _rates(loop: Loop, q: Array, move: Array, free: Sequence[int]) -> Array:
    """Motion (nv,) of all joints, by the rates at q, while the known ones make the whole move.

    Infinite where the rates are not finite, as of an expression at the end of its domain.
    """
    K, rates = loop.jacobian(q), move.copy()
    rates[list(free)] = np.inf
    if np.all(np.isfinite(K)):
        rates[list(free)] = np.linalg.lstsq(K[:, list(free)], -K @ move, rcond=1e-8)[0]
    return rates


def _curved_velocities(node: ClusterNode) -> NDArray[np.bool_]:
    """(nv,) which joints the loop is not linear in."""
    assert node.loop is not None
    curved = np.zeros(node.nv, bool)
    for _, in_q, in_qd in joint_slices(node.bodies):
        curved[in_qd] = node.loop.curved[in_q].any()
    return curved


def _straight_move(
    node: ClusterNode, start: Array, target: Array, known: Sequence[int]
) -> tuple[Array, Array]:
    """Motion (nv,) of the known joints, and where it starts.

    Joints with quaternions are not moved in steps: they start at their target.
    """
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
