"""Frames: where they are, how they move, the inertia they show, and how to get them somewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.inverse_kinematics import Kinematics, Reached, reach
from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.robot.dynamics import Dynamics
from rbda_ros.robot.inputs import MOST_TRACED_FRAMES, FrameName, numbers
from rbda_ros.robot.mechanism import Position
from rbda_ros.robot.native_calls import checked
from rbda_ros.robot.poses import pose_error
from rbda_ros.robot.results import OperationalSpace
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

ROTATION_TOLERANCE = 1e-3
"""Largest error of a target's rotation matrix; it is orthogonalized below, refused above."""


class Frames(Dynamics):
    """Poses, Jacobians, operational-space inertia and inverse kinematics of frames on links."""

    @checked
    def frame_pose(self, q: Position, frame: FrameName) -> Array:
        """The pose (4, 4) of a frame in the world: rotation, and origin [m]."""
        pose = self._evaluate("frame_pose", self.state(q).q, frames=(frame,))[0]
        return pose.reshape(*pose.shape[:-1], 4, 4)

    @checked
    def jacobian(self, q: Position, frame: FrameName) -> Array:
        """The Jacobian (6, ny) of a frame with respect to y.

        World-aligned axes at the frame's origin, linear rows first: ``[v; w] = J yd``.
        """
        name, options, points = self._inputs.jacobian(frame)
        J = self._evaluate(self._kernels.get(name, *options), self.state(q).q, *points)[0]
        return J.reshape(*J.shape[:-1], 6, self.ny)

    @checked
    def frame_bias_acceleration(self, q: Position, qd: ArrayLike, frame: FrameName) -> Array:
        """``J-dot yd`` (6,): acceleration of the frame's origin, then angular, at ydd = 0."""
        state = self.state(q, qd)
        return self._evaluate("frame_bias_acceleration", state.q, state.yd, frames=(frame,))[0]

    @checked
    def operational_space_inertia(
        self,
        q: Position,
        frames: str | Sequence[FrameName],
        damping: float = 0.0,
        linear_only: bool = False,
    ) -> OperationalSpace:
        """The operational-space inertia of some frames, by force propagation (PV-OSIMr).

        The program of many frames would grow with their square: above `MOST_TRACED_FRAMES` it is
        ``J H^-1 J'``, multiplied out.

        Args:
            q: (nq,) spanning position, or independent position; one state, not a batch.
            frames: links, or links with offsets.
            damping: added to the diagonal of the inverse inertia before it is inverted
                [1/kg, 1/(kg m^2)].
            linear_only: leave out the angular rows.
        """
        frames = [frames] if isinstance(frames, str) else list(frames)
        if not frames:
            raise InputError("frames: name at least one link")
        if np.ndim(numbers("damping", damping)) or not 0.0 <= damping < np.inf:
            raise InputError(f"damping is {damping!r}; give a number that is not negative")
        state = self._single_state(q)
        if len(frames) > MOST_TRACED_FRAMES:
            rows = 3 if linear_only else 6
            jacobian = np.vstack([self.jacobian(state, frame)[:rows] for frame in frames])
            inverse = self._dense_inverse_inertia(state, jacobian)
        else:
            jacobian, inverse = self._operational_space(state, frames, bool(linear_only))
        if not np.isfinite(inverse).all():
            raise SingularityError(self._no_inertia())
        return OperationalSpace(inverse, jacobian, damping)

    def inverse_kinematics(
        self,
        frame: FrameName,
        target: ArrayLike,
        guess: ArrayLike | None = None,
        *,
        tolerance: float = 1e-8,
    ) -> Reached:
        """A position that puts a frame where it should be (Featherstone 2010, Fig. 6).

        Within the joint limits; a floating base stays where the guess has it. A target out of
        reach gives the nearest position found, with ``reached`` False and the error that is left.

        Args:
            frame: a link, or a link with an offset.
            target: (4, 4) pose in the world, or (3,) position alone [m].
            guess: (nq,) spanning or independent position to start from.
            tolerance: largest error of any coordinate [m, rad].
        """
        sizes = self.nq, self._inputs.independent_size
        given = self.tree.home if guess is None else self._inputs.single("guess", guess, *sizes)
        start = self.close(given)
        goal = _target(target)
        if not tolerance > 0.0:
            raise InputError(f"tolerance is {tolerance!r}; give a positive number")
        rows = 6 if goal.shape == (4, 4) else 3

        def close(position: Array, near: Array) -> Array | None:
            try:
                return self.close(position, guess=near)
            except (ClosureError, InputError):
                return None

        kinematics = Kinematics(
            error=lambda q: pose_error(goal, self.frame_pose(q, frame)),
            jacobian=lambda q: self.jacobian(q, frame)[:rows],
            spanning_velocity=self.spanning_velocity,
            integrate=self.tree.integrate,
            close=close,
            lower=self._limits[0],
            upper=self._limits[1],
            scalar_positions=tuple(self.coordinates.scalar_positions.values()),
            scalar_velocities=tuple(
                self.coordinates.velocities[joint].start
                for joint in self.coordinates.scalar_positions
            ),
            base_nv=self.coordinates.base_nv,
        )
        return reach(kinematics, start, tolerance)

    def _operational_space(
        self, state: State, frames: Sequence[FrameName], linear_only: bool
    ) -> tuple[Array, Array]:
        """J (m, ny) and ``J H^-1 J'`` (m, m) by force propagators."""
        name, options, points = self._inputs.operational_space(frames, linear_only)
        J, inverse = self._kernels.get(name, *options).call(state.q, *points)
        return J.reshape(-1, self.ny), inverse.reshape(len(J) // self.ny, -1)

    def _dense_inverse_inertia(self, state: State, J: Array) -> Array:
        """``J H^-1 J'`` (m, m) from the factor of ``H = L' L``."""
        L = self.mass_matrix_factor(state)
        halves = np.linalg.solve(L.T, J.T)
        return halves.T @ halves

    @property
    def _limits(self) -> tuple[Array, Array]:
        """Bounds (nq,) of q; infinite for joints of several degrees of freedom."""
        lower, upper = [], []
        for body in self.tree.spanning.bodies:
            limits, nq = body.joint.limits, body.model.nq
            bounded = nq == 1 and limits.lower <= limits.upper
            lower += [limits.lower if bounded else -np.inf] * nq
            upper += [limits.upper if bounded else np.inf] * nq
        return np.array(lower), np.array(upper)


def _target(target: ArrayLike) -> Array:
    """A checked pose (4, 4) or position (3,)."""
    goal = numbers("target", target)
    if goal.shape not in ((4, 4), (3,)) or not np.isfinite(goal).all():
        raise InputError("target: give a finite (4, 4) pose or (3,) position")
    if goal.shape == (4, 4):
        R = goal[:3, :3]
        if not np.allclose(R @ R.T, np.eye(3), atol=ROTATION_TOLERANCE) or np.linalg.det(R) < 0.0:
            raise InputError("target: its upper left (3, 3) block is no rotation")
    return goal
