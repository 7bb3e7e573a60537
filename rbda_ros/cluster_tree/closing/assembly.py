"""Assemble a cluster once, at load: close it, drop redundant rows, choose independent joints.

What K can do is judged at several closed positions, because one position may be singular: the
zero position of a parallelogram linkage is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rbda_ros.cluster_tree.closing.newton import solve, worst_constraint
from rbda_ros.cluster_tree.closing.tolerances import (
    ASSEMBLY_RESTARTS,
    CLOSED,
    MOST_CHOICES,
    RANK_TOLERANCE,
    ROUNDED,
    SAMPLES,
    USABLE,
)
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.description.model import CutJoint
from rbda_ros.errors import Problem
from rbda_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class Assembly:
    """An assembled cluster.

    Attributes:
        home: (nq,) a closed position that is not singular.
        loop: the constraints without redundant rows.
        independent: velocity coordinates that are y.
        warnings: what is odd but usable.
    """

    home: Array
    loop: Loop
    independent: tuple[int, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Wishes:
    """What the files say about one cluster's independent joints, as velocity coordinates.

    Attributes:
        required: must be independent.
        allowed: may be independent.
        preferred: the actuated ones.
        listed: whether the loop file lists them, so that the choice is not ours.
    """

    required: frozenset[int]
    allowed: frozenset[int]
    preferred: frozenset[int]
    listed: bool


class AssemblyError(Exception):
    """A cluster cannot be assembled; carries the `Problem`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def assemble(loop: Loop, guess: Array, wishes: Wishes, names: Sequence[str]) -> Assembly:
    """Assemble one cluster.

    Args:
        loop: its constraints, with all rows.
        guess: (nq,) where to look for a closed position.
        wishes: what the files say about independent joints.
        names: of the velocity coordinates, for messages.

    Raises:
        AssemblyError: with what to change.
    """
    _check_consistent(loop)
    rng = np.random.default_rng(0)
    loop, warnings = _without_rounding(loop, guess, rng)
    home = _close(loop, guess, rng)
    positions = [home, *_nearby(loop, home, rng)]
    jacobians = [_unit_rows(loop.jacobian(q)) for q in positions]
    rank = max(_rank(K) for K in jacobians)
    regular = [i for i, K in enumerate(jacobians) if _rank(K) == rank]
    home, jacobians = positions[regular[0]], [jacobians[i] for i in regular]
    freedom = len(names) - rank
    if freedom == 0:
        constraints = _names(loop)
        raise AssemblyError(
            Problem(
                f"constraints {constraints}",
                f"they leave no freedom to {', '.join(names)}",
                "remove a constraint, or make these joints fixed",
            )
        )
    rows = _full_rank_rows(jacobians, rank)
    independent = _choose([K[rows] for K in jacobians], freedom, wishes, names)
    if regular[0] > 0:
        warnings.append(
            f"constraints {_names(loop)}: the loop is singular where it was assembled, so that"
            " its branch is a matter of chance; give an 'assembly' guess"
        )
    return Assembly(home, loop.with_rows(rows), independent, tuple(warnings))


def _without_rounding(loop: Loop, guess: Array, rng: np.random.Generator) -> tuple[Loop, list[str]]:
    """The loop without rows that only rounding makes.

    A planar linkage has rows out of its plane, zero in exact numbers. Where a file rounds an
    angle to 1.5708 they are not quite zero, and would lock the linkage or keep it from closing.
    """
    near = [loop.integrate(guess, rng.normal(0.0, 0.3, loop.nv)) for _ in range(SAMPLES)]
    sizes = np.max([np.linalg.norm(loop.jacobian(q), axis=1) for q in near], axis=0, initial=0.0)
    gaps = np.max([np.abs(loop.residual(q)) for q in near], axis=0, initial=0.0)
    rounded = [
        i
        for i, (size, gap) in enumerate(zip(sizes, gaps, strict=True))
        if isinstance(loop.constraints[loop.row_constraint[i]], CutJoint)
        and size < ROUNDED * sizes.max()
        and gap < ROUNDED
    ]
    if not rounded:
        return loop, []
    named = sorted({loop.constraints[loop.row_constraint[i]].name for i in rounded})
    warning = (
        f"constraints {', '.join(map(repr, named))}: the loop is planar but for rounding in its"
        f" frames ({gaps[rounded].max():.1g} out of plane), which is ignored"
    )
    kept = [i for i in range(len(sizes)) if i not in rounded]
    return loop.with_rows(kept), [warning] if gaps[rounded].max() > CLOSED else []


def _names(loop: Loop) -> str:
    return ", ".join(repr(constraint.name) for constraint in loop.constraints)


def _check_consistent(loop: Loop) -> None:
    """Linear rows that contradict each other cannot be closed from any guess: name them."""
    if not loop.constant:
        return
    zero = np.zeros(loop.phi.size1_in(0))
    K, offset = loop.jacobian(zero), loop.residual(zero)
    solution = np.linalg.lstsq(K, -offset, rcond=None)[0]
    left = np.abs(K @ solution + offset)
    if left.max(initial=0.0) > 1e-9 * max(1.0, np.abs(offset).max(initial=0.0)):
        rows = np.flatnonzero(left > 0.1 * left.max())
        named = sorted({loop.constraints[loop.row_constraint[i]].name for i in rows})
        raise AssemblyError(
            Problem(
                f"constraints {', '.join(map(repr, named))}",
                "their equations contradict each other",
                "remove one of them or correct its offset",
            )
        )


