"""Inverse kinematics with several tasks: one step for control, and a search that converges.

A task is a target with a weight. It gives the error that is left, and the Jacobian by which y
reduces it. Several tasks are stacked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.inverse_kinematics import (
    RESTARTS,
    Kinematics,
    Problem,
    Reached,
    limited_least_squares,
    reach,
)
from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.robot.inputs import FrameName, numbers, pose_error
from rbda_ros.robot.operations import Position
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

ROTATION_TOLERANCE = 1e-3
"""Largest error of a target's rotation matrix; it is orthogonalized below, rejected above."""


class Task(Protocol):
    """A target of inverse kinematics.

    Attributes:
        weight: of its squared error, relative to other tasks.
        soft: whether tasks that are not soft take precedence, and whether it may be missed.
    """

    @property
    def weight(self) -> float:
        """Weight of its squared error."""

    @property
    def soft(self) -> bool:
        """Whether tasks that are not soft take precedence over it."""

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` if it cannot be a task of this robot."""

    def error(self, robot: Robot, state: State) -> Array:
        """The error (m,): target minus present value [m, rad]."""

    def jacobian(self, robot: Robot, state: State) -> Array:
        """The Jacobian (m, ny) of the present value."""


@dataclass(frozen=True, eq=False)
class _FrameTask(ABC):
    """A frame at a pose, or at a part of one: ``rows`` of its error."""

    frame: FrameName
    target: ArrayLike
    weight: float = 1.0
    soft: bool = False
    rows: ClassVar[slice] = slice(0, 6)

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` if it cannot be a task of this robot."""
        robot._inputs.frame(self.frame)
        self._check_target()

    def error(self, robot: Robot, state: State) -> Array:
        """The error (m,): target minus present value [m, rad]."""
        return pose_error(self._goal(), robot.frame_pose(state, self.frame))[self.rows]

    def jacobian(self, robot: Robot, state: State) -> Array:
        """The Jacobian (m, ny) of the present value."""
        return np.asarray(robot.jacobian(state, self.frame)[self.rows])

    @abstractmethod
    def _check_target(self) -> None:
        """Raise `InputError` if the target has not the form that the task needs."""

    def _goal(self) -> Array:
        """The target as `pose_error` takes it: (3,) or (4, 4)."""
        return np.asarray(self.target, float)


class PositionTask(_FrameTask):
    """A frame's origin at a position.

    Attributes:
        frame: a link, or a link with an offset.
        target: (3,) in the world [m].
        weight: of its squared error.
        soft: see `Task`.
    """

    rows = slice(0, 3)

    def _check_target(self) -> None:
        _finite_target(self.target, 3)


class OrientationTask(_FrameTask):
    """A frame's axes along those of a rotation.

    Attributes:
        frame: a link, or a link with rotated axes.
        target: (3, 3) rotation, frame axes to world axes.
        weight: of its squared error.
        soft: see `Task`.
    """

    rows = slice(3, 6)

    def _check_target(self) -> None:
        _check_rotation(numbers("target", self.target))

    def _goal(self) -> Array:
        pose = np.eye(4)
        pose[:3, :3] = self.target
        return pose


class PoseTask(_FrameTask):
    """A frame at a pose.

    Attributes:
        frame: a link, or a link with an offset and rotated axes.
        target: (4, 4) in the world.
        weight: of its squared error; a metre counts as much as a radian.
        soft: see `Task`.
    """

    def _check_target(self) -> None:
        _check_rotation(_finite_target(self.target, 4, 4)[:3, :3])


@dataclass(frozen=True, eq=False)
class CenterOfMassTask:
    """The centre of mass at a position.

    Attributes:
        target: (3,) in the world [m].
        weight: of its squared error.
        soft: see `Task`.
    """

    target: ArrayLike
    weight: float = 1.0
    soft: bool = False

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` if it cannot be a task of this robot."""
        _finite_target(self.target, 3)

    def error(self, robot: Robot, state: State) -> Array:
        """The error (m,): target minus present value [m, rad]."""
        return np.asarray(np.asarray(self.target, float) - robot.center_of_mass(state))

    def jacobian(self, robot: Robot, state: State) -> Array:
        """The Jacobian (m, ny) of the present value."""
        return np.asarray(robot.center_of_mass_jacobian(state))


