"""Loop closure: positions that satisfy phi(q) = 0, by damped Newton steps (outside the kernel)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
LONGEST_STEP = 0.5
"""Newton steps are shortened to this [rad, m], so that they stay on their branch."""
FOLLOW_STEP = 0.05
"""How far joints move [rad, m] between two closures when a branch is followed."""
MOST_FOLLOW_STEPS = 2000
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
    for _ in range(ITERATIONS):
        if not columns or not np.any(phi):
            break
        step = np.zeros(nv)
        step[columns] = _shortest(loop.jacobian(q)[:, columns], -phi)
        improved = _line_search(loop, q, phi, step)
        if improved is None:
            break
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
    held = _held(node, known, target)
    free = [j for j in range(node.nv) if j not in held]
    direct = solve(node.loop, target, free)
    if direct.ok and _side(node.loop, direct.q, free) == _side(node.loop, guess, free):
        return direct.q
    for start in (guess, node.home):
        followed = _follow(node, start, target, held, free)
        if followed is not None and followed.ok:
            return followed.q
    if direct.ok:
        return direct.q
    raise ClosureError(_failure(node, direct))


def _failure(node: ClusterNode, closed: Closed) -> str:
    assert node.loop is not None
    name, gap = worst_constraint(node.loop, closed.q)
    if closed.error <= CLOSED:
        return f"constraint {name!r} closes only with its axes opposed; start from another guess"
    return (
        f"constraint {name!r} of cluster {node.name!r} does not close: {gap:.3g} is left;"
        " the given joint positions are out of its reach"
    )


def _held(node: ClusterNode, known: Mapping[int, Array], target: Array) -> list[int]:
    """The known velocity coordinates that stay as given: as many as determine the rest."""
    assert node.loop is not None
    given = [
        j for i, body_range in enumerate(node.velocity_ranges) if i in known for j in body_range
    ]
    if set(node.independent) <= set(given):
        return list(node.independent)
    unknown = [j for j in range(node.nv) if j not in given]
    rank = node.nv - node.ny
    for q in (target, node.home):
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


def _follow(
    node: ClusterNode, start: Array, target: Array, held: Sequence[int], free: Sequence[int]
) -> Closed | None:
    """Move the held joints from a closed start to their targets in small steps."""
    assert node.loop is not None
    if node.nq != node.nv:
        return None  # joints with quaternions are not moved along straight lines
    move = np.zeros(node.nv)
    move[list(held)] = (target - start)[list(held)]
    steps = math.ceil(np.abs(move).max(initial=0.0) / FOLLOW_STEP) + 1
    if steps > MOST_FOLLOW_STEPS:
        return None
    closed = solve(node.loop, start, free)
    for _ in range(steps):
        if not closed.ok:
            return closed
        closed = solve(node.loop, closed.q + move / steps, free)
    arrived = closed.q.copy()
    arrived[list(held)] = target[list(held)]  # without the rounding of many steps
    return solve(node.loop, arrived, free)


def worst_constraint(loop: Loop, q: Array) -> tuple[str, float]:
    """Name and |phi| of the constraint that is violated most at q."""
    phi = np.abs(loop.residual(q))
    worst = int(np.argmax(phi))
    return loop.constraints[loop.row_constraint[worst]].name, float(phi[worst])
