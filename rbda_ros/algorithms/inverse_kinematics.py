"""Iterative inverse kinematics (Featherstone 2010, Fig. 6), made robust on the cluster tree.

The figure's Newton step ``J dy = error`` becomes a damped one (Levenberg and Marquardt), limited
in length and by the joint limits. For a target out of reach the result is the nearest position
found, marked as not reached. Soft tasks are met in the null space of the others (Siciliano 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.spatial import Array

LONGEST_STEP = 0.5
"""Longest step of any coordinate [rad, m]."""
ITERATIONS = 200
"""Steps of one search."""
RESTARTS = 20
"""Searches from random positions within the limits, if the first does not reach the target."""
DRAWS = 20
"""Random positions tried until one closes the loops with dependent joints within limits."""
LIMIT_TOLERANCE = 1e-9
"""How far rounding may take a joint past its limit [rad, m]."""
PATIENCE, STAGNATION = 10, 0.9
"""A search ends if so many steps leave more than this share of the error."""
SOFT_STEPS = 50
"""Steps towards soft tasks."""
SOFT_ENOUGH = 1e-6
"""Largest coordinate of a step towards soft tasks that is too small to take [rad, m]."""
HALVINGS = 6
"""How often such a step is halved until it reduces the error."""
RETURN_STEPS = 20
"""Newton steps that lead back to the tasks that are not soft."""


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the search ended.

    Attributes:
        q: (nq,) spanning position.
        reached: whether the target is met to the tolerance.
        error: (m,) what is left of the tasks that are not soft, in their order: positions [m],
            then rotation vectors [rad], in world axes.
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
        scales: (m,) square roots of weights of the errors, or (1,) one for all of them.
        limits: ``q -> G, low, high``: steps dy have ``low <= G dy <= high``; None for no limits.
    """

    error: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    move: Callable[[Array, Array], Array | None]
    scales: Array = field(default_factory=lambda: np.ones(1))
    limits: Callable[[Array], tuple[Array, Array, Array]] | None = None


def solve(
    problem: Problem,
    start: Array,
    tolerance: float,
    most_iterations: int,
    give_up: bool = False,
) -> Reached:
    """Steps from ``start`` until the error is below ``tolerance`` or cannot be made smaller.

    Args:
        problem: what to solve.
        start: (nq,) where to begin.
        tolerance: largest error.
        most_iterations: steps, at most.
        give_up: whether to end where steps gain little: another start may be nearer.
    """
    q, error = start, problem.error(start)
    damping, earlier = 1e-3, np.inf
    for iteration in range(most_iterations):
        check_cancelled()
        if give_up and iteration % PATIENCE == 0:
            if _length(problem, error) > STAGNATION * earlier:
                break
            earlier = _length(problem, error)
        if np.abs(error).max(initial=0.0) <= tolerance:
            return Reached(q, True, error, iteration)
        J = problem.scales[:, None] * problem.jacobian(q)
        wanted = problem.scales * error
        step = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(len(error)), wanted)
        if problem.limits is not None:
            G, low, high = problem.limits(q)
            if np.any(G @ step < low) or np.any(G @ step > high):
                step = limited_least_squares(J, wanted, max(damping, 1e-9), G, low, high)
        step *= min(1.0, LONGEST_STEP / np.abs(step).max(initial=LONGEST_STEP))
        trial = problem.move(q, step)
        new = error if trial is None else problem.error(trial)
        if trial is not None and _length(problem, new) < _length(problem, error):
            q, error, damping = trial, new, max(damping / 10, 1e-12)
        elif damping < 1e6:
            damping *= 10
        else:
            break
    return Reached(q, bool(np.abs(error).max(initial=0.0) <= tolerance), error, most_iterations)