@dataclass(frozen=True, eq=False)
class PostureTask:
    """The independent joints at a position; soft by default.

    Attributes:
        target: (nq,) spanning position, whose independent joints count [rad, m].
        weight: of its squared error.
        soft: see `Task`.
    """

    target: ArrayLike
    weight: float = 1.0
    soft: bool = True

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` if it cannot be a task of this robot."""
        robot._inputs.single("posture", self.target, robot.nq)

    def error(self, robot: Robot, state: State) -> Array:
        """The error (m,): target minus present value [m, rad]."""
        step = robot.difference(state, self.target)
        return np.asarray(step[list(robot.independent_coordinates)][robot.coordinates.base_nv :])

    def jacobian(self, robot: Robot, state: State) -> Array:
        """The Jacobian (m, ny) of the present value."""
        return np.eye(robot.ny)[robot.coordinates.base_nv :]


def _finite_target(value: ArrayLike, *shape: int) -> Array:
    given = numbers("target", value)
    if given.shape != shape or not np.isfinite(given).all():
        raise InputError("target: give a finite (4, 4) pose or (3,) position")
    return given


def _check_rotation(R: Array) -> None:
    if R.shape != (3, 3) or not np.isfinite(R).all():
        raise InputError("target: no orientation; give a finite (3, 3) rotation")
    if not np.allclose(R @ R.T, np.eye(3), atol=ROTATION_TOLERANCE) or np.linalg.det(R) < 0.0:
        raise InputError("target: its upper left (3, 3) block is no rotation")


def inverse_kinematics(
    robot: Robot,
    tasks: Task | Sequence[Task] | FrameName,
    target: ArrayLike | None = None,
    guess: ArrayLike | None = None,
    *,
    tolerance: float = 1e-8,
    move_base: bool = False,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> Reached:
    """A position on the loops and within the limits of all joints at which tasks are met.

    Damped Newton steps (Featherstone 2010, Fig. 6), from the guess and, if these fail, from random
    positions. Limits of dependent joints, such as motors behind a linkage, are respected too. Tasks
    that are not soft are met first; soft ones, such as a posture, are then met as well as possible.
    Targets out of reach give the nearest position found, with ``reached`` False and the error that
    is left.

    Args:
        tasks: one or several of `PoseTask`, `PositionTask`, `OrientationTask`,
            `CenterOfMassTask` and `PostureTask`; or a frame, with its target.
        target: of a frame: (4, 4) pose in the world, or (3,) position alone [m]; None with tasks.
        guess: (nq,) spanning or independent position to start from; None for the assembly.
        tolerance: largest error of any coordinate of a task that is not soft [m, rad].
        move_base: whether a floating base moves too; else it stays where the guess has it.
        restarts: searches from random positions, at most.
        seed: of the random positions.

    Raises:
        InputError: invalid tasks, or a frame that the robot does not have.
    """
    sizes = robot.nq, robot._inputs.independent_size
    given = robot.neutral() if guess is None else robot._inputs.single("guess", guess, *sizes)
    start = robot.close(given)
    wanted = _tasks(robot, tasks, target)
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance!r}; give a positive number")
    kinematics = _kinematics(robot, move_base)
    hard = _problem(robot, [t for t in wanted if not t.soft], start, kinematics)
    soft = _problem(robot, [t for t in wanted if t.soft], start, kinematics)
    return reach(kinematics, hard, soft, start, tolerance, restarts, seed)


def inverse_kinematics_step(
    robot: Robot,
    q: Position,
    tasks: Task | Sequence[Task],
    dt: float,
    *,
    gain: float = 1.0,
    damping: float = 1e-6,
    move_base: bool = False,
) -> Array:
    """The independent velocity (ny,) that leads towards tasks, for one cycle of a controller.

    It minimizes the weighted ``|J yd - gain error / dt|^2`` and ``damping |yd|^2`` while all
    joints, dependent ones too, stay within their limits of position and velocity for the time dt.
    A joint that is beyond a limit does not go further. Soft tasks count with their weights.

    Args:
        q: (nq,) spanning position, or independent position; one state.
        tasks: as for `inverse_kinematics`.
        dt: time of the cycle [s].
        gain: share of the error that one cycle removes, 0 to 1.
        damping: of velocities; larger is slower near singular positions.
        move_base: whether a floating base moves too.

    Raises:
        InputError: invalid tasks, or a time or gain that is not positive.
    """
    state = robot._single_state(q)
    wanted = _tasks(robot, tasks, None)
    for name, value in (("dt", dt), ("gain", gain), ("damping", damping)):
        number = numbers(name, value)
        if number.ndim or not 0.0 < float(number) < np.inf:
            raise InputError(f"{name} is {value!r}; give a positive number")
    kinematics = _kinematics(robot, move_base)
    problem = _problem(robot, wanted, state.q, kinematics)
    J = problem.scales[:, None] * problem.jacobian(state.q)
    error = problem.scales * problem.error(state.q) * (gain / dt)
    G, below, above = kinematics.limits(state.q)
    fastest = robot.limits.velocity[list(kinematics.scalar_velocities)]
    low, high = np.maximum(below / dt, -fastest), np.minimum(above / dt, fastest)
    return limited_least_squares(J, error, damping, G, low, high)


def _tasks(robot: Robot, tasks: Any, target: ArrayLike | None) -> tuple[Task, ...]:
    """The checked tasks; for a frame and its target, the task that they mean."""
    if target is not None:
        goal = numbers("target", target)
        tasks = [PositionTask(tasks, goal) if goal.shape == (3,) else PoseTask(tasks, goal)]
    elif hasattr(tasks, "checked"):
        tasks = [tasks]
    elif isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise InputError(f"tasks: {tasks!r}; give tasks, or a frame with its target")
    for task in tasks:
        if not hasattr(task, "checked"):
            raise InputError(f"tasks: {task!r} is no task; give a PoseTask, a PositionTask, ...")
        task.checked(robot)
        weight = numbers("weight", task.weight)
        if weight.ndim or not 0.0 < float(weight) < np.inf:
            raise InputError(f"weight is {task.weight!r}; give a positive number")
    return tuple(tasks)


def _problem(robot: Robot, tasks: Sequence[Task], q: Array, kinematics: Kinematics) -> Problem:
    """Tasks stacked into one problem. Any position q (nq,) gives the sizes of their errors."""

    def error(q: Array) -> Array:
        state = robot.state(q)
        return np.concatenate([np.zeros(0), *(task.error(robot, state) for task in tasks)])

    def jacobian(q: Array) -> Array:
        state = robot.state(q)
        J = np.vstack([np.zeros((0, robot.ny)), *(task.jacobian(robot, state) for task in tasks)])
        J[:, : kinematics.base_nv] = 0.0  # of a base that stays
        return J

    state = robot.state(q)
    sizes = [len(task.error(robot, state)) for task in tasks]
    weights = np.array([task.weight for task in tasks], float)
    return Problem(error, jacobian, kinematics.move, np.sqrt(np.repeat(weights, sizes)))


def _kinematics(robot: Robot, move_base: bool) -> Kinematics:
    layout = robot.coordinates

    def close(position: Array, near: Array) -> Array | None:
        try:
            return np.asarray(robot.state(robot.close(position, guess=near)).q)
        except (ClosureError, InputError, SingularityError):
            return None

    return Kinematics(
        spanning_velocity=robot.spanning_velocity,
        integrate=robot.tree.integrate,
        close=close,
        lower=robot.limits.lower,
        upper=robot.limits.upper,
        scalar_positions=tuple(layout.scalar_positions.values()),
        scalar_velocities=tuple(
            layout.velocities[joint].start for joint in layout.scalar_positions
        ),
        base_nv=0 if move_base else layout.base_nv,
        ny=robot.ny,
    )
