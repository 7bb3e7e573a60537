"""A kernel that closes loops from where it ended the last time, over and over: bound to arrays."""

from __future__ import annotations

from math import inf

import numpy as np

from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    NEARBY,
    PRECISE,
    STREAM_PARTS,
    STREAM_REPEATS,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.kernels.kernel import BoundCall, Kernel
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

INPUTS, MOVED, RESIDUAL, CONDITIONING, EFFORTS = range(5)
"""Numbers that the health of every such kernel begins with: see `feedforward.Health`."""


class ClosingCall:
    """A bound kernel with the inputs ``position``, ``velocity`` and ``guess``.

    Its last outputs are the spanning position and how it went. The arrays stay the same ones. Not
    for several threads.

    Attributes:
        kernel: that is called.
        joints: whose positions it goes by, in the order of ``position`` and ``velocity``.
        position, velocity: (joints,) of these [rad, m, s].
        q: (nq,) the spanning position that was found.
        max_condition_number: from which on a loop counts as being at a dead point.
        closes_itself: whether the kernel closes the loops, or gets them closed.
        arrays: the kernel's inputs and outputs, for whoever calls it from C; and
        guess: the one of them where loops are closed from, at ``guess_at``.
    """

    def __init__(self, kernel: Kernel, tree: ClusterTree, known: Measured) -> None:
        self.kernel = kernel
        self.joints = known.joints
        self.max_condition_number = 1e8
        self.closes_itself = known.positions is not None
        self._positions = list(known.positions or ())
        self._home = tree.home
        self._call = kernel.bind()
        self._named = dict(zip(kernel.input_sizes, self._call.inputs, strict=True))
        self.arrays: tuple[Array, ...] = (*self._call.inputs, *self._call.outputs)
        *_, self.q, self._health = self._call.outputs
        self.guess: Array = self._named["guess"]
        self.guess_at = list(kernel.input_sizes).index("guess")
        self._base_nq = tree.coordinates.base_nq
        self.position: Array = (
            self._named["position"] if self.closes_itself else np.zeros(len(self.joints))
        )
        self.velocity: Array = self._named["velocity"][tree.coordinates.base_nv :]
        self.forget()

    def start_from(self, q: Array) -> None:
        """Start the next search from a spanning position (nq,)."""
        self.guess[:] = q

    def forget(self) -> None:
        """Start the next search from the assembly."""
        self.start_from(self._home)

    @property
    def bound(self) -> BoundCall:
        """The kernel with its arrays."""
        return self._call

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Arguments of the last call of the kernel."""
        return self._call.inputs

    def _evaluate(self) -> list[float]:
        self._call()
        return self._health.tolist()

    def _from(self, q: Array) -> list[float]:
        self.guess[:] = q
        return self._evaluate()

    def _go_on(self, health: list[float], *starts: Array) -> list[float] | None:
        """Where the kernel's Newton steps did not arrive: more of them, and smaller ones.

        Args:
            health: of the first evaluation, from the guess.
            starts: closed positions to move to the known ones from, beside the guess.

        Returns:
            How it went; None, and the guess as it was, where it led nowhere.
        """
        if health[RESIDUAL] <= PRECISE and health[MOVED] <= NEARBY:
            return health
        start = self.guess.copy()
        closed = self._newton(health)
        for begin in (start, *starts):
            closed = closed or self._follow(begin)
        if closed is None:
            self.guess[:] = start
        return closed

    def _newton(self, health: list[float]) -> list[float] | None:
        """More Newton steps, while they lead nowhere far."""
        way = 0.0
        for _ in range(STREAM_REPEATS):
            way += health[MOVED]
            if not (way <= NEARBY and health[RESIDUAL] < inf):
                return None
            if health[RESIDUAL] <= PRECISE:
                return health
            health = self._from(self.q)
        return health if health[RESIDUAL] <= CLOSED else None

    def _follow(self, start: Array) -> list[float] | None:
        """Move the known joints from a closed position to where they are, step by step."""
        target = self.position.copy()
        base = self.guess[: self._base_nq].copy()
        way = target - start[self._positions]
        health: list[float] | None = None
        for parts in STREAM_PARTS:
            self.guess[:] = start
            for remaining in range(parts - 1, -1, -1):
                self.guess[: len(base)] = base
                self.position[:] = target - way * (remaining / parts)
                health = self._newton(self._evaluate())
                if health is None:
                    break
                self.guess[:] = self.q
            else:
                return health
        self.position[:] = target
        return None
