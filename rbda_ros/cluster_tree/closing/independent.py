"""Which coordinates of a cluster are y, and which of the known ones determine the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain

import numpy as np

from rbda_ros.cluster_tree.closing.newton import closed_around
from rbda_ros.cluster_tree.closing.tolerances import (
    LEAST_USABLE,
    MAX_CHOICES,
    RANK_TOLERANCE,
    USABLE,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.spanning_tree import velocity_names
from rbda_ros.cluster_tree.straight_line import pivoted_columns
from rbda_ros.errors import InputError, Problem
from rbda_ros.spatial import Array


@dataclass(frozen=True)
class Wishes:
    """Independent joints of one cluster as the files name them, as velocity coordinates.

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


def unit_rows(K: Array) -> Array:
    """Rows of length one: a gear of 100 and a bar of 5 cm count the same."""
    size = np.linalg.norm(K, axis=1, keepdims=True)
    return np.divide(K, size, out=np.zeros_like(K), where=size > RANK_TOLERANCE)


def singular_values(K: Array) -> Array:
    """Singular values, descending; none of an empty matrix."""
    return np.asarray(np.linalg.svd(K, compute_uv=False), float) if K.size else np.zeros(0)


def null_space(K: Array, rank: int) -> Array:
    """(nv, nv - rank) orthonormal columns that K (rows, nv) moves least.

    By QR where K has no more rows than its rank: the threads of a BLAS make the SVD of some 50
    rows cost up to 100 times as much on a machine with other work.
    """
    if 0 < len(K) == rank:
        return np.asarray(np.linalg.qr(K.T, mode="complete")[0][:, rank:])
    return np.asarray(np.linalg.svd(K)[2][rank:].T)