def _close(loop: Loop, guess: Array, rng: np.random.Generator) -> Array:
    """A closed position, the one that Newton reaches from the guess or from near it."""
    best = solve(loop, guess, range(loop.nv))
    for restart in range(ASSEMBLY_RESTARTS):
        if best.ok:
            return best.q
        spread = 0.1 * 1.1**restart
        near = loop.integrate(guess, rng.normal(0.0, spread, loop.nv))
        best = min(best, solve(loop, near, range(loop.nv)), key=lambda c: (not c.ok, c.error))
    if best.ok:
        return best.q
    name, error = worst_constraint(loop, best.q)
    gap = "its axes are opposed" if best.turned_over else f"{error:.3g} is left"
    raise AssemblyError(
        Problem(
            f"constraint {name!r}",
            f"the loop does not close: {gap} at the best position found",
            "check frames, lengths and ratios, or give an 'assembly' guess for its joints",
        )
    )


def _nearby(loop: Loop, home: Array, rng: np.random.Generator) -> Iterable[Array]:
    """Closed positions around home."""
    for i in range(SAMPLES):
        near = loop.integrate(home, rng.normal(0.0, 0.05 * (1 + i), loop.nv))
        closed = solve(loop, near, range(loop.nv))
        if closed.ok:
            yield closed.q


def _unit_rows(K: Array) -> Array:
    """Rows of length one: a gear of 100 and a bar of 5 cm count the same."""
    size = np.linalg.norm(K, axis=1, keepdims=True)
    return np.divide(K, size, out=np.zeros_like(K), where=size > RANK_TOLERANCE)


def _singular_values(K: Array) -> Array:
    return np.asarray(np.linalg.svd(K, compute_uv=False), float) if K.size else np.zeros(0)


def _rank(K: Array) -> int:
    values = _singular_values(K)
    return int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))


def _full_rank_rows(jacobians: Sequence[Array], rank: int) -> list[int]:
    """Rows that span all of them at every position; all rows where no such choice is found."""
    _, _, order = scipy.linalg.qr(np.hstack(jacobians).T, mode="economic", pivoting=True)
    rows = sorted(int(i) for i in order[:rank])
    if all(_rank(K[rows]) == rank for K in jacobians):
        return rows
    return list(range(len(jacobians[0])))


def _conditioning(jacobians: Sequence[Array], dependent: Sequence[int]) -> float:
    """Smallest singular value of the dependent columns at any of the positions."""
    return min(float(_singular_values(K[:, dependent])[-1]) for K in jacobians)


def _choose(
    jacobians: Sequence[Array], freedom: int, wishes: Wishes, names: Sequence[str]
) -> tuple[int, ...]:
    """The independent coordinates: best-conditioned, actuated joints preferred."""
    _check_count(freedom, wishes, names)
    everything = range(len(names))
    if wishes.listed:
        choices: Iterable[tuple[int, ...]] = [tuple(sorted(wishes.required))]
    else:
        rest = sorted(wishes.allowed - wishes.required)
        more = freedom - len(wishes.required)
        if math.comb(len(rest), more) <= MOST_CHOICES:
            choices = (
                tuple(sorted({*wishes.required, *chosen}))
                for chosen in itertools.combinations(rest, more)
            )
        else:
            choices = [_pivoted(jacobians, freedom, wishes)]

    def quality(choice: tuple[int, ...]) -> tuple[bool, int, float]:
        measure = _conditioning(jacobians, [j for j in everything if j not in choice])
        # In steps of a factor ten, so that rounding does not decide between equals.
        step = math.floor(math.log10(max(measure, 1e-16)))
        return measure >= USABLE, len(wishes.preferred.intersection(choice)), step

    best = max(choices, key=quality)
    if not quality(best)[0]:
        raise AssemblyError(
            Problem(
                f"independent joints {', '.join(names[j] for j in best)}",
                "they do not determine the other joints of their loop",
                "choose others, or leave the choice out",
            )
        )
    return best


def _check_count(freedom: int, wishes: Wishes, names: Sequence[str]) -> None:
    if len(wishes.required) <= freedom <= len(wishes.allowed):
        return
    many = len(wishes.required) > freedom
    given = sorted(wishes.required if many else wishes.allowed)
    raise AssemblyError(
        Problem(
            f"joints {', '.join(names)}",
            f"the loop leaves them {freedom} degree(s) of freedom, but {len(given)} are independent"
            f" ({', '.join(names[j] for j in given) or 'none'}): too {'many' if many else 'few'}",
            f"name exactly {freedom} independent joint(s), or leave the choice out",
        )
    )


def _pivoted(jacobians: Sequence[Array], freedom: int, wishes: Wishes) -> tuple[int, ...]:
    """A good choice for large clusters: dependent columns by pivoted QR, unwanted ones first."""
    K = np.vstack(jacobians)
    weight = np.ones(K.shape[1])
    weight[list(wishes.preferred)] = 1e-2
    weight[[j for j in range(K.shape[1]) if j not in wishes.allowed]] = 1e3
    weight[list(wishes.required)] = 1e-6
    _, _, order = scipy.linalg.qr(K * weight, mode="economic", pivoting=True)
    return tuple(sorted(int(j) for j in order[K.shape[1] - freedom :]))
