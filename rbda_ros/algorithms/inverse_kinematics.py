"""Iterative inverse kinematics (Featherstone 2010, Fig. 6), made robust on the cluster tree.

The figure's Newton step ``J dy = error`` becomes a damped one (Levenberg and Marquardt), limited
in length and by the joint limits, and a target out of reach ends in the nearest position found
and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rbda_ros.spatial import Array

LONGEST_STEP = 0.5
"""Longest step of any coordinate [rad, m]."""
ITERATIONS = 200
"""Steps of one search."""
RESTARTS = 20
"""Searches from random positions within the limits, where the first does not reach."""
DRAWS = 20
"""Random positions tried for one that closes the loops with dependent joints in limits, too."""
LIMIT_TOLERANCE = 1e-9
"""How far rounding may take a joint past its limit [rad, m]."""


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the search ended.

    Attributes:
        q: (nq,) spanning position.
        reached: whether the target is met to the tolerance.
        error: (6,) what is left: position [m], then rotation vector [rad], world axes.
        iterations: how many steps it took.
    """

    q: Array
    reached: bool
    error: Array
    iterations: int


@dataclass(frozen=True)
class Problem:
    """An inverse-kinematics problem as functions of the spanning position.

    Attributes:
        error: ``q -> (m,)`` target minus pose.
        jacobian: ``q -> (m, ny)`` of the pose.
        move: ``q, dy -> q`` along the constraint manifold and within the limits; None where the
            loops cannot follow.
    """

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    move: Callable[[Array, Array], Array | None]


def solve(problem: Problem, start: Array, tolerance: float, most_iterations: int) -> Reached:
    """Steps from ``start`` until the error is below ``tolerance`` or cannot be made smaller."""
    q, error = start, problem.error(start)
    damping = 1e-3
    for iteration in range(most_iterations):
        if np.abs(error).max(initial=0.0) <= tolerance:
            return Reached(q, True, error, iteration)
        J = problem.jacobian(q)
        step = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(len(error)), error)
        step *= min(1.0, LONGEST_STEP / np.abs(step).max(initial=LONGEST_STEP))
        trial = problem.move(q, step)
        if trial is not None and np.linalg.norm(new := problem.error(trial)) < np.linalg.norm(
            error
        ):
            q, error, damping = trial, new, max(damping / 10, 1e-12)
        elif damping < 1e6:
            damping *= 10
        else:
            break
    return Reached(q, bool(np.abs(error).max(initial=0.0) <= tolerance), error, most_iterations)


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Functions of a robot that the search calls.

    Attributes:
        error: ``q -> (m,)`` target minus pose.
        jacobian: ``q -> (m, ny)`` of the pose.
        spanning_velocity: ``q, yd -> qd`` (nv,); of a batch of yd (N, ny) as well.
        integrate: ``q, step -> q`` (nq,) reached by moving with velocity ``step`` (nv,).
        close: ``q, near -> q`` (nq,) with loops closed, from near there; None where they do not.
        lower, upper: (nq,) limits of q; infinite where there is none.
        scalar_positions: entries of q of joints with one coordinate.
        scalar_velocities: entries of qd of the same joints.
        base_nv: how many coordinates of y, the first, are a floating base's, which stays.
    """

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    spanning_velocity: Callable[[Array, Array], Array]
    integrate: Callable[[Array, Array], Array]
    close: Callable[[Array, Array], Array | None]
    lower: Array
    upper: Array
    scalar_positions: tuple[int, ...]
    scalar_velocities: tuple[int, ...]
    base_nv: int

    def jacobian_of_joints(self, q: Array) -> Array:
        """The Jacobian (m, ny) with a base that stays."""
        J = self.jacobian(q).copy()
        J[:, : self.base_nv] = 0.0
        return J

    def move(self, q: Array, dy: Array) -> Array | None:
        """The closed position that ``dy`` (ny,) leads to, along the limits it meets; or None."""
        positions, velocities = list(self.scalar_positions), list(self.scalar_velocities)
        dq = self.spanning_velocity(q, dy)
        below, above = self.lower[positions] - q[positions], self.upper[positions] - q[positions]
        if np.any(dq[velocities] < below) or np.any(dq[velocities] > above):
            G = self.spanning_velocity(q, np.eye(len(dy))).T
            dq = G @ _along_limits(G[velocities], below, above, dy)
        guess = self.integrate(q, dq)
        moved = self.close(np.clip(guess, self.lower, self.upper), q)
        return moved if moved is not None and self.within(moved) else None

    def random_start(self, start: Array, ny: int, rng: np.random.Generator) -> Array | None:
        """A closed position with joints within their limits, anywhere within pi of ``start``."""
        for _ in range(DRAWS):
            step = rng.uniform(-np.pi, np.pi, ny)
            step[: self.base_nv] = 0.0
            guess = self.integrate(start, self.spanning_velocity(start, step))
            low = np.maximum(self.lower, start - np.pi)
            high = np.minimum(self.upper, start + np.pi)
            outside = (guess < low) | (guess > high)
            guess = np.where(outside, rng.uniform(low, np.maximum(low, high)), guess)
            closed = self.close(guess, start)
            if closed is not None and self.within(closed):
                return closed
        return None

    def within(self, q: Array) -> bool:
        """Whether every joint is within its limits."""
        below, above = q < self.lower - LIMIT_TOLERANCE, q > self.upper + LIMIT_TOLERANCE
        return not (below.any() or above.any())


def reach(kinematics: Kinematics, start: Array, tolerance: float) -> Reached:
    """The best of a search from ``start`` (nq,), which is closed, and of some from elsewhere."""
    problem = Problem(kinematics.error, kinematics.jacobian_of_joints, kinematics.move)
    best = solve(problem, start, tolerance, ITERATIONS)
    rng = np.random.default_rng(0)
    ny = kinematics.jacobian(start).shape[1]
    for _ in range(RESTARTS):
        if best.reached:
            break
        another = kinematics.random_start(start, ny, rng)
        if another is not None:
            found = solve(problem, another, tolerance, ITERATIONS)
            best = min(best, found, key=lambda r: float(np.linalg.norm(r.error)))
    return best


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