def _length(problem: Problem, error: Array) -> float:
    return float(np.linalg.norm(problem.scales * error))


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Functions of a robot that the search calls.

    Attributes:
        spanning_velocity: ``q, yd -> qd`` (nv,); of a batch of yd (N, ny) as well.
        integrate: ``q, step -> q`` (nq,) reached by moving with velocity ``step`` (nv,).
        close: ``q, near -> q`` (nq,) with loops closed, from near there; None where they do not.
        lower, upper: (nq,) limits of q; infinite where there is none.
        scalar_positions: entries of q of joints with one coordinate.
        scalar_velocities: entries of qd of the same joints.
        base_nv: how many coordinates of y, the first, are a floating base's that stays.
        ny: how many coordinates y has.
    """

    spanning_velocity: Callable[[Array, Array], Array]
    integrate: Callable[[Array, Array], Array]
    close: Callable[[Array, Array], Array | None]
    lower: Array
    upper: Array
    scalar_positions: tuple[int, ...]
    scalar_velocities: tuple[int, ...]
    base_nv: int
    ny: int

    def limits(self, q: Array) -> tuple[Array, Array, Array]:
        """Which steps of y stay within the limits of joints of one coordinate.

        Returns:
            G (joints, ny), and bounds (joints,) of ``G dy``.
        """
        positions = list(self.scalar_positions)
        below, above = self.lower[positions] - q[positions], self.upper[positions] - q[positions]
        G = self.spanning_velocity(q, np.eye(self.ny)).T[list(self.scalar_velocities)]
        return G, np.minimum(below, 0.0), np.maximum(above, 0.0)

    def move(self, q: Array, dy: Array) -> Array | None:
        """The closed position that ``dy`` (ny,) leads to, along the limits it meets; or None."""
        guess = self.integrate(q, self.spanning_velocity(q, dy))
        moved = self.close(np.clip(guess, self.lower, self.upper), q)
        return moved if moved is not None and self.within(moved) else None

    def random_start(self, start: Array, rng: np.random.Generator) -> Array | None:
        """A closed position with joints within their limits, anywhere within pi of ``start``."""
        for _ in range(DRAWS):
            step = rng.uniform(-np.pi, np.pi, self.ny)
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


def reach(
    kinematics: Kinematics,
    hard: Problem,
    soft: Problem,
    start: Array,
    tolerance: float,
    restarts: int,
    seed: int,
) -> Reached:
    """The best of a search from ``start`` (nq,), which is closed, and of some from elsewhere.

    Args:
        kinematics: of the robot.
        hard: tasks that are not soft.
        soft: the others.
        start: (nq,) where the first search begins.
        tolerance: largest error of the tasks that are not soft.
        restarts: how many searches begin at random positions, at most.
        seed: of these.
    """
    rng = np.random.default_rng(seed)
    if not kinematics.within(start):
        inside = kinematics.move(start, np.zeros(kinematics.ny))
        inside = kinematics.random_start(start, rng) if inside is None else inside
        start = start if inside is None else inside
    problem = replace(hard, limits=kinematics.limits)
    best = solve(problem, start, tolerance, ITERATIONS, give_up=restarts > 0)
    for _ in range(restarts):
        if best.reached:
            break
        another = kinematics.random_start(start, rng)
        if another is not None:
            found = solve(problem, another, tolerance, ITERATIONS, give_up=True)
            best = min(best, found, key=lambda r: _length(problem, r.error))
    if restarts and not best.reached:
        best = solve(problem, best.q, tolerance, ITERATIONS)
    return _yield_to(problem, soft, best, tolerance) if soft.error(start).size else best


def _yield_to(problem: Problem, soft: Problem, best: Reached, tolerance: float) -> Reached:
    """Steps towards soft tasks that keep the others, or leave them as near as they are."""
    most = max(tolerance, float(np.abs(best.error).max(initial=0.0)))
    for _ in range(SOFT_STEPS):
        J, error = problem.jacobian(best.q), soft.error(best.q)
        free = np.eye(J.shape[1]) - np.linalg.pinv(J, rcond=1e-8) @ J
        A = soft.scales[:, None] * soft.jacobian(best.q) @ free
        step = free @ np.linalg.lstsq(A, soft.scales * error, rcond=1e-8)[0]
        longest = np.abs(step).max(initial=0.0)
        if longest < SOFT_ENOUGH:
            break
        step *= min(1.0, LONGEST_STEP / longest)
        for halving in range(HALVINGS):
            moved = problem.move(best.q, step / 2**halving)
            if moved is None:
                continue
            back = solve(problem, moved, most, RETURN_STEPS)
            if back.reached and _length(soft, soft.error(back.q)) < _length(soft, error):
                met = bool(np.abs(back.error).max(initial=0.0) <= tolerance)
                best = Reached(back.q, met, back.error, best.iterations + 1 + back.iterations)
                break
        else:
            break
    return best


def limited_least_squares(
    J: Array, error: Array, damping: float, G: Array, low: Array, high: Array
) -> Array:
    """x (n,) with the least ``|J x - error|^2 + damping |x|^2`` and ``low <= G x <= high``.

    Least distance programming (Lawson and Hanson 1974, ch. 23): in coordinates in which the
    objective is a distance, its dual is a least-squares problem with variables that are not
    negative. Zero must be within the limits, so that there is a solution.

    Args:
        J, error: of the objective, (m, n) and (m,).
        damping: of the objective.
        G, low, high: limits; infinite ones do not count. What J does not see stays at zero.
    """
    from scipy.optimize import nnls  # not above: it takes 0.3 s to import

    x = np.zeros(J.shape[1])
    used = np.flatnonzero(np.abs(J).max(axis=0, initial=0.0) > 0.0)
    J, G = J[:, used], G[:, used]
    if not used.size:
        return x
    H = J.T @ J + damping * np.eye(len(used))
    L = np.linalg.cholesky(H)  # with z = L' (x - free), the objective is |z|^2
    free = np.linalg.solve(H, J.T @ error)
    felt = np.abs(G).max(axis=1, initial=0.0) > 0.0
    upper, lower = felt & np.isfinite(high), felt & np.isfinite(low)
    A = np.vstack([-G[upper], G[lower]])
    b = np.concatenate([-high[upper], low[lower]])
    missing = b - A @ free  # A x >= b
    if np.all(missing <= 0.0):
        x[used] = free
        return x
    A_z = np.linalg.solve(L, A.T)
    size = np.abs(missing).max()
    E, f = np.vstack([A_z, missing / size]), np.append(np.zeros(len(used)), 1.0)
    u, _ = nnls(E, f)
    r = E @ u - f
    x[used] = free + np.linalg.solve(L.T, -r[:-1] / r[-1] * size)
    return x
