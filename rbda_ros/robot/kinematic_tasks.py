"""Tasks of inverse kinematics: what shall be where, and how much it counts.

A task has an error, which leads from where something is to where it shall be, and a Jacobian, by
which y changes it. Several tasks of different weights are stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.errors import InputError
from rbda_ros.robot.inputs import FrameName, numbers
from rbda_ros.robot.poses import pose_error
from rbda_ros.robot.state import State
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

ROTATION_TOLERANCE = 1e-3
"""Largest error of a target's rotation matrix; it is orthogonalized below, rejected above."""


class Task(Protocol):
    """Something to be reached.

    Attributes:
        weight: of its squared error beside that of others.
        soft: whether it gives way to those that are not soft, and does not count as missed.
    """

    @property
    def weight(self) -> float:
        """Of its squared error beside that of others."""

    @property
    def soft(self) -> bool:
        """Whether it gives way to those that are not soft."""

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""

    def error(self, robot: Robot, state: State) -> Array:
        """(m,) what is left to go [m, rad]."""

    def jacobian(self, robot: Robot, state: State) -> Array:
        """(m, ny) by which y takes the error away."""


@dataclass(frozen=True, eq=False)
class PositionTask:
    """A frame's origin at a position.

    Attributes:
        frame: a link, or a link with an offset.
        target: (3,) in the world [m].
        weight: of its squared error.
        soft: as `Task` has it.
    """

    frame: FrameName
    target: ArrayLike
    weight: float = 1.0
    soft: bool = False

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""
        robot._inputs.frame(self.frame)
        _vector(self.target)

    def error(self, robot: Robot, state: State) -> Array:
        """Error (m,) that is left to go [m, rad]."""
        return np.asarray(self.target, float) - robot.frame_pose(state, self.frame)[:3, 3]

    def jacobian(self, robot: Robot, state: State) -> Array:
        """By which y takes the error away, (m, ny)."""
        return np.asarray(robot.jacobian(state, self.frame)[:3])


@dataclass(frozen=True, eq=False)
class OrientationTask:
    """A frame's axes along those of a rotation.

    Attributes:
        frame: a link, or a link with rotated axes.
        target: (3, 3) rotation, frame axes to world axes.
        weight: of its squared error.
        soft: as `Task` has it.
    """

    frame: FrameName
    target: ArrayLike
    weight: float = 1.0
    soft: bool = False

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""
        robot._inputs.frame(self.frame)
        _rotation(numbers("target", self.target))

    def error(self, robot: Robot, state: State) -> Array:
        """Error (m,) that is left to go [m, rad]."""
        pose = np.eye(4)
        pose[:3, :3] = self.target
        return pose_error(pose, robot.frame_pose(state, self.frame))[3:]

    def jacobian(self, robot: Robot, state: State) -> Array:
        """By which y takes the error away, (m, ny)."""
        return np.asarray(robot.jacobian(state, self.frame)[3:])


@dataclass(frozen=True, eq=False)
class PoseTask:
    """A frame at a pose.

    Attributes:
        frame: a link, or a link with an offset and rotated axes.
        target: (4, 4) in the world.
        weight: of its squared error; a metre counts as much as a radian.
        soft: as `Task` has it.
    """

    frame: FrameName
    target: ArrayLike
    weight: float = 1.0
    soft: bool = False

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""
        robot._inputs.frame(self.frame)
        goal = numbers("target", self.target)
        if goal.shape != (4, 4) or not np.isfinite(goal).all():
            raise InputError("target: give a finite (4, 4) pose or (3,) position")
        _rotation(goal[:3, :3])

    def error(self, robot: Robot, state: State) -> Array:
        """Error (m,) that is left to go [m, rad]."""
        return pose_error(np.asarray(self.target, float), robot.frame_pose(state, self.frame))

    def jacobian(self, robot: Robot, state: State) -> Array:
        """By which y takes the error away, (m, ny)."""
        return np.asarray(robot.jacobian(state, self.frame))


