"""Inverse kinematics with several tasks: one step for control, and a search that converges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.inverse_kinematics import (
    RESTARTS,
    Kinematics,
    Reached,
    limited_least_squares,
    reach,
)
from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.robot.inputs import FrameName, numbers
from rbda_ros.robot.kinematic_tasks import (
    PoseTask,
    PositionTask,
    StackedTasks,
    Task,
    checked_tasks,
)
from rbda_ros.robot.operations import Position
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot


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

    Damped Newton steps (Featherstone 2010, Fig. 6), from the guess and, where these do not lead
    there, from random positions. Limits of dependent joints, such as motors behind a linkage, are
    respected too. Tasks that are not soft are met first; soft ones, such as a posture, are then met
    as well as the others let them be. Targets out of reach give the nearest position found, with
    ``reached`` False and the error that is left.

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
        InputError: tasks that cannot be, or a frame that the robot does not have.
    """
    sizes = robot.nq, robot._inputs.independent_size
    given = robot.tree.home if guess is None else robot._inputs.single("guess", guess, *sizes)
    start = robot.close(given)
    wanted = _tasks(robot, tasks, target)
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance!r}; give a positive number")
    base_nv = 0 if move_base else robot.coordinates.base_nv
    hard = StackedTasks(robot, tuple(t for t in wanted if not t.soft), base_nv)
    soft = StackedTasks(robot, tuple(t for t in wanted if t.soft), base_nv)
    return reach(_kinematics(robot, base_nv), hard, soft, start, tolerance, restarts, seed)


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
        InputError: tasks that cannot be, or a time or gain that is not positive.
    """
    state = robot._single_state(q)
    wanted = _tasks(robot, tasks, None)
    for name, value in (("dt", dt), ("gain", gain), ("damping", damping)):
        number = numbers(name, value)
        if number.ndim or not 0.0 < float(number) < np.inf:
            raise InputError(f"{name} is {value!r}; give a positive number")
    stack = StackedTasks(robot, wanted, 0 if move_base else robot.coordinates.base_nv)
    scales = stack.scales(state.q)
    J = scales[:, None] * stack.jacobian(state.q)
    error = scales * stack.error(state.q) * (gain / dt)
    kinematics = _kinematics(robot, stack.base_nv)
    G, below, above = kinematics.limits(state.q)
    fastest = robot.limits.velocity[list(kinematics.scalar_velocities)]
    low, high = np.maximum(below / dt, -fastest), np.minimum(above / dt, fastest)
    return limited_least_squares(J, error, damping, G, low, high)


def _tasks(robot: Robot, tasks: Any, target: ArrayLike | None) -> tuple[Task, ...]:
    """The tasks, checked; of a frame and its target, the task that they stand for."""
    if target is not None:
        goal = numbers("target", target)
        kind = PositionTask if goal.shape == (3,) else PoseTask
        return checked_tasks(robot, [kind(tasks, goal)])
    if hasattr(tasks, "checked"):
        return checked_tasks(robot, [tasks])
    if isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise InputError(f"tasks: {tasks!r}; give tasks, or a frame with its target")
    return checked_tasks(robot, tasks)


def _kinematics(robot: Robot, base_nv: int) -> Kinematics:
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
        base_nv=base_nv,
        ny=robot.ny,
    )
