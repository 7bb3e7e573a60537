"""Kernels that are called over and over, bound to arrays: loops closed, velocities completed.

A `ClosingCall` closes loops from where they were closed the last time. A `CompletionCall` gives
the velocities of every joint from those that are measured.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from rbda_ros.cluster_tree.closing.tolerances import (
    CLOSED,
    NEARBY,
    PRECISE,
    STREAM_PARTS,
    STREAM_REPEATS,
)
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.engine import core
from rbda_ros.kernels.kernel import BoundCall, Kernel
from rbda_ros.robot.joint_choices import Measured
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

INPUTS, MOVED, RESIDUAL, CONDITIONING, EFFORTS = range(5)
"""Numbers that the health of every such kernel begins with: see `feedforward.Health`."""
IS_CLOSED, INPUT_NOT_FINITE, TOO_FAR = range(3)
"""Results of closing, as in `engine/closing.c`."""


class ClosingCall:
    """A bound kernel with the inputs ``position``, ``velocity`` and ``guess``.

    Its last outputs are the spanning position and how it went. The arrays stay the same ones. Not
    for several threads.

    Attributes:
        kernel: that is called.
        joints: whose positions it takes, in the order of ``position`` and ``velocity``.
        position, velocity: (joints,) of these [rad, m, s].
        q: (nq,) the spanning position that was found.
        max_condition_number: from which on a loop counts as being at a dead point.
        closes_itself: whether the kernel closes the loops, or gets them closed.
        positions: entries of q of the joints; None where the kernel gets the loops closed.
        arrays: the kernel's inputs and outputs.
        guess: the one of them where loops are closed from.
    """

    def __init__(self, kernel: Kernel, tree: ClusterTree, known: Measured) -> None:
        self.kernel = kernel
        self.joints = known.joints
        self.max_condition_number = 1e8
        self.closes_itself = known.positions is not None
        self.positions = known.positions
        self._home = tree.home
        self._call = kernel.bind()
        self._named = dict(zip(kernel.input_sizes, self._call.inputs, strict=True))
        self.arrays: tuple[Array, ...] = (*self._call.inputs, *self._call.outputs)
        *_, self.q, self._health = self._call.outputs
        self.guess: Array = self._named["guess"]
        self._base_nq = tree.coordinates.base_nq
        self.position: Array = (
            self._named["position"] if self.closes_itself else np.zeros(len(self.joints))
        )
        self.velocity: Array = self._named["velocity"][tree.coordinates.base_nv :]
        self._closer: Any = None
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

    def _close_from_guess(self, other: Array) -> int:
        """Evaluate with the loops closed, from the guess or else from another closed position.

        Returns:
            `IS_CLOSED`; `INPUT_NOT_FINITE`; or `TOO_FAR`, and the guess as it was.
        """
        if self._closer is None:
            assert self.positions is not None
            self._closer = core.LoopCloser(
                kernel=self.kernel.native,
                arrays=self.arrays,
                position=list(self.kernel.input_sizes).index("position"),
                guess=list(self.kernel.input_sizes).index("guess"),
                entries=np.array(self.positions, np.int64),
                base_nq=self._base_nq,
                precise=PRECISE,
                closed=CLOSED,
                nearby=NEARBY,
                repeats=STREAM_REPEATS,
                parts=np.array(STREAM_PARTS, np.int64),
            )
        return int(self._closer(other))

    def _evaluate_from(self, q: Array) -> list[float]:
        """Evaluate once, from a guess (nq,); how it went."""
        self.guess[:] = q
        self._call()
        return self._health.tolist()


class CompletionCall:
    """Completes measurements of certain joints. Fill the inputs, call, read ``qd``.

    The arrays stay the same ones. Not for several threads.

    Attributes:
        kernel: that computes them.
        q: (nq,) spanning position, closed [rad, m].
        base_twist: (6,) of a floating base, as qd starts; empty without one.
        kernel: that is called; its inputs are ``q``, and ``base_twist`` before ``velocity``.
        velocity: (joints,) of the measured joints, in the order of `Robot.determining_joints`.
        qd: (nv,) the answer, ``G_x xd`` [rad/s, m/s].
    """

    def __init__(self, kernel: Kernel, base_nv: int) -> None:
        self.kernel = kernel
        self._call = kernel.bind()
        self.q, known = self._call.inputs
        (self.qd,) = self._call.outputs
        self.base_twist: Array
        self.velocity: Array
        self.base_twist, self.velocity = np.split(known, [base_nv])

    @property
    def bound(self) -> BoundCall:
        """The kernel with its arrays."""
        return self._call

    def __call__(self) -> Array:
        """Compute ``qd``."""
        self._call()
        return self.qd


def completion(robot: Robot, joints: Collection[str]) -> CompletionCall:
    """Velocities of every joint, again and again, by one kernel.

    Args:
        joints: that will be measured; of these, as many are used as determine the others.

    Raises:
        InputError: unknown names, or joints that do not determine the others.
    """
    measured = robot._inputs.choices.measured("velocity", joints)
    kernel = robot._kernels.get("completed_velocity", measured.coordinates)
    return CompletionCall(kernel, robot.coordinates.base_nv)


def closure_kernel(robot: Robot, joints: Collection[str]) -> Kernel:
    """The kernel ``(known, guess) -> (q, phi)`` of `algorithms.closure` for known joints.

    Args:
        joints: as `Robot.determining_joints` gives them; ``known`` has their order.
    """
    places = robot.coordinates.scalar_positions
    return robot._kernels.get("closure", tuple(places[name] for name in joints))