@dataclass(frozen=True, eq=False)
class CenterOfMassTask:
    """The centre of mass at a position.

    Attributes:
        target: (3,) in the world [m].
        weight: of its squared error.
        soft: as `Task` has it.
    """

    target: ArrayLike
    weight: float = 1.0
    soft: bool = False

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""
        _vector(self.target)

    def error(self, robot: Robot, state: State) -> Array:
        """Error (m,) that is left to go [m, rad]."""
        return np.asarray(np.asarray(self.target, float) - robot.center_of_mass(state))

    def jacobian(self, robot: Robot, state: State) -> Array:
        """By which y takes the error away, (m, ny)."""
        return np.asarray(robot.center_of_mass_jacobian(state))


@dataclass(frozen=True, eq=False)
class PostureTask:
    """The independent joints at a position; soft unless said otherwise.

    Attributes:
        target: (nq,) spanning position, whose independent joints count [rad, m].
        weight: of its squared error.
        soft: as `Task` has it.
    """

    target: ArrayLike
    weight: float = 1.0
    soft: bool = True

    def checked(self, robot: Robot) -> None:
        """Raise `InputError` where it cannot be a task of this robot."""
        robot._inputs.single("posture", self.target, robot.nq)

    def error(self, robot: Robot, state: State) -> Array:
        """Error (m,) that is left to go [m, rad]."""
        step = robot.difference(state, self.target)
        return np.asarray(step[list(robot.independent_coordinates)][robot.coordinates.base_nv :])

    def jacobian(self, robot: Robot, state: State) -> Array:
        """By which y takes the error away, (m, ny)."""
        return np.eye(robot.ny)[robot.coordinates.base_nv :]


@dataclass(frozen=True, eq=False)
class StackedTasks:
    """Several tasks one below the other.

    Attributes:
        robot: whose tasks they are.
        tasks: in their order.
        base_nv: how many coordinates of y, the first, shall not move.
    """

    robot: Robot
    tasks: tuple[Task, ...]
    base_nv: int

    def error(self, q: Array) -> Array:
        """(m,) of all tasks, not weighted."""
        state = self.robot.state(q)
        return np.concatenate([np.zeros(0), *(t.error(self.robot, state) for t in self.tasks)])

    def jacobian(self, q: Array) -> Array:
        """(m, ny) of all tasks, not weighted; zero for a base that stays."""
        state = self.robot.state(q)
        J = np.vstack(
            [np.zeros((0, self.robot.ny)), *(t.jacobian(self.robot, state) for t in self.tasks)]
        )
        J[:, : self.base_nv] = 0.0
        return J

    def scales(self, q: Array) -> Array:
        """(m,) square roots of the weights."""
        state = self.robot.state(q)
        sizes = [len(task.error(self.robot, state)) for task in self.tasks]
        weights = np.array([task.weight for task in self.tasks], float)
        return np.sqrt(np.repeat(weights, sizes))


def checked_tasks(robot: Robot, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The same tasks; an `InputError` says what is wrong with one."""
    for task in tasks:
        if not hasattr(task, "checked"):
            raise InputError(f"tasks: {task!r} is no task; give a PoseTask, a PositionTask, ...")
        task.checked(robot)
        weight = numbers("weight", task.weight)
        if weight.ndim or not 0.0 < float(weight) < np.inf:
            raise InputError(f"weight is {task.weight!r}; give a positive number")
    return tuple(tasks)


def _vector(value: ArrayLike) -> None:
    given = numbers("target", value)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise InputError("target: give a finite (4, 4) pose or (3,) position")


def _rotation(R: Array) -> None:
    if R.shape != (3, 3) or not np.isfinite(R).all():
        raise InputError("target: no orientation; give a finite (3, 3) rotation")
    if not np.allclose(R @ R.T, np.eye(3), atol=ROTATION_TOLERANCE) or np.linalg.det(R) < 0.0:
        raise InputError("target: its upper left (3, 3) block is no rotation")
