"""Feedforward efforts of one robot, over and over: bound to arrays, checked, warm-started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from rbda_ros.algorithms.feedforward import Health
from rbda_ros.cluster_tree.closure import CLOSED
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.determining import Measured
from rbda_ros.errors import ClosureError, NotFiniteError, SingularityError
from rbda_ros.kernels.kernel import Kernel

Array = NDArray[np.float64]

NEARBY = 0.3
"""How far a few Newton steps may lead from a guess [rad, m]: not onto another branch."""
REPEATS = 5
"""How often the kernel's Newton steps are taken before it is better to search."""

RESIDUAL = Health._fields.index("residual")


class Feedforward:
    """Efforts for measurements of certain joints. Fill the inputs, call, read ``efforts``.

    The arrays stay the same ones. Each call starts its search for the closed position from the
    last; where that is too far, a search with restarts takes over. Not for several threads.

    Attributes:
        joints: the measured joints, in the order of ``position`` and ``velocity``.
        acceleration_joints: those that ``acceleration`` is for; y unless chosen otherwise.
        position, velocity, acceleration: (joints,) inputs [rad, m, s].
        base_position, base_twist, base_acceleration: (7,), (6,), (6,) of a floating base, as q
            and qd start; empty without one.
        wrenches: (6 * bodies,) external wrenches as `Robot.body_wrenches` gives them; empty
            where none act.
        limit: (actuated,) the largest efforts, infinite at first [N m, N].
        efforts: (actuated,) the answer.
        q: (nq,) the spanning position that it is for.
        max_condition_number: from which on a loop counts as being at a dead point.
    """

    def __init__(
        self,
        kernel: Kernel,
        tree: ClusterTree,
        measured: Measured,
        acceleration_joints: tuple[str, ...],
        close: Callable[[Mapping[str, float], Array], Array],
    ) -> None:
        self.kernel = kernel
        self.joints = measured.joints
        self.acceleration_joints = acceleration_joints
        self.max_condition_number = 1e8
        self._home = tree.home
        self._close = close
        self._closes_itself = measured.positions is not None

        self._call = kernel.bind()
        position, velocity, acceleration, self._guess, self.limit, *wrenches = self._call.inputs
        self.efforts, self.q, self._health = self._call.outputs
        nq, nv = (7, 6) if tree.spanning.floating_base else (0, 0)
        self.position: Array = position if self._closes_itself else np.zeros(len(self.joints))
        self.base_position: Array = self._guess[:nq]
        self.base_twist, self.velocity = np.split(velocity, [nv])
        self.base_acceleration, self.acceleration = np.split(acceleration, [nv])
        self.wrenches: Array = wrenches[0] if wrenches else np.zeros(0)
        self.limit[:] = inf
        self.forget()

    def start_from(self, q: Array) -> None:
        """Start the next search from a spanning position (nq,)."""
        self._guess[:] = q

    def forget(self) -> None:
        """Start the next search from the assembly."""
        self.start_from(self._home)

    @property
    def health(self) -> Health:
        """How the last call went."""
        return Health(*self._health.tolist())

    def __call__(self) -> list[float]:
        """Compute the efforts for the inputs; how it went, in the order of `Health`.

        Raises:
            NotFiniteError: a number is not finite.
            ClosureError: the loops do not close at the measured positions.
            SingularityError: a loop is at a dead point, or too near to one.
        """
        health = self._evaluate() if self._closes_itself else self._search()
        inputs, moved, residual, conditioning, efforts, _ = health
        if not inputs < inf:
            raise NotFiniteError("the measured motion, or the acceleration, is not finite")
        if not (residual <= CLOSED and moved <= NEARBY):
            health = self._go_on(health)
            _, _, _, conditioning, efforts, _ = health
        if not conditioning * self.max_condition_number >= 1.0:
            raise SingularityError(
                f"a loop is at a dead point, or too near to one: condition number"
                f" {1.0 / max(conditioning, 1e-300):.3g}; move away from it, or measure other"
                " joints"
            )
        if not efforts < inf:
            raise SingularityError("the efforts are not finite at this position")
        self._guess[:] = self.q
        return health

    def _evaluate(self) -> list[float]:
        self._call()
        return self._health.tolist()

    def _go_on(self, health: list[float]) -> list[float]:
        """More Newton steps while they lead nowhere far; else a search."""
        start, way = self._guess.copy(), 0.0
        for _ in range(REPEATS):
            _, moved, residual, *_ = health
            way += moved
            if not (way <= NEARBY and residual < inf):
                break
            if residual <= CLOSED:
                return health
            self._guess[:] = self.q
            health = self._evaluate()
        self._guess[:] = start
        health = self._search()
        if not health[RESIDUAL] <= CLOSED:
            raise ClosureError(f"the loops do not close: {health[RESIDUAL]:.3g} is left")
        return health

    def _search(self) -> list[float]:
        """Close the loops from afar, and compute from there."""
        known = dict(zip(self.joints, self.position.tolist(), strict=True))
        self._guess[:] = self._close(known, self._guess)
        return self._evaluate()
