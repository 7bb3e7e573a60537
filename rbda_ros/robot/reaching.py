"""Inverse kinematics of a robot: errors of poses, joint limits, restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.algorithms.inverse_kinematics import Problem, Reached, solve
from rbda_ros.errors import ClosureError, InputError
from rbda_ros.robot.inputs import FrameName, numbers
from rbda_ros.robot.poses import pose_error

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

Array = NDArray[np.float64]

ITERATIONS = 200
ROTATION_TOLERANCE = 1e-3
"""Largest error of a target's rotation matrix; it is orthogonalized below, refused above."""
RESTARTS = 20
"""Searches from random positions within the limits, where the first does not reach."""
DRAWS = 20
"""Random positions tried for one that closes the loops with dependent joints in limits, too."""
LIMIT_TOLERANCE = 1e-9


def reach(
    robot: Robot, frame: FrameName, target: ArrayLike, start: Array, tolerance: float
) -> Reached:
    """See `Robot.inverse_kinematics`; ``start`` is a closed spanning position (nq,)."""
    goal = _target(target)
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance!r}; give a positive number")
    rows = 6 if goal.shape == (4, 4) else 3
    first = 6 if robot.floating_base else 0  # the base stays
    lower, upper = _limits(robot)
    positions, velocities = _bounded(robot)

    def error(q: Array) -> Array:
        return pose_error(goal, robot.frame_pose(q, frame))

    def jacobian(q: Array) -> Array:
        J = robot.jacobian(q, frame)[:rows].copy()
        J[:, :first] = 0.0
        return J

    def move(q: Array, dy: Array) -> Array | None:
        dq = robot.spanning_velocity(q, dy)
        below, above = lower[positions] - q[positions], upper[positions] - q[positions]
        if np.any(dq[velocities] < below) or np.any(dq[velocities] > above):
            G = robot.spanning_velocity(q, np.eye(robot.ny)).T
            dq = G @ _along_limits(G[velocities], below, above, dy)
        guess = robot.tree.integrate(q, dq)
        try:
            moved = robot.close(np.clip(guess, lower, upper), guess=q)
        except (ClosureError, InputError):
            return None
        return moved if _within(moved, lower, upper) else None

    problem = Problem(error, jacobian, move)
    best = solve(problem, start, tolerance, ITERATIONS)
    rng = np.random.default_rng(0)
    for _ in range(RESTARTS):
        if best.reached:
            break
        another = _random_start(robot, start, lower, upper, rng)
        if another is not None:
            found = solve(problem, another, tolerance, ITERATIONS)
            best = min(best, found, key=lambda r: float(np.linalg.norm(r.error)))
    return best


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


def _limits(robot: Robot) -> tuple[Array, Array]:
    """Bounds (nq,) of q; infinite for joints of several degrees of freedom."""
    lower, upper = [], []
    for body in robot.tree.spanning.bodies:
        limits, nq = body.joint.limits, body.model.nq
        bounded = nq == 1 and limits.lower <= limits.upper
        lower += [limits.lower if bounded else -np.inf] * nq
        upper += [limits.upper if bounded else np.inf] * nq
    return np.array(lower), np.array(upper)


def _bounded(robot: Robot) -> tuple[list[int], list[int]]:
    """Where joints of one degree of freedom are in q, and where in qd."""
    positions, velocities, iq, iv = [], [], 0, 0
    for body in robot.tree.spanning.bodies:
        if body.model.nq == 1:
            positions.append(iq)
            velocities.append(iv)
        iq, iv = iq + body.model.nq, iv + body.model.nv
    return positions, velocities


def _along_limits(G: Array, below: Array, above: Array, dy: Array) -> Array:
    """The step nearest to dy that keeps ``below <= G dy <= above``, where one is found.

    Limits of dependent joints, such as rotors, are limits of y too: the step slides along them.
    """
    active: list[int] = []
    stop = np.zeros(len(G))
    step = dy
    for _ in range(len(dy)):
        excess = np.maximum(G @ step - above, below - G @ step)
        worst = int(np.argmax(excess))
        if excess[worst] <= LIMIT_TOLERANCE / 10:
            break
        stop[worst] = above[worst] if G[worst] @ step > above[worst] else below[worst]
        active.append(worst)
        A = G[active]
        step = dy - np.linalg.lstsq(A, A @ dy - stop[active], rcond=1e-10)[0]
    return step


def _random_start(
    robot: Robot, start: Array, lower: Array, upper: Array, rng: np.random.Generator
) -> Array | None:
    """A closed position with every joint within its limits, anywhere within pi of ``start``."""
    for _ in range(DRAWS):
        step = rng.uniform(-np.pi, np.pi, robot.ny)
        step[: 6 if robot.floating_base else 0] = 0.0
        guess = robot.tree.integrate(start, robot.spanning_velocity(start, step))
        low, high = np.maximum(lower, start - np.pi), np.minimum(upper, start + np.pi)
        outside = (guess < low) | (guess > high)
        guess = np.where(outside, rng.uniform(low, np.maximum(low, high)), guess)
        try:
            closed = robot.close(guess, guess=start)
        except (ClosureError, InputError):
            continue
        if _within(closed, lower, upper):
            return closed
    return None


def _within(q: Array, lower: Array, upper: Array) -> bool:
    return bool(np.all(q >= lower - LIMIT_TOLERANCE) and np.all(q <= upper + LIMIT_TOLERANCE))
