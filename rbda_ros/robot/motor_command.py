"""Commands in joint space turned into motor space, over and over: bound to arrays, checked."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from rbda_ros.cluster_tree.closing.tolerances import CLOSED, NEARBY
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import ClosureError, InputError, NotFiniteError, SingularityError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.robot.closer import LoopCloser
from rbda_ros.robot.conversion import CANNOT_GIVE
from rbda_ros.robot.mechanism import Mechanism
from rbda_ros.spatial import Array


class MotorCommandCall:
    """The pose, motion and motor efforts that commands for certain joints mean.

    The arrays stay the same ones. Each call closes the loops from where the last one ended, and
    never searches: what is farther than a few steps is refused. Not for several threads.

    Attributes:
        joints: that are commanded, in the order of ``position`` and ``velocity``.
        position, velocity: (joints,) of these [rad, m, s].
        q: (nq,) the commanded spanning position, closed.
        qd: (nv,) the commanded spanning velocity.
        max_condition_number: from which on a loop counts as being at a dead point.
    """

    def __init__(
        self, tree: ClusterTree, closer: LoopCloser, kernels: KernelCache, joints: Collection[str]
    ) -> None:
        measured = closer.measured(joints)
        self.joints = measured.joints
        self.max_condition_number = 1e8
        self.position = np.zeros(len(self.joints))
        self._tree = tree
        self._closer = closer
        self._entries = [tree.coordinates.scalar_positions[name] for name in self.joints]
        newton = tree.has_loops and measured.positions is not None
        self._closure = kernels.get("closure", measured.positions).bind() if newton else None
        self._rates = kernels.get("independent_velocity", measured.coordinates).bind()
        self._loops = kernels.get("loop_state").bind()
        self._motion = kernels.get("spanning_motion").bind()
        self._force = kernels.get("generalized_force").bind()
        self._efforts = kernels.get("converted_efforts", tuple(tree.actuated)).bind()
        _, known = self._rates.inputs
        self.velocity: Array = known[tree.coordinates.base_nv :]
        self.q: Array = tree.home.copy()
        self.qd: Array = self._motion.outputs[0]

    def start_from(self, q: Array) -> None:
        """Close the next loops from a spanning position (nq,)."""
        self.q[:] = q

    def move(self) -> None:
        """Compute ``q`` and ``qd`` for the position and velocity.

        Raises:
            NotFiniteError: a number is not finite.
            ClosureError: the loops do not close there, or not near the last position.
            SingularityError: a loop is at a dead point, or too near to one.
        """
        if not np.isfinite(self.position @ self.position + self.velocity @ self.velocity):
            raise NotFiniteError("the commanded position or velocity is not finite")
        self.q[:] = self._closed()
        self._loops.inputs[0][:] = self._rates.inputs[0][:] = self._motion.inputs[0][:] = self.q
        self._loops()
        self._rates()
        yd, of_given = self._rates.outputs
        conditioning = min(self._loops.outputs[1].min(initial=1.0), of_given.min(initial=1.0))
        if not conditioning * self.max_condition_number >= 1.0:
            raise SingularityError(
                "the command is at a dead point of a loop, or too near to one: condition number"
                f" {1.0 / max(conditioning, 1e-300):.3g}; command a pose away from it"
            )
        self._motion.inputs[1][:] = yd
        self._motion()

    def efforts(self, q: Array, spanning: Array) -> Array:
        """Motor efforts (actuated,) that amount to efforts on joints (nv,) at a position (nq,).

        Raises:
            InputError: the motors cannot give them; or they are not finite.
        """
        self._force.inputs[0][:], self._force.inputs[1][:] = q, spanning
        self._force()
        tau = self._force.outputs[0]
        self._efforts.inputs[0][:], self._efforts.inputs[1][:] = q, tau
        self._efforts()
        efforts, missed = self._efforts.outputs
        if not np.isfinite(efforts).all():
            raise NotFiniteError(
                "the commanded effort, or what it takes of the motors, is not finite"
            )
        if np.abs(missed).max(initial=0.0) > CANNOT_GIVE * np.abs(tau).max(initial=0.0):
            names = [self._tree.velocity_names[j] for j in self._tree.independent]
            left = np.flatnonzero(np.abs(missed) > CANNOT_GIVE * np.abs(tau).max())
            listed = ", ".join(names[j] for j in left)
            raise InputError(
                f"the motors cannot give the commanded force on {listed};"
                " command efforts on joints that they drive"
            )
        return efforts

    def _closed(self) -> Array:
        if not self._tree.has_loops:
            q = self.q.copy()
            q[self._entries] = self.position
            return q
        if self._closure is not None:
            self._closure.inputs[0][:], self._closure.inputs[1][:] = self.position, self.q
            self._closure()
            q, phi = self._closure.outputs
            moved = np.abs(q - self.q)[self._tree.curved].max(initial=0.0)
            if np.abs(phi).max(initial=0.0) <= CLOSED and moved <= NEARBY:
                return q
        known = dict(zip(self.joints, self.position.tolist(), strict=True))
        closed = self._closer.close_nearby(known, self.q)
        if closed is None:
            raise ClosureError(
                f"the loops do not close at the commanded {', '.join(self.joints)}, or far from the"
                " last position; command a pose within reach"
            )
        return closed


class Commanded(Mechanism):
    """Commands in joint space as commands for the motors."""

    def motor_command(self, joints: Collection[str]) -> MotorCommandCall:
        """What commands for joints mean for the motors, again and again, by a few kernels.

        Args:
            joints: that will be commanded; of these, as many are used as determine the others.

        Raises:
            InputError: unknown names, or joints that do not determine the others.
        """
        return MotorCommandCall(self.tree, self._closer, self._kernels, joints)
