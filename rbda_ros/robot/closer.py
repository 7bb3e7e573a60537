"""Positions that satisfy the loops: by kernels where a few steps will do, else by a search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.cluster_tree.closing.search import close_cluster
from rbda_ros.cluster_tree.closing.tolerances import (
    BATCH_BLOCK,
    BATCH_NEAR,
    CLOSED,
    KERNEL_PARTS,
    NEARBY,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import ClosureError, InputError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.robot.inputs import Inputs, numbers
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

Given = ArrayLike | Mapping[str, ArrayLike]
"""An independent position, a spanning one to be closed, or positions by joint name."""


class Known(NamedTuple):
    """Positions that just determine the others.

    Attributes:
        entries: of q that are known.
        values: theirs.
        start: (nq,) where more is given, the assembly with all of it put in; else None.
    """

    entries: tuple[int, ...]
    values: Array
    start: Array | None


class LoopCloser:
    """Closes the loops of one robot. Threads may share it.

    Args:
        tree: the cluster tree.
        inputs: reads positions as users give them.
        kernels: has the closure kernels.
    """

    def __init__(self, tree: ClusterTree, inputs: Inputs, kernels: KernelCache) -> None:
        self._tree = tree
        self._inputs = inputs
        self._kernels = kernels

    def close(self, given: Given, guess: ArrayLike | None) -> Array:
        """See `Robot.close`."""
        if not isinstance(given, Mapping) and np.ndim(given) == 2:
            return self._close_rows(numbers("y", given), guess)
        closed = self._close_by_kernel(given, guess)
        return self.search(given, guess) if closed is None else closed

    def close_nearby(self, given: Given, guess: ArrayLike | None) -> Array | None:
        """As `close`, but by the kernel alone, in a few steps from a guess; None if it fails."""
        return self._close_by_kernel(given, guess)

    def close_anyhow(self, given: Given, guess: ArrayLike) -> Array:
        """As `close`; on any branch, where that of the guess does not reach so far."""
        try:
            return self.close(given, guess)
        except ClosureError:
            return self.search(given, guess, may_jump=True)

    def measured(self, names: Collection[str]) -> Measured:
        """Of the joints that are known, one number each, those to go by."""
        return self._inputs.choices.measured("position", names)

    def search(self, given: Given, guess: ArrayLike | None, may_jump: bool = False) -> Array:
        """Close every cluster by the search outside the kernel; also says what is wrong.

        Without a guess, or where it ``may_jump``, it ends on any branch.
        """
        tree, inputs = self._tree, self._inputs
        start = tree.home if guess is None else inputs.single("guess", guess, tree.nq)
        if isinstance(given, Mapping):
            known = self._known_by_name(given, start)
        else:
            known = self._known_in(inputs.single("y", given, tree.nq, inputs.independent_size))
        parts = [np.zeros(0)]
        for node, place in zip(tree.clusters, tree.position_ranges, strict=True):
            inside = {i: known[n] for i, n in enumerate(node.numbers) if n in known}
            near = start[place.start : place.stop]
            parts.append(close_cluster(node, inside, near, may_jump or guess is None))
        return inputs.normalized(np.concatenate(parts))

    def _close_by_kernel(self, given: Given, guess: ArrayLike | None) -> Array | None:
        """Closure by the kernel, from a guess or the assembly; None where that leads nowhere.

        The known joints go there in one step or, where the others would move too far to be sure
        of the branch, in several.
        """
        known = self._determining(given) if self._tree.has_loops else None
        if known is None:
            return None
        if guess is not None:
            start = self._inputs.single("guess", guess, self._tree.nq)
        else:
            start = self._tree.home if known.start is None else known.start
        kernel = self._kernels.get("closure", known.entries)
        way = known.values - start[list(known.entries)]
        for parts in KERNEL_PARTS:
            q = start
            for remaining in range(parts - 1, -1, -1):
                last, (q, phi) = q, kernel.call(known.values - way * (remaining / parts), q)
                moved = np.abs(q - last)[self._tree.curved].max(initial=0.0)
                if not (np.abs(phi).max() <= CLOSED and moved <= NEARBY):
                    break
            else:
                return self._inputs.normalized(q)
        return None

    def _close_rows(self, rows: Array, guess: ArrayLike | None) -> Array:
        known = self._determining(rows[0]) if self._tree.has_loops and len(rows) else None
        if known is None:
            return self._close_along(len(rows), rows.__getitem__, None, rows, guess)
        values = rows if known.start is None else rows[:, list(known.entries)]
        return self._close_along(len(rows), rows.__getitem__, known.entries, values, guess)

    def close_columns(self, given: Mapping[str, Array], guess: ArrayLike | None) -> Array:
        """The spanning positions (N, nq) of a motion: for each joint that is known, (N,) of it."""
        count = len(next(iter(given.values()), ()))
        place = self._tree.coordinates.scalar_positions
        if not self._tree.has_loops and set(given) == set(self._tree.coordinates.joints):
            q = np.tile(self._tree.home if guess is None else guess, (count, 1))
            q[:, [place[name] for name in given]] = np.stack([*given.values()], axis=-1)
            return q
        chosen = self._inputs.choices.positions(tuple(given)) if self._tree.has_loops else None

        def row(k: int) -> dict[str, float]:
            return {name: column[k] for name, column in given.items()}

        if chosen is None:
            return self._close_along(count, row, None, np.zeros((count, 0)), guess)
        joints, entries = chosen
        values = np.stack([given[name] for name in joints], axis=-1)
        return self._close_along(count, row, entries, values, guess)

    def refined(self, given: Mapping[str, Array], q: Array) -> Array:
        """A closed position (..., nq), closed once more from there: to the last digits."""
        chosen = self._inputs.choices.positions(tuple(given)) if self._tree.has_loops else None
        if chosen is None:
            return q
        joints, entries = chosen
        kernel = self._kernels.get("closure", entries)
        if q.ndim == 1:
            refined, phi = kernel.call(np.array([float(given[name]) for name in joints]), q)
        else:
            columns = (np.broadcast_to(given[name], len(q)) for name in joints)
            refined, phi = kernel.batch(np.stack([*columns], axis=-1), q)
        better = np.abs(phi).max(axis=-1, keepdims=True, initial=0.0) <= CLOSED
        return np.where(better, refined, q)

    def _close_along(
        self,
        count: int,
        row: Callable[[int], Given],
        entries: tuple[int, ...] | None,
        values: Array,
        guess: ArrayLike | None,
    ) -> Array:
        """Close some of the rows one after the other, and those near them from there, at once.

        Args:
            count: of rows.
            row: one of them, as `close` takes it.
            entries: of q that are known, where they just determine the others; else None.
            values: (count, entries) of these.
            guess: where to start.
        """
        q = np.empty((count, self._tree.nq))
        if entries is None:
            remaining = np.arange(count)
        else:
            anchors, last = _anchors(values), guess
            for k in np.unique(anchors).tolist():
                q[k] = last = self.close(row(k), last)
            others = np.flatnonzero(anchors != np.arange(count))
            start = q[anchors[others]]
            closed, phi = self._kernels.get("closure", entries).batch(values[others], start)
            q[others] = closed
            moved = np.abs(closed - start)[:, self._tree.curved].max(axis=1, initial=0.0)
            remaining = others[~((np.abs(phi).max(axis=1) <= CLOSED) & (moved <= NEARBY))]
        for k in remaining.tolist():
            q[k] = self.close(row(k), q[k - 1] if k else guess)
        return self._inputs.normalized(q)

    def _determining(self, given: Given) -> Known | None:
        """What is known, if it just determines the others.

        None where it takes a closer look: a batch, joints too few or too many, joints of several
        coordinates in loops, or mistakes.
        """
        choices = self._inputs.choices
        entries, start = choices.newton_positions, None
        try:
            if isinstance(given, Mapping):
                chosen = choices.positions(tuple(given))
                if chosen is None:
                    return None
                joints, entries = chosen
                if len(given) > len(joints):
                    start = self._tree.home.copy()
                    place = self._tree.coordinates.scalar_positions
                    values = np.array([*given.values()], dtype=float)
                    start[[place[name] for name in given]] = values
                values = np.asarray([given[name] for name in joints], dtype=float)
            else:
                values = np.asarray(given, dtype=float)
                if entries is not None and values.shape == (self._tree.nq,):
                    values, start = values[list(entries)], values
        except (TypeError, ValueError):
            return None
        if entries is None or values.shape != (len(entries),):
            return None
        return Known(entries, values, start)

    def _known_by_name(self, positions: Mapping[str, ArrayLike], guess: Array) -> dict[int, Array]:
        """Positions by body number; a floating base is where the guess has it."""
        layout = self._tree.coordinates
        number_of = self._tree.spanning.body_of_joint
        self._inputs.choices.check_names(positions)
        known = {1: guess[: layout.base_nq]} if layout.base_nq else {}
        for name, position in positions.items():
            size = len(layout.positions[name])
            known[number_of[name]] = self._inputs.single(name, np.atleast_1d(position), size)
        for node in self._tree.clusters:
            if node.loop is None and any(number not in known for number in node.numbers):
                missing = [b.joint.name for b in node.bodies if b.joint.name not in positions]
                raise InputError(f"no position for {', '.join(missing)}; no loop determines it")
        return known

    def _known_in(self, row: Array) -> dict[int, Array]:
        """Positions by body number, from a spanning or an independent vector."""
        whole = row.size == self._tree.nq
        entries = range(row.size) if whole else self._inputs.choices.independent_positions or ()
        value = dict(zip(entries, row, strict=True))
        return {
            number: np.array([value[i] for i in place])
            for number, place in enumerate(self._tree.coordinates.positions.values(), start=1)
            if place.start in value
        }


def _anchors(values: Array) -> NDArray[np.intp]:
    """For each row the last one at or before it that all rows since are near to."""
    anchors, first = np.empty(len(values), np.intp), 0
    while first < len(values):
        block = values[first : first + BATCH_BLOCK]
        away = np.abs(block - block[0]).max(axis=1, initial=0.0) > BATCH_NEAR
        count = int(away.argmax()) or len(block)
        anchors[first : first + count] = first
        first += count
    return anchors
