"""Assemble a cluster once, at load: close it, drop redundant rows, choose independent joints.

The rank of K is evaluated at several closed positions, because a single one may be singular, as
the zero position of a parallelogram linkage is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbda_ros.cluster_tree.closing.first_position import find_closed, outside_limits
from rbda_ros.cluster_tree.closing.idle import RodSearch
from rbda_ros.cluster_tree.closing.independent import (
    AssemblyError,
    Wishes,
    choose_independent,
    null_space,
    singular_values,
    unit_rows,
)
from rbda_ros.cluster_tree.closing.newton import closed_around, solve
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    LARGEST_RATE,
    LOCKED,
    MAX_FIXED,
    NEARLY_REDUNDANT,
    RANK_TOLERANCE,
    REACH,
    ROUNDED,
    SAMPLES,
    SHORT_REACH,
    SMALLEST_RATE,
    VANISHING,
)
from rbda_ros.cluster_tree.loops import Loop, build_loop
from rbda_ros.cluster_tree.spanning_tree import velocity_names
from rbda_ros.cluster_tree.straight_line import pivoted_columns
from rbda_ros.description.model import Coupling, CutJoint
from rbda_ros.errors import Problem
from rbda_ros.spatial import Array

__all__ = ["Assembly", "AssemblyError", "Wishes", "assemble"]


@dataclass(frozen=True, eq=False)
class Assembly:
    """An assembled cluster.

    Attributes:
        home: (nq,) a closed position that is not singular.
        loop: the constraints without redundant rows.
        independent: velocity coordinates that are y.
        warnings: what is odd but usable.
        idle: the last constraints of the loop, which freeze idle freedoms (see `idle`).
    """

    home: Array
    loop: Loop
    independent: tuple[int, ...]
    warnings: tuple[str, ...]
    idle: tuple[CutJoint, ...] = ()


@dataclass(frozen=True, eq=False)
class Sampled:
    """K with unit rows at closed positions that are not singular, home first.

    Attributes:
        positions: (nq,) each.
        jacobians: K (rows, nv) at each.
        rank: of all of them.
        moved: whether home is not where the loop was assembled, which is singular.
    """

    positions: list[Array]
    jacobians: list[Array]
    rank: int
    moved: bool

    @property
    def home(self) -> Array:
        """(nq,) the first position."""
        return self.positions[0]


def assemble(
    loop: Loop,
    guess: Array,
    wishes: Wishes,
    rods: RodSearch,
    rounding: float,
) -> Assembly:
    """Assemble one cluster.

    Args:
        loop: its constraints, with all rows.
        guess: (nq,) where to look for a closed position.
        wishes: what the files say about independent joints.
        rods: finds rods that spin about themselves.
        rounding: largest |phi| that rounding in the files explains.

    Raises:
        AssemblyError: with what to change.
    """
    _check_scale(loop, guess)
    _check_consistent(loop)
    whole, names = loop, velocity_names(loop.bodies)
    rng = np.random.default_rng(0)
    loop, warnings = _without_rounding(loop, guess, rng)
    found = find_closed(loop, guess, rng, rounding)
    loop, near, dropped = _without_nearly_redundant(loop, found, rng, rounding)
    warnings.extend(dropped)
    rows = _full_rank_rows(near.jacobians, near.rank)
    loop, moved = loop.with_rows(rows), near.moved
    near = replace(near, jacobians=[K[rows] for K in near.jacobians])
    locked = _locked(near.jacobians, near.rank)
    _check_freedom(whole, locked, near.home, names)
    if locked:
        warnings.append(
            f"constraints {_names(loop)}: they leave no freedom to"
            f" {', '.join(names[j] for j in locked)}; the loop is cheaper with these joints fixed"
        )
    idle: list[CutJoint] = []
    if not loop.constant:
        loop, near, idle, stay_free = _frozen(loop, near, wishes, rods, rng)
        warnings.extend(stay_free)
    freedom = len(names) - near.rank
    independent = choose_independent(near.jacobians, freedom, wishes, names, loop.constant)
    if moved:
        warnings.append(
            f"constraints {_names(loop)}: the loop is singular where it was assembled, so that"
            " its branch is a matter of chance; give an 'assembly' guess"
        )
    elif nearly := _vanishing(loop, near.positions):
        warnings.append(
            f"constraints {', '.join(map(repr, nearly))}: the loop is nearly singular where it was"
            " assembled: another branch is near, and results have fewer digits there; give an"
            " 'assembly' guess away from it"
        )
    outside = outside_limits(loop, near.home)
    if outside and outside != outside_limits(loop, guess):
        warnings.append(
            f"constraints {_names(loop)}: assembled outside the limits of {', '.join(outside)};"
            " give an 'assembly' guess inside them, if the loop closes there"
        )
    return Assembly(near.home, loop, independent, tuple(warnings), tuple(idle))


def _vanishing(loop: Loop, positions: Sequence[Array]) -> list[str]:
    """Names of constraints with a row of K far shorter at the first position than at the others."""
    home, *others = (np.linalg.norm(loop.jacobian(q), axis=1) for q in positions)
    if not others:
        return []
    short = np.flatnonzero(home < VANISHING * np.median(others, axis=0))
    return loop.names_of(short)


def _frozen(
    loop: Loop, near: Sampled, wishes: Wishes, rods: RodSearch, rng: np.random.Generator
) -> tuple[Loop, Sampled, list[CutJoint], list[str]]:
    """The loop with its idle freedoms frozen, around the same home."""
    idle, warnings = rods.find(
        near.positions,
        near.jacobians,
        near.rank,
        wishes.preferred,
        wishes.required,
    )
    if not idle:
        return loop, near, [], warnings
    locked = loop.joined(build_loop(rods.tree, rods.numbers, idle, {}))
    # Three hinges that make a ball joint have a dead point, where branches with the lock meet.
    sampled = _sample(locked, near.home, rng, RANK_TOLERANCE, SHORT_REACH)
    if sampled is None or sampled.rank != near.rank + len(idle) or sampled.moved:
        return loop, near, [], warnings  # they hold more than spins: leave all as it was
    return locked, sampled, idle, warnings


def _check_freedom(loop: Loop, locked: Collection[int], home: Array, names: Sequence[str]) -> None:
    """Reject constraints of which no joint can move; elsewhere in the cluster joints may move.

    A locked joint beside moving ones is no mistake: many models write a ball joint as hinges, some
    of which cannot turn in a planar loop.
    """
    tied = loop.tied_coordinates()
    immobile = [i for i, of in enumerate(tied) if of and of <= set(locked)]
    if not immobile:
        return
    joints = sorted(set().union(*(tied[i] for i in immobile)))
    places = loop.scalar_positions
    listed = len(joints) <= MAX_FIXED and places.keys() >= set(joints)
    fixed = ", ".join(
        f"{names[j]}: {{type: fixed, position: {round(float(home[places[j]]), 9) + 0.0}}}"
        for j in (joints if listed else ())
    )
    raise AssemblyError(
        Problem(
            f"constraints {', '.join(repr(loop.constraints[i].name) for i in immobile)}",
            f"they leave no freedom to {', '.join(names[j] for j in joints)}",
            "correct or remove a constraint, or fix these joints where they are"
            + (f": 'joints: {{{fixed}}}'" if listed else ""),
        )
    )


def _locked(jacobians: Sequence[Array], rank: int) -> list[int]:
    """Coordinates that cannot move wherever K was taken."""
    moves = np.zeros(jacobians[0].shape[1])
    for K in jacobians:
        moves = np.maximum(moves, np.abs(null_space(K, rank)).max(axis=1, initial=0.0))
    return [int(j) for j in np.flatnonzero(moves < LOCKED)]


def _without_nearly_redundant(
    loop: Loop, found: Array, rng: np.random.Generator, rounding: float
) -> tuple[Loop, Sampled, list[str]]:
    """The loop without rows that are redundant but for rounding in the robot's file.

    Such rows would lock the loop, or keep it from closing. They are dropped if the other rows
    keep their residual small at all sampled positions.
    """
    state = rng.bit_generator.state
    tolerance = max(NEARLY_REDUNDANT, rounding)
    sampled = _sample(loop, found, rng, RANK_TOLERANCE)
    loose = _sample(loop, found, None, tolerance) if sampled is None else sampled
    assert loose is not None
    rank = max(_rank(K, tolerance) for K in loose.jacobians)
    if sampled is not None and rank == sampled.rank:
        return loop, sampled, []
    rng.bit_generator.state = state
    rows = _full_rank_rows(loose.jacobians, rank, tolerance)
    fewer = loop.with_rows(rows)
    closed = solve(fewer, found, range(loop.nv))
    near = _sample(fewer, closed.q, rng, tolerance) if closed.ok else None
    if near is not None and len(rows) == rank:
        gaps = sorted(
            float(np.abs(loop.residual(q)).max(initial=0.0))
            for q in (near.home, *_nearby(fewer, near.home, rng, SHORT_REACH))
        )
        left = gaps[-1 - len(gaps) // 4]  # a few positions may be on another branch
        if left <= rounding:
            warning = (
                f"constraints {_names(loop)}: {len(loop.row_constraint) - rank} of their rows say"
                f" the same as the others but for {left:.1g}, and are dropped"
            )
            return fewer, near, [warning] if left > CLOSED else []
    if sampled is None:
        raise AssemblyError(
            Problem(
                f"constraints {_names(loop)}",
                f"the loop closes only to {np.abs(loop.residual(found)).max():.1g} m, or sine of an"
                f" angle; rounding in the files explains {rounding:.1g}",
                "state its frames with more digits, correct the one that is off, or use a cut that"
                " holds less, such as spherical or distance",
            )
        )
    return loop, sampled, []


def _sample(
    loop: Loop,
    found: Array,
    rng: np.random.Generator | None,
    tolerance: float,
    reach: float = REACH,
) -> Sampled | None:
    """K at positions around a closed one; None if the given position is not closed.

    Positions where K is not finite, as at the zero of a square root, are left out. Without ``rng``
    only the given position is used, closed or not.
    """
    if rng is None:
        positions = [found]
    elif np.abs(loop.residual(found)).max(initial=0.0) > CLOSED:
        return None
    else:  # where K is constant, one position tells all
        positions = [found] if loop.constant else [found, *_nearby(loop, found, rng, reach)]
    rates = [loop.jacobian(q) for q in positions]
    jacobians = {i: unit_rows(K) for i, K in enumerate(rates) if np.isfinite(K).all()}
    if not jacobians:
        raise AssemblyError(
            Problem(
                f"constraints {_names(loop)}",
                "their derivatives by the joints are not finite where the loop closes",
                "give an 'assembly' guess where they are, or correct their equations",
            )
        )
    ranks = {i: _rank(K, tolerance) for i, K in jacobians.items()}
    rank = max(ranks.values())
    regular = [i for i in jacobians if ranks[i] == rank]
    return Sampled(
        [positions[i] for i in regular],
        [jacobians[i] for i in regular],
        rank,
        moved=regular[0] > 0,
    )


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
    named = ", ".join(map(repr, loop.names_of(rounded)))
    warning = (
        f"constraints {named}: the loop is planar but for rounding in its"
        f" frames ({gaps[rounded].max():.1g} out of plane), which is ignored"
    )
    kept = [i for i in range(len(sizes)) if i not in rounded]
    return loop.with_rows(kept), [warning] if gaps[rounded].max() > CLOSED else []


def _names(loop: Loop) -> str:
    return ", ".join(repr(constraint.name) for constraint in loop.constraints)


def _check_scale(loop: Loop, guess: Array) -> None:
    """Reject rows whose rates are not finite, or far too large or small, at all positions tried.

    Their squares would overflow, or the row would count as redundant. A row that is finite at some
    positions only, such as a logarithm, passes.
    """
    rng = np.random.default_rng(0)
    steps = [np.zeros(loop.nv), *rng.normal(0.0, 0.5, (SAMPLES, loop.nv))]
    with np.errstate(all="ignore"):
        rates = [np.abs(loop.jacobian(loop.integrate(guess, step))) for step in steps]
    largest = np.array([K.max(axis=1, initial=0.0) for K in rates])  # (samples, rows), or NaN
    fits = (largest == 0.0) | ((largest >= SMALLEST_RATE) & (largest <= LARGEST_RATE))
    wrong = sorted({loop.row_constraint[row] for row in np.flatnonzero(~fits.any(axis=0))})
    if wrong:
        raise AssemblyError(
            Problem(
                f"constraints {', '.join(repr(loop.constraints[i].name) for i in wrong)}",
                "their derivatives by the joints are not finite, or far too large or small",
                "correct the constants in their equations, and choose common units",
            )
        )


def _check_consistent(loop: Loop) -> None:
    """Reject linear rows that contradict each other: no guess could close them."""
    owners = [loop.constraints[i] for i in loop.row_constraint]
    linear = [i for i, c in enumerate(owners) if loop.constant or isinstance(c, Coupling)]
    if not linear:
        return
    zero = np.zeros(loop.phi.size1_in(0))
    K, offset = loop.jacobian(zero)[linear], loop.residual(zero)[linear]
    solution = np.linalg.lstsq(K, -offset, rcond=None)[0]
    left = np.abs(K @ solution + offset)
    if left.max(initial=0.0) > 1e-9 * max(1.0, np.abs(offset).max(initial=0.0)):
        named = loop.names_of(linear[i] for i in np.flatnonzero(left > 0.1 * left.max()))
        raise AssemblyError(
            Problem(
                f"constraints {', '.join(map(repr, named))}",
                "their equations contradict each other",
                "remove one of them or correct its offset",
            )
        )


def _nearby(loop: Loop, home: Array, rng: np.random.Generator, reach: float) -> Iterable[Array]:
    """Closed positions around home; none where K is the same everywhere."""
    reaches = [] if loop.constant else [reach * (1 + i) for i in range(SAMPLES)]
    return closed_around(loop, home, rng, reaches)


def _rank(K: Array, tolerance: float) -> int:
    values = singular_values(K)
    return int(np.sum(values > tolerance * values.max(initial=0.0)))


def _full_rank_rows(
    jacobians: Sequence[Array], rank: int, tolerance: float = RANK_TOLERANCE
) -> list[int]:
    """A basis of the rows that is one at every position; all rows if none is found."""
    order, _ = pivoted_columns(np.hstack(jacobians).T)
    rows = sorted(int(i) for i in order[:rank])
    if all(_rank(K[rows], tolerance) == rank for K in jacobians):
        return rows
    return list(range(len(jacobians[0])))
