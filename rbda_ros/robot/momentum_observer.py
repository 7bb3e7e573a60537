"""External forces on a robot, from measured motion and efforts, without accelerometer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.engine import core
from rbda_ros.errors import InputError
from rbda_ros.robot.inputs import FrameName
from rbda_ros.robot.operations import Position
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


class MomentumObserver:
    """The generalized-momentum observer of De Luca 2003, on the exact model with loops.

    With ``p = H yd`` the residual r follows ``dr/dt = gain (tau_external - r)``::

        r = gain (p - p0 - integral of (tau - friction + Hdot yd - C + r) dt)

    so r is the external force on y, through a first-order low-pass; in steady state it is exact.
    Each step is an implicit one, stable at any gain and interval. It is not thread-safe.

    Args:
        robot: the model.
        gain: of every coordinate, or (ny,) [1/s]; its inverse is the time constant.
        friction: whether the URDF's joint friction and damping count as known.

    Attributes:
        external: (ny,) estimated external force on y, positive along y [N m, N].
    """

    def __init__(self, robot: Robot, gain: ArrayLike = 50.0, *, friction: bool = True) -> None:
        try:
            gains = np.broadcast_to(np.asarray(gain, float), (robot.ny,))
        except (TypeError, ValueError):
            gains = np.zeros(1)
        if not (np.isfinite(gains).all() and (gains > 0.0).all()):
            raise InputError(
                f"gain: {gain!r}; give a number above zero [1/s], or {robot.ny} of them"
            )
        self._robot = robot
        self._gain = np.array(gains)
        self._friction = friction
        self.forget()

    def forget(self) -> None:
        """Begin anew with the next update, from no outside force."""
        self.external: Array = np.zeros(self._robot.ny)
        self._q: Array | None = None
        self._time: float | None = None
        self._drive, self._integral = np.zeros(self._robot.ny), np.zeros(self._robot.ny)

    def update(self, time: float, q: Position, qd: ArrayLike, tau: ArrayLike) -> Array:
        """Take what was measured at a time; the estimate (ny,) as of now.

        Args:
            time: of the measurement [s], later than the last.
            q: (nq,) spanning position, or independent position [rad, m].
            qd: (nv,) spanning velocity, or (ny,) independent velocity [rad/s, m/s].
            tau: (ny,) force of the motors on y, or (nv,) efforts on every joint, zero where
                nothing drives them [N m, N].

        Raises:
            InputError: wrong shapes, numbers that are not finite, or a time that is not later.
        """
        robot = self._robot
        state = robot._single_state(q, qd)
        force = robot._inputs.single("tau", tau, robot.ny, robot.nv)
        return self.advance(time, state.q, state.yd, robot._generalized(state, force))

    def advance(self, time: float, q: Array, yd: Array, force: Array) -> Array:
        """As `update`, for a state that was closed and checked already.

        Args:
            time: of the measurement [s], later than the last.
            q: (nq,) spanning position [rad, m].
            yd: (ny,) independent velocity [rad/s, m/s].
            force: (ny,) of the motors on y [N m, N].
        """
        robot = self._robot
        if self._friction:
            force = force - robot._evaluate("friction_force", q, yd)[0]
        p, free = robot._evaluate("momentum", q, yd)
        drive = force + free
        if not np.isfinite(time):
            raise InputError(f"time: {time!r} is not finite")
        begins = self._time is None
        dt = 0.0 if self._time is None else time - self._time
        if not begins and dt <= 0.0:
            raise InputError(f"time: {time:g} s is not later than the last, {self._time:g} s")
        estimate = self._integral, self._drive, self.external
        core.step_observer(p, drive, self._gain, dt, begins, *estimate)
        self._time, self._q = time, q.copy()
        return self.external.copy()

    def wrench(self, frame: FrameName, *, linear_only: bool = False) -> Array:
        """The wrench at a frame that explains the estimate best: least squares of ``J' w``.

        Where the joints do not feel some direction, that is zero (the smallest such wrench).

        Args:
            frame: where it acts: a link, or (link, xyz).
            linear_only: whether only a force acts there, and no moment.

        Returns:
            (6,) force, then moment, in world axes, at the frame's origin [N, N m].
        """
        if self._q is None:
            raise InputError("nothing was observed yet; call update first")
        rows = 3 if linear_only else 6
        J = self._robot.jacobian(self._q, frame)[:rows]
        return core.observed_wrench(np.ascontiguousarray(J), self.external)
