"""Positions that satisfy the loops: by kernels where a few steps will do, else by a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.cluster_tree.closing.search import CLOSED
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.feedforward_call import NEARBY
from rbda_ros.robot.inputs import Inputs, numbers

Array = NDArray[np.float64]

CLOSURE_STEPS = (1, 4, 16)
"""In how many steps the known joints may go from a guess to where they are."""
NEAR, MOST_NEAR = 0.1, 256
"""How far known joints may be from a row of a batch to be closed from there [rad, m]; how many."""


class Closing:
    """Closes the loops of one robot.

    Args:
        tree: the cluster tree.
        inputs: reads positions as users give them.
        kernel: gives the closure kernel for entries of q that are known.
    """

    def __init__(
        self, tree: ClusterTree, inputs: Inputs, kernel: Callable[[tuple[int, ...]], Kernel]
    ) -> None:
        self._tree = tree
        self._inputs = inputs
        self._kernel = kernel

    def close(
        self, y_or_partial: ArrayLike | Mapping[str, ArrayLike], guess: ArrayLike | None
    ) -> Array:
        """See `Robot.close`."""
        if not isinstance(y_or_partial, Mapping) and np.ndim(y_or_partial) == 2:
            return self._rows(numbers("y", y_or_partial), guess)
        closed = self._by_kernel(y_or_partial, guess)
        return self._inputs.close(y_or_partial, guess) if closed is None else closed

    def _by_kernel(
        self, y_or_partial: ArrayLike | Mapping[str, ArrayLike], guess: ArrayLike | None
    ) -> Array | None:
        """Closure by the kernel, from a guess or the assembly; None where that leads nowhere.

        The known joints go there in one step or, where the others would move too far to be sure
        of the branch, in several.
        """
        known = self._inputs.determining(y_or_partial) if self._tree.has_loops else None
        if known is None:
            return None
        positions, values, given = known
        if guess is not None:
            start = self._inputs.single("guess", guess, self._tree.nq)
        else:
            start = self._tree.home if given is None else given
        kernel = self._kernel(positions)
        way = values - start[list(positions)]
        for steps in CLOSURE_STEPS:
            q = start
            for left in range(steps - 1, -1, -1):
                last, (q, phi) = q, kernel.call(values - way * (left / steps), q)
                moved = np.abs(q - last)[self._tree.curved].max(initial=0.0)
                if not (np.abs(phi).max() <= CLOSED and moved <= NEARBY):
                    break
            else:
                return self._inputs.normalized(q)
        return None

    def _rows(self, rows: Array, guess: ArrayLike | None) -> Array:
        """Close some of the rows one after the other, and those near them from there, at once."""
        known = self._inputs.determining(rows[0]) if self._tree.has_loops and len(rows) else None
        q = np.empty((len(rows), self._tree.nq))
        if known is None:
            left = np.arange(len(rows))
        else:
            positions, _, given = known
            values = rows if given is None else rows[:, list(positions)]
            anchors, last = _anchors(values), guess
            for k in np.unique(anchors):
                q[k] = last = self.close(rows[k], last)
            others = np.flatnonzero(anchors != np.arange(len(rows)))
            start = q[anchors[others]]
            q[others], phi = self._kernel(positions).batch(values[others], start)
            moved = np.abs(q[others] - start)[:, self._tree.curved].max(axis=1, initial=0.0)
            left = others[~((np.abs(phi).max(axis=1) <= CLOSED) & (moved <= NEARBY))]
        for k in left:
            q[k] = self.close(rows[k], q[k - 1] if k else guess)
        return self._inputs.normalized(q)


def _anchors(values: Array) -> NDArray[np.intp]:
    """For each row the last one at or before it that all rows since are near to."""
    anchors, first = np.empty(len(values), np.intp), 0
    while first < len(values):
        block = values[first : first + MOST_NEAR]
        away = np.abs(block - block[0]).max(axis=1, initial=0.0) > NEAR
        count = int(away.argmax()) or len(block)
        anchors[first : first + count] = first
        first += count
    return anchors
