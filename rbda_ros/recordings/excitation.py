"""Motions that determine a robot's parameters well, within the limits of all joints and motors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from rbda_ros.errors import ClosureError, InputError, SingularityError
from rbda_ros.recordings.identification import check_what, unknowns_of
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import Evidence, regressor_of_efforts
from rbda_ros.robot.parameter_fit import NOT_EXCITED, expected_information
from rbda_ros.robot.results import RobotLimits
from rbda_ros.spatial import Array

HARMONICS = 5
MARGIN = 0.95
"""Share of every limit that is used."""
RANGE = 1.5
"""To either side, where a joint has no limit [rad, m]."""
NOISE = 0.02
"""Assumed standard deviation of measured efforts, as a share of the largest effort."""
SAMPLES = 120
"""States at which limits and information of a motion are computed."""
SMALLEST = 1e-3
"""Scale of a shape below which it is said not to fit into the limits."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of the independent joints that begins and ends at rest.

    Attributes:
        joints: their names.
        times: (n,) [s].
        position, velocity, acceleration: (n, joints).
        information: about the parameters, from measured efforts [nat].
        told: names of the parameters that it determines.
        untold: names of the others that were asked for.
    """

    joints: tuple[str, ...]
    times: Array
    position: Array
    velocity: Array
    acceleration: Array
    information: float
    told: tuple[str, ...]
    untold: tuple[str, ...]


def _limits(robot: Robot, effort_limits: Mapping[str, float]) -> RobotLimits:
    """The share of all limits that is used; efforts are those of the actuated joints."""
    limits = robot.limits
    width = limits.upper - limits.lower
    kept = (1.0 - MARGIN) / 2 * np.where(np.isfinite(width), width, 0.0)
    given = [effort_limits.get(name, math.inf) for name in robot.actuated_joint_names]
    return RobotLimits(
        limits.lower + kept,
        limits.upper - kept,
        MARGIN * limits.velocity,
        MARGIN * np.minimum(limits.effort[list(robot.actuated_coordinates)], given),
    )


class _Search:
    """Scales shapes into the limits, and judges them."""

    def __init__(
        self,
        robot: Robot,
        seconds: float,
        what: Collection[str],
        effort_limits: Mapping[str, float],
    ) -> None:
        if robot.floating_base or len(robot.joint_names) != robot.nq:
            raise InputError(f"{robot.name}: takes a fixed base, and joints of one coordinate only")
        if len(robot.actuated_joint_names) != robot.ny:
            raise InputError(f"{robot.name}: takes as many actuators as degrees of freedom")
        self.robot, self.seconds, self._what = robot, seconds, what
        self._limits = _limits(robot, effort_limits)
        independent = list(robot.independent_coordinates)
        force = robot.limits.effort[independent]
        # A joint that no motor may move by itself has none; it is independent all the same.
        self._force = MARGIN * np.where(force, force, math.inf)
        lower, upper = self._limits.lower[independent], self._limits.upper[independent]
        home = robot.independent_position(robot.neutral())
        # Around the assembly, which closes the loops; moved inside the limits if it is not.
        inside = np.minimum(0.05 * RANGE, 0.25 * (upper - lower))
        self.center = np.clip(home, lower + inside, upper - inside)
        self._reach = np.minimum(np.minimum(self.center - lower, upper - self.center), RANGE)
        self._parameters = robot.parameters()

    def motion(self, shape: Array, scale: float, times: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations (n, ny) of a shape (ny, 2, harmonics)."""
        w = 2 * math.pi / self.seconds * np.arange(1, HARMONICS + 1)
        angle = np.outer(times, w)
        a, b = shape[:, 0].T, shape[:, 1].T
        s, c = np.sin(angle), np.cos(angle)
        f = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
        g = [each[:, None] for each in _rest_to_rest(times, self.seconds)]
        size = scale * self._reach
        position = self.center + size * g[0] * f[0]
        velocity = size * (g[1] * f[0] + g[0] * f[1])
        acceleration = size * (g[2] * f[0] + 2 * g[1] * f[1] + g[0] * f[2])
        return position, velocity, acceleration

    def fits(self, shape: Array, scale: float, times: Array) -> tuple[Array, Array, Array] | None:
        """Spanning positions, independent velocities and accelerations, if all is in the limits."""
        y, yd, ydd = self.motion(shape, scale, times)
        limits, robot = self._limits, self.robot
        try:
            q = robot.close(y)
            state = robot.state(q, yd)
            qd = robot.spanning_velocity(state, yd)
            efforts, force = robot.inverse_dynamics_efforts(state, yd, ydd, friction=True)
        except (ClosureError, SingularityError):
            return None
        inside = (
            (q >= limits.lower).all()
            and (q <= limits.upper).all()
            and (np.abs(qd) <= limits.velocity).all()
            and (np.abs(efforts) <= limits.effort).all()
            and (np.abs(force) <= self._force).all()
        )
        return (q, yd, ydd) if inside else None

    def scale(self, shape: Array, times: Array) -> float:
        """The largest share of a shape that fits; zero if none does."""
        low, high = 0.0, 1.0
        if self.fits(shape, high, times) is not None:
            return high
        for _ in range(7):
            middle = (low + high) / 2
            low, high = (middle, high) if self.fits(shape, middle, times) else (low, middle)
        return low if low > SMALLEST else 0.0

    def judge(self, shape: Array, scale: float, times: Array) -> tuple[float, Array, Array]:
        """Information, and deviations of the parameters before and after; see the fit."""
        found = self.fits(shape, scale, times) if scale else None
        if found is None:
            return -math.inf, np.zeros(0), np.zeros(0)
        values = self._parameters.values
        A = regressor_of_efforts(self.robot, *found)
        efforts = A @ values
        evidence = Evidence(times, A, efforts, found[1])
        unknowns = unknowns_of(self.robot, self._parameters, evidence, self._what, None)
        limit = self._limits.effort
        largest = np.abs(efforts).max(axis=0)
        noise = NOISE * np.where(np.isfinite(limit), limit, np.maximum(largest, 1e-9))
        return expected_information(A, values, unknowns, noise)


