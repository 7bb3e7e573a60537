"""Positions and velocities of every joint from those that are measured, over and over."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.kernels.kernel import BoundCall, Kernel
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


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