def choose_independent(
    jacobians: Sequence[Array],
    freedom: int,
    wishes: Wishes,
    names: Sequence[str],
    constant: bool,
) -> tuple[int, ...]:
    """The independent coordinates: best-conditioned, actuated joints preferred.

    Args:
        jacobians: K (rows, nv) of full rank, with unit rows, at several closed positions.
        freedom: how many there are.
        wishes: what the files say.
        names: of the velocity coordinates, for messages.
        constant: whether K is the same everywhere, so that all that matters is its rank.
    """
    _check_count(freedom, wishes, names)
    balanced = _balanced(jacobians)
    stacks = np.array([jacobians, balanced])

    @cache
    def conditionings(choice: tuple[int, ...]) -> Array:
        """(2, positions) smallest singular values of the dependent columns, ascending.

        In the units of the files, and in balanced ones.
        """
        dependent = [j for j in range(len(names)) if j not in choice]
        if not dependent:
            return np.ones(stacks.shape[:2])
        values = np.linalg.svd(stacks[..., dependent], compute_uv=False)
        return np.sort(values[..., -1], axis=-1)

    def in_any_units(choice: tuple[int, ...], skipped: int = 0) -> float:
        return float(conditionings(choice)[:, skipped].max())

    def step(choice: tuple[int, ...], skipped: int) -> int:
        # In steps of a factor ten, so that rounding does not decide between equals.
        return math.floor(math.log10(max(float(conditionings(choice)[0, skipped]), 1e-16)))

    def preferred(choice: tuple[int, ...]) -> int:
        return len(wishes.preferred.intersection(choice))

    # One position of several may be on another branch, or at a dead point: it has no veto.
    tried: list[tuple[int, ...]] = []
    least = RANK_TOLERANCE if constant else USABLE
    for choices in _choices(jacobians, balanced, freedom, wishes):
        for skipped in (0, len(jacobians) // 4):
            ordered = sorted(choices, key=preferred, reverse=True)
            for _, group in itertools.groupby(ordered, preferred):
                usable = [choice for choice in group if in_any_units(choice, skipped) >= least]
                if usable:
                    return max(usable, key=partial(step, skipped=skipped))
        tried.extend(choices)
    best = max(tried, key=in_any_units)
    if not wishes.listed and in_any_units(best) >= LEAST_USABLE:
        return best  # a part that cannot move is near its own dead point, whatever y is
    raise AssemblyError(_undetermined(best, wishes, names))


def _choices(
    jacobians: Sequence[Array], balanced: Sequence[Array], freedom: int, wishes: Wishes
) -> Iterable[list[tuple[int, ...]]]:
    """Choices to compare; where none will do, further ones."""
    rest = sorted(wishes.allowed - wishes.required)
    more = freedom - len(wishes.required)
    if wishes.listed:
        yield [tuple(sorted(wishes.required))]
    elif math.comb(len(rest), more) <= MAX_CHOICES:
        yield [
            tuple(sorted({*wishes.required, *chosen}))
            for chosen in itertools.combinations(rest, more)
        ]
    else:  # the less the actuated joints are preferred, the better it may be conditioned
        for preference in (1e-2, 1e-1, 0.3, 1.0):
            yield [_pivoted(K, freedom, wishes, preference) for K in (jacobians, balanced)]
            yield [_pivoted([K], freedom, wishes, preference) for K in balanced]


def _undetermined(best: Sequence[int], wishes: Wishes, names: Sequence[str]) -> Problem:
    chosen = ", ".join(names[j] for j in best)
    if wishes.listed:
        return Problem(
            f"independent joints {chosen}",
            "they do not determine the other joints of their loop",
            "choose others, or leave the choice out",
        )
    return Problem(
        f"joints {', '.join(names)}",
        f"no choice of independent joints determines the others; {chosen} come nearest",
        "assemble the loop away from its dead points with an 'assembly' guess, or list"
        " 'independent_joints'",
    )


def _balanced(jacobians: Sequence[Array]) -> list[Array]:
    """The same with rows and columns scaled to like sizes, so that units do not matter."""
    balanced = list(jacobians)
    for _ in range(6):
        size = np.sqrt(np.mean([np.sum(K**2, axis=0) for K in balanced], axis=0))
        scale = np.divide(1.0, size, out=np.ones_like(size), where=size > 1e-12)
        balanced = [unit_rows(K * scale) for K in balanced]
    return balanced


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


def _pivoted(
    jacobians: Sequence[Array], freedom: int, wishes: Wishes, preference: float
) -> tuple[int, ...]:
    """A good choice for large clusters: dependent columns by pivoted QR, unwanted ones first."""
    K = np.vstack(jacobians)
    weight = np.ones(K.shape[1])
    weight[list(wishes.preferred)] = preference
    weight[[j for j in range(K.shape[1]) if j not in wishes.allowed]] = 1e3
    weight[list(wishes.required)] = 1e-6
    order, _ = pivoted_columns(K * weight)
    return tuple(sorted(int(j) for j in order[K.shape[1] - freedom :]))


def determining_in_cluster(node: ClusterNode, known: Collection[int], near: Array) -> list[int]:
    """As many of the known velocity coordinates as determine the rest; y if it is among them.

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
    around = closed_around(node.loop, node.home, np.random.default_rng(0), [0.1] * 4)
    for q in chain((near, node.home), around):  # each may be a dead point
        K = node.loop.jacobian(q)
        basis, triangle = np.linalg.qr(K[:, unknown])
        if unknown and np.abs(np.diag(triangle)).min() < RANK_TOLERANCE:
            continue
        remaining = K[:, given] - basis @ (basis.T @ K[:, given])
        order, _ = pivoted_columns(remaining)
        dependent = {given[int(j)] for j in order[: rank - len(unknown)]}
        if len(unknown) <= rank:
            return [j for j in given if j not in dependent]
    names = velocity_names(node.bodies)
    raise InputError(
        f"joints {', '.join(names[j] for j in given) or '(none)'} do not determine"
        f" {', '.join(names[j] for j in unknown)}; give also some of these, or the independent"
        f" joints {', '.join(names[j] for j in node.independent)}"
    )
