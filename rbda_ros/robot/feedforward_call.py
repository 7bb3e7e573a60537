"""Feedforward efforts of one robot, over and over: bound to arrays, checked, warm-started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf

import numpy as np

from rbda_ros.algorithms.feedforward import Health
from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    NEARBY,
    PRECISE,
    STREAM_PARTS,
    STREAM_REPEATS,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import ClosureError, FarError, NotFiniteError, SingularityError
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

RESIDUAL = Health._fields.index("residual")


class FeedforwardCall:
    """Efforts for measurements of certain joints. Fill the inputs, call, read ``efforts``.

    The arrays stay the same ones. Each call closes the loops from where the last one ended; where
    that is too far, it follows them from there or from the assembly, and searches at last. Not for
    several threads.

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
        searches: whether a call may search, which takes up to half a second where the loops do not
            close.
        max_condition_number: from which on a loop counts as being at a dead point.
        closes_itself: whether the kernel closes the loops, or gets them closed.
        arrays: the kernel's inputs and outputs, for whoever calls it from C.
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
        self.searches = True
        self._home = tree.home
        self._close = close
        self.closes_itself = measured.positions is not None
        self._positions = list(measured.positions or ())

        self._call = kernel.bind()
        self.arrays: tuple[Array, ...] = (*self._call.inputs, *self._call.outputs)
        position, velocity, acceleration, self._guess, self.limit, *wrenches = self._call.inputs
        self.efforts, self.q, self._health = self._call.outputs
        nq, nv = tree.coordinates.base_nq, tree.coordinates.base_nv
        self.position: Array = position if self.closes_itself else np.zeros(len(self.joints))
        self.base_position: Array = self._guess[:nq]
        self.base_twist, self.velocity = np.split(velocity, [nv])
        self.base_acceleration, self.acceleration = np.split(acceleration, [nv])
        self.wrenches: Array = wrenches[0] if wrenches else np.zeros(0)
        self.limit[:] = inf
        self.forget()

    @property
    def start(self) -> Array:
        """Spanning position (nq,) that the next search starts from."""
        return self._guess

    def start_from(self, q: Array) -> None:
        """Start the next search from a spanning position (nq,)."""
        self._guess[:] = q

    def forget(self) -> None:
        """Start the next search from the assembly."""
        self.start_from(self._home)

    @property
    def inputs(self) -> tuple[Array, ...]:
        """What the kernel was called with."""
        return self._call.inputs

    @property
    def health(self) -> Health:
        """How the last call went."""
        return Health(*self._health.tolist())

    def __call__(self) -> list[float]:
        """Compute the efforts for the inputs; how it went, in the order of `Health`.

        Raises:
            NotFiniteError: a number is not finite.
            ClosureError: the loops do not close at the measured positions; with ``searches``
                false it is a `FarError` if they might, when searched for.
            SingularityError: a loop is at a dead point, or too near to one.
        """
        health = self._evaluate() if self.closes_itself else self._from(self.find()())
        inputs, moved, residual, conditioning, efforts, _ = health
        if not inputs < inf:
            raise NotFiniteError("the measured motion, or the acceleration, is not finite")
        if not (residual <= PRECISE and moved <= NEARBY):
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

    def find(self) -> Callable[[], Array]:
        """A search for the closed position at the inputs as they are now, in any thread.

        It takes up to half a second where there is none; `start_from` what it returns.
        """
        known = dict(zip(self.joints, self.position.tolist(), strict=True))
        return partial(self._close, known, self._guess.copy())

    def _evaluate(self) -> list[float]:
        self._call()
        return self._health.tolist()

    def _from(self, q: Array) -> list[float]:
        self._guess[:] = q
        return self._evaluate()

    def _go_on(self, health: list[float]) -> list[float]:
        """Where the kernel's Newton steps did not arrive: more of them, smaller ones, a search."""
        start = self._guess.copy()
        closed = self._newton(health) or self._follow(start) or self._follow(self._home)
        if closed is None:
            self._guess[:] = start
            if not self.searches:
                raise FarError("the loops do not close near the last position, or the assembly")
            closed = self._from(self.find()())
            if not closed[RESIDUAL] <= CLOSED:
                raise ClosureError(f"the loops do not close: {closed[RESIDUAL]:.3g} is left")
        return closed

    def _newton(self, health: list[float]) -> list[float] | None:
        """More Newton steps, while they lead nowhere far."""
        way = 0.0
        for _ in range(STREAM_REPEATS):
            _, moved, residual, *_ = health
            way += moved
            if not (way <= NEARBY and residual < inf):
                return None
            if residual <= PRECISE:
                return health
            health = self._from(self.q)
        return health if health[RESIDUAL] <= CLOSED else None

    def _follow(self, start: Array) -> list[float] | None:
        """Move the measured joints from a closed position to where they are, step by step."""
        target = self.position.copy()
        base = self._guess[: len(self.base_position)].copy()
        way = target - start[self._positions]
        health: list[float] | None = None
        for parts in STREAM_PARTS:
            self._guess[:] = start
            for remaining in range(parts - 1, -1, -1):
                self._guess[: len(base)] = base
                self.position[:] = target - way * (remaining / parts)
                health = self._newton(self._evaluate())
                if health is None:
                    break
                self._guess[:] = self.q
            else:
                return health
        self.position[:] = target
        return None
