"""Frames: where they are, how they move, the inertia they show, and how to get them somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.inverse_kinematics import Kinematics, Reached, reach
from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.robot.inputs import MAX_TRACED_FRAMES, FrameName, numbers
from rbda_ros.robot.operations import Position, dispatched
from rbda_ros.robot.poses import pose_error
from rbda_ros.robot.results import OperationalSpace
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

ROTATION_TOLERANCE = 1e-3
"""Largest error of a target's rotation matrix; it is orthogonalized below, refused above."""


@dispatched("f", 1)
def operational_space_inertia(
    robot: Robot,
    q: Position,
    frames: str | Sequence[FrameName],
    damping: float = 0.0,
    linear_only: bool = False,
) -> OperationalSpace:
    """The operational-space inertia of some frames, by force propagation (PV-OSIMr).

    The program of many frames would grow with their square: above `MAX_TRACED_FRAMES` it is
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
    state = robot._single_state(q)
    if len(frames) > MAX_TRACED_FRAMES:
        rows = 3 if linear_only else 6
        jacobian = np.vstack([robot.jacobian(state, frame)[:rows] for frame in frames])
        inverse = _dense_inverse_inertia(robot, state, jacobian)
        if not np.isfinite(inverse).all():
            raise SingularityError(robot._no_inertia())
        return OperationalSpace(inverse, jacobian, damping)
    named = tuple(robot._inputs.frame(frame) for frame in frames)
    call = robot._calls.call(robot, "operational_space_inertia", (named, bool(linear_only)))
    return robot._result(call(state, float(damping)))


def inverse_kinematics(
    robot: Robot,
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
    sizes = robot.nq, robot._inputs.independent_size
    given = robot.tree.home if guess is None else robot._inputs.single("guess", guess, *sizes)
    start = robot.close(given)
    goal = _target(target)
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance!r}; give a positive number")
    rows = 6 if goal.shape == (4, 4) else 3

    def close(position: Array, near: Array) -> Array | None:
        try:
            return robot.close(position, guess=near)
        except (ClosureError, InputError):
            return None

    kinematics = Kinematics(
        error=lambda q: pose_error(goal, robot.frame_pose(q, frame)),
        jacobian=lambda q: robot.jacobian(q, frame)[:rows],
        spanning_velocity=robot.spanning_velocity,
        integrate=robot.tree.integrate,
        close=close,
        lower=robot.limits.lower,
        upper=robot.limits.upper,
        scalar_positions=tuple(robot.coordinates.scalar_positions.values()),
        scalar_velocities=tuple(
            robot.coordinates.velocities[joint].start
            for joint in robot.coordinates.scalar_positions
        ),
        base_nv=robot.coordinates.base_nv,
    )
    return reach(kinematics, start, tolerance)


def _dense_inverse_inertia(robot: Robot, state: State, J: Array) -> Array:
    """``J H^-1 J'`` (m, m) from the factor of ``H = L' L``."""
    L = robot.mass_matrix_factor(state)
    halves = np.linalg.solve(L.T, J.T)
    return halves.T @ halves


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