def excite(
    robot: Robot,
    what: Collection[str] = ("inertia", "friction"),
    *,
    seconds: float = 20.0,
    rate: float = 100.0,
    tries: int = 60,
    seed: int = 0,
    effort_limits: Mapping[str, float] | None = None,
    told: Callable[[int, float], None] = lambda done, information: None,
) -> Trajectory:
    """Search for a motion that determines the parameters well: Fourier series, varied at random.

    Position, velocity and effort limits hold for every joint and motor, dependent ones included,
    and the loops stay closed and away from their dead points.

    Args:
        robot: the model.
        what: some of inertia and friction.
        seconds: duration of the motion.
        rate: states a second of the result [Hz].
        tries: motions to try; more are better.
        seed: of the search.
        effort_limits: largest efforts of actuated joints, beside the description's [N m, N].
        told: called with the number of motions tried, and the information of the best.

    Raises:
        InputError: arguments that cannot be used, or no motion fits into the limits.
    """
    check_what(what, ("inertia", "friction"))
    if not (0.0 < seconds < math.inf and 0.0 < rate < math.inf and seconds * rate >= SAMPLES):
        raise InputError(f"{seconds:g} s at {rate:g} Hz: give at least {SAMPLES} states")
    search = _Search(robot, seconds, what, effort_limits or {})
    rng = np.random.default_rng(seed)
    times = np.linspace(0.0, seconds, SAMPLES)
    best, best_scale, information, step = _random(rng, robot.ny), 0.0, -math.inf, 1.0
    for k in range(tries):
        shape = _random(rng, robot.ny) if k < tries // 3 else best + step * _random(rng, robot.ny)
        shape = shape / np.abs(shape).sum(axis=(1, 2), keepdims=True)  # never beyond the reach
        scale = search.scale(shape, times)
        gained, _, _ = search.judge(shape, scale, times)
        better = gained > information
        if better:
            best, best_scale, information = shape, scale, gained
        if k >= tries // 3:
            step = min(1.0, step * (1.5 if better else 0.9))
        told(k + 1, information)
    return _trajectory(search, best, best_scale, rate)


def _trajectory(search: _Search, shape: Array, scale: float, rate: float) -> Trajectory:
    """The motion at every time, scaled down until it is inside the limits there too."""
    times = np.arange(round(search.seconds * rate) + 1) / rate
    while scale > SMALLEST and search.fits(shape, scale, times) is None:
        scale *= 0.97
    if scale <= SMALLEST:
        raise InputError(
            f"{search.robot.name}: no motion around the assembly fits into the limits; check the "
            "limits of its joints and motors, and the assembly in the loop file"
        )
    thinned = np.linspace(0.0, search.seconds, SAMPLES)
    information, before, after = search.judge(shape, scale, thinned)
    names = search.robot.parameters().names
    asked = [k for k in range(len(names)) if before[k] > 0.0]
    told = tuple(names[k] for k in asked if after[k] < NOT_EXCITED * before[k])
    untold = tuple(names[k] for k in asked if not after[k] < NOT_EXCITED * before[k])
    joints = search.robot.independent_joint_names
    return Trajectory(joints, times, *search.motion(shape, scale, times), information, told, untold)


def _random(rng: np.random.Generator, joints: int) -> Array:
    """A shape: sines and cosines of each joint; the higher ones smaller, for velocities' sake."""
    return rng.normal(size=(joints, 2, HARMONICS)) / np.sqrt(np.arange(1, HARMONICS + 1))


def _rest_to_rest(times: Array, seconds: float) -> tuple[Array, Array, Array]:
    """A window from zero to one and back, smooth to the second derivative; and its derivatives."""
    ramp = 0.15 * seconds
    rising = times <= seconds / 2
    x = np.clip(np.where(rising, times, seconds - times) / ramp, 0.0, 1.0)
    sign = np.where(rising, 1.0, -1.0)
    value = x**3 * (10 - 15 * x + 6 * x**2)
    rate = sign * 30 * x**2 * (1 - x) ** 2 / ramp
    second = 60 * x * (1 - x) * (1 - 2 * x) / ramp**2
    return value, rate, second
