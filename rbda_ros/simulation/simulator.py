"""Simulator: a robot, or many, moving with its loops closed."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbda_ros.algorithms.simulation_stage import StageChoice, Stop, with_independent
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError, SingularityError
from rbda_ros.kernels.cache import KernelCache
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.robot.joint_choices import with_independent_joints
from rbda_ros.robot.robot import Robot
from rbda_ros.simulation import stepper
from rbda_ros.simulation.ground_contacts import Ground, Plane, Shape, contact_points
from rbda_ros.spatial import Array

INTEGRATORS = ("euler", "rk4", "midpoint")
CHANGE = 0.1
"""Conditioning of y below which other joints become independent, if theirs is twice as large."""
STICTION_SPEED = 1e-6
"""Of Coulomb friction with implicit steps: below it joints count as sticking [rad/s, m/s]."""
SMOOTH_SPEED = 0.01
"""The same with explicit steps, as in `Robot.friction_force`, so that friction is not too stiff."""
FRICTION_ITERATIONS = 4
"""Evaluations of a step with Coulomb friction: each has the friction of the velocity before."""
STOP_TIME = 0.01
"""Time constant of joint stops, critically damped [s]; at least five steps."""


@dataclass(frozen=True)
class Actuator:
    """A motor: limits, lag and delay of the commanded effort.

    Attributes:
        effort: largest effort [N m, N]; None for that of the description.
        corner_speed: up to which it is available [rad/s, m/s].
        free_speed: at which none is left in that direction [rad/s, m/s].
        time_constant: of a first-order lag [s].
        delay: of commands [s], rounded to steps.
    """

    effort: float | None = None
    corner_speed: float = 0.0
    free_speed: float = np.inf
    time_constant: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True)
class SensorNoise:
    """Noise of `Simulator.measure`: normally distributed and independent.

    Attributes:
        position: standard deviation of positions; of quaternions that of the angles [rad, m].
        velocity: of velocities [rad/s, m/s].
        seed: the noise of robot i at a step depends on it, i and the step alone.
    """

    position: float = 0.0
    velocity: float = 0.0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Rollout:
    """A motion: after every step q (steps, [N,] nq) and qd (steps, [N,] nv)."""

    q: Array
    qd: Array


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a simulator, to be restored; see `Simulator.checkpoint`."""

    arrays: Mapping[str, Array]
    charts: tuple[tuple[int, ...], ...]


class Simulator:
    """Simulates one robot, or N of them side by side.

    The state is in independent coordinates: loops are closed at every step, to 1e-10 m. Near a dead
    point of these, other joints become independent. A step that fails is repeated in up to 128
    parts. Results do not depend on the size of the batch or on the number of threads.

    Args:
        robot: what moves; with its payloads.
        dt: length of a step [s].
        batch: number of robots N, for arrays with a leading axis; None for one without.
        integrator: ``"euler"``, semi-implicit, with implicit friction, damping and stops;
            ``"rk4"``, of fourth order, explicit; ``"midpoint"``, implicit and symmetric in time, so
            that energy does not drift.
        friction: whether the joints' friction and damping act. With ``"euler"`` joints stick:
            they creep with some 1e-6 rad/s or m/s.
        limits: whether position limits act, as critically damped springs with a time constant of 10
            ms. Efforts are limited in any case.
        actuators: motors by the names of actuated joints; others give what they are commanded, up
            to the description's effort limit.
        contacts: shapes on links that touch the ground, with ``"euler"`` alone: Coulomb's law
            holds exactly at the end of every step; see `rbda_ros.simulation.ground_contacts`.
        ground: what they touch; a horizontal plane through the world's origin if not given.
        noise: of `measure`.
        threads: most threads for a batch; None for as many as there are processors.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float = 1e-3,
        batch: int | None = None,
        *,
        integrator: str = "euler",
        friction: bool = True,
        limits: bool = True,
        actuators: Mapping[str, Actuator] | None = None,
        contacts: Sequence[Shape] = (),
        ground: Ground | None = None,
        noise: SensorNoise | None = None,
        threads: int | None = None,
    ) -> None:
        if not (np.isfinite(dt) and dt > 0.0):
            raise InputError(f"dt is {dt!r}; give a positive number of seconds")
        if batch is not None and not (isinstance(batch, int | np.integer) and batch >= 1):
            raise InputError(f"batch is {batch!r}; give at least 1, or None for one robot")
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads!r}; give at least 1, or None for all processors")
        if integrator not in INTEGRATORS:
            names = ", ".join(INTEGRATORS)
            raise InputError(f"integrator {integrator!r} is unknown; use one of {names}")
        if len(contacts) and integrator != "euler":
            raise InputError(f"integrator {integrator!r} takes no contacts; use 'euler'")
        self.robot, self.dt, self.batch = robot, float(dt), batch
        self.contacts, self.noise = tuple(contacts), noise or SensorNoise()
        self._points = contact_points(robot, contacts, ground or Plane())
        self.integrator = integrator
        self._rows = 1 if batch is None else int(batch)
        self.threads: int = threads or len(os.sched_getaffinity(0))
        self._changing = threading.RLock()
        motors = self._motors(actuators or {})
        self._choice = StageChoice(
            robot.nq,
            friction,
            _stops(robot, max(STOP_TIME, 5.0 * dt)) if limits else (),
            tuple(motor for motor, _, _ in motors),
            self._points.bodies,
        )
        self._lag = tuple(lag for _, lag, _ in motors)
        self._delay = tuple(delay for _, _, delay in motors)
        self._iterations = FRICTION_ITERATIONS if friction and _sticks(robot) else 1
        self._charts: list[_Chart] = []
        self._steppers: dict[bool, Any] = {}
        self._error: Exception | None = None
        self._held = np.zeros((self._rows, len(self._lag)))
        self._allocate()
        self._chart_of(self._first_choice())
        self._first_limit = min(CHANGE, 0.5 * self._charts[0].conditioning(robot.neutral()))
        self.reset()

    # The state.

    @property
    def time(self) -> float:
        """Since `reset` [s]."""
        return float(self._clock[0]) * self.dt

    @property
    def q(self) -> Array:
        """Spanning position (nq,), (N, nq) of a batch; a copy [rad, m]."""
        return self._shaped(self._q.copy())

    @property
    def qd(self) -> Array:
        """Spanning velocity (nv,), (N, nv) of a batch [rad/s, m/s]."""
        return self._shaped(self._spanning(self._q, self._yd, self._chart))

    @property
    def work(self) -> Any:
        """Work of motors, friction, stops and contacts since `reset`; (N,) of a batch [J].

        To the order of the integrator; with ``"euler"`` to first order.
        """
        return float(self._work[0]) if self.batch is None else self._work.copy()

    @property
    def contact_forces(self) -> Array:
        """(c, 3), (N, c, 3) of a batch: mean force on each of `contacts` in the last step [N].

        On the robot, in world axes.
        """
        forces = np.zeros((self._rows, len(self.contacts), 3))
        for s in range(len(self.contacts)):
            forces[:, s] = self._forces[:, self._points.shape == s].sum(axis=1)
        return self._shaped(forces)

    def measure(self) -> tuple[Array, Array]:
        """q and qd with the `noise`; the same again at the same step."""
        rng = np.random.default_rng([self.noise.seed, int(self._clock[0])])
        robot = self.robot
        drawn = rng.standard_normal((self._rows, 2 * robot.nv))
        way, rate = self.noise.position * drawn[:, : robot.nv], drawn[:, robot.nv :]
        q, at, j = self._q.copy(), 0, 0
        for body in robot.spanning_tree.bodies:
            nq, nv = body.model.nq, body.model.nv
            if nq == nv:
                q[:, at : at + nq] += way[:, j : j + nv]
            else:
                q[:, at : at + nq - 4] += way[:, j : j + nv - 3]
                _turn(q[:, at + nq - 4 : at + nq], way[:, j + nv - 3 : j + nv])
            at, j = at + nq, j + nv
        qd = self._spanning(self._q, self._yd, self._chart) + self.noise.velocity * rate
        return self._shaped(q), self._shaped(qd)

    def reset(
        self,
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        seed: int | None = None,
        *,
        rows: ArrayLike | None = None,
    ) -> None:
        """Start anew, at time zero.

        Args:
            q: (nq,) spanning or independent position, (N, ...) one for each; None for the
                assembly, or with a seed for random closed positions inside the limits.
            qd: (nv,) spanning or (ny,) independent velocity; None for zero.
            seed: of random states; that of robot i does not depend on N.
            rows: numbers of the robots of a batch that start anew, or a mask (N,); the others
                stay as they are. None for all.

        Raises:
            InputError, ClosureError: an invalid position, or one that cannot be closed.
        """
        which = np.arange(self._rows)[slice(None) if rows is None else np.asarray(rows)]
        new_q, new_yd = self._initial_state(which, q, qd, seed)
        for name in _STATE:
            getattr(self, name)[which] = 0
        self._q[which], self._yd[which], self._limit[which] = new_q, new_yd, self._first_limit

    def _allocate(self) -> None:
        """The state of all robots; the C steppers keep the addresses of these arrays."""
        count, motors = self._rows, len(self._lag)
        self._q, self._yd = np.zeros((count, self.robot.nq)), np.zeros((count, self.robot.ny))
        self._chart, self._clock = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._limit, self._work = np.zeros(count), np.zeros(count)
        self._actual = np.zeros((count, motors))
        self._pipe = np.zeros((count, 1 + max(self._delay, default=0), motors))
        self._forces = np.zeros((count, len(self._points.body), 3))

    def _initial_state(
        self, which: Any, q: ArrayLike | None, qd: ArrayLike | None, seed: int | None
    ) -> tuple[Array, Array]:
        """q (n, nq) that some robots start from, and yd (n, ny) of the first chart."""
        robot, count = self.robot, len(which)
        chosen = list(self._charts[0].independent)
        yd: Array | None = None
        if q is None and seed is not None:
            robot.prepare("integrate")  # machine code: the same last bit in every run
            states = [robot.random_state(np.random.default_rng([seed, int(i)])) for i in which]
            closed = np.array([state.q for state in states]).reshape(count, robot.nq)
            yd = np.array([state.yd for state in states]).reshape(count, robot.ny)
        else:
            given = robot.neutral() if q is None else np.asarray(q, float)
            closed = np.broadcast_to(robot.state(given).q, (count, robot.nq))
        if qd is not None:
            given = np.asarray(qd, float)
            if given.shape not in ((robot.nv,), (count, robot.nv), (robot.ny,), (count, robot.ny)):
                raise InputError(f"qd has shape {given.shape}; give ({robot.nv},) finite numbers")
            if not np.isfinite(given).all():
                raise InputError("qd has a number that is not finite; correct it")
            if given.shape[-1] == robot.nv and robot.nv != robot.ny:
                return closed, np.broadcast_to(given[..., chosen], (count, robot.ny))
            yd = np.broadcast_to(given, (count, robot.ny))
        if yd is None:
            return closed, np.zeros((count, robot.ny))
        if chosen != list(robot.independent_coordinates) and count:
            yd = robot.spanning_velocity(np.ascontiguousarray(closed), yd)[:, chosen]
        return closed, yd

    def checkpoint(self) -> Checkpoint:
        """The whole state, for `restore`, after which the motion is the same to the last bit."""
        arrays = {name: getattr(self, name).copy() for name in _STATE}
        return Checkpoint(arrays, tuple(chart.independent for chart in self._charts))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a `checkpoint` of a simulator with the same robot, batch and options."""
        for name in _STATE:
            if checkpoint.arrays[name].shape != getattr(self, name).shape:
                raise InputError("the checkpoint is of another robot or batch; restore it there")
        numbers = [self._chart_of(independent) for independent in checkpoint.charts]
        for name in _STATE:
            getattr(self, name)[...] = checkpoint.arrays[name]
        self._chart[...] = np.array(numbers, np.int64)[checkpoint.arrays["_chart"]]

    # Motion.

    def step(
        self,
        efforts: ArrayLike | None = None,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
        *,
        steps: int = 1,
    ) -> None:
        """Move on by a step, or by several with the same efforts.

        Args:
            efforts: (na,) on ``robot.actuated_joint_names``, (N, na) one for each robot; None for
                zero [N m, N].
            external_wrenches: link name to (6,) force then moment on the link, in its frame at its
                origin; (N, 6) one for each robot [N, N m].
            steps: how many.

        Raises:
            SingularityError: some robots cannot go on. They are its ``rows`` and stay where they
                are; the others have taken all steps.
        """
        if steps < 0:
            raise InputError(f"steps is {steps!r}; give how many")
        if external_wrenches is None:
            plain = self._steppers.get(False) or self._stepper(False)
            ended = plain.hold(efforts, steps, self._change)
            if ended is None:
                return
            if ended is not NotImplemented:
                self._raise(*ended)
        self._run(steps, True, self._hold(efforts), external_wrenches, (None, None, None))

    def _hold(self, efforts: ArrayLike | None) -> Array:
        """Efforts of any form that numpy knows, for all robots (N, na)."""
        held = self._held
        given: Any = np.zeros(held.shape[1]) if efforts is None else efforts
        try:
            held[...] = given
            fine = math.isfinite(held.sum()) and np.shape(given) in (held.shape, held.shape[1:])
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise InputError(
                f"efforts have shape {np.shape(given)}; give finite numbers ({held.shape[1]},),"
                f" or {held.shape}"
            )
        return held

    def rollout(
        self, efforts: ArrayLike, external_wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Rollout:
        """Move on by many steps.

        Args:
            efforts: (steps, na), (steps, N, na) of a batch: as for `step`.
            external_wrenches: as for `step`, the same at all steps.
        """
        rows, robot, na = self._rows, self.robot, len(self._lag)
        given = np.asarray(efforts, float)
        steps = len(given) if given.ndim else 0
        if given.shape not in ((steps, na), (steps, rows, na)) or not np.isfinite(given).all():
            raise InputError(
                f"efforts have shape {given.shape}; give finite numbers (steps, {na}), or"
                f" (steps, {rows}, {na})"
            )
        given = given[:, None, :] if given.ndim == 2 else given
        each = np.ascontiguousarray(np.broadcast_to(given, (steps, rows, na)))
        q, yd = np.empty((steps, rows, robot.nq)), np.empty((steps, rows, robot.ny))
        chart = np.empty((steps, rows), np.int64)
        self._run(steps, False, each, external_wrenches, (q, yd, chart))
        flat = q.reshape(-1, robot.nq), yd.reshape(-1, robot.ny), chart.ravel()
        qd = self._spanning(*flat).reshape(steps, rows, robot.nv)
        return Rollout(q, qd) if self.batch is not None else Rollout(q[:, 0], qd[:, 0])

    def _run(
        self,
        steps: int,
        held: bool,
        efforts: Array,
        external_wrenches: Mapping[str, ArrayLike] | None,
        outputs: tuple[Array | None, Array | None, Any],
    ) -> None:
        wrenches = None
        if external_wrenches:
            wrenches = self._body_wrenches(external_wrenches)
        ended = self._stepper(wrenches is not None).run(
            steps, held, self._change, efforts, wrenches, *outputs
        )
        if ended is not None:
            self._raise(*ended)

    def _raise(self, failed: Sequence[int], step: int, raised: bool) -> None:
        """Raise the error for robots that could not take a step."""
        if raised:
            error, self._error = self._error, None
            raise error if error is not None else AssertionError("no chart was found")
        where = "" if self.batch is None else f" {failed[0]}"
        if len(failed) > 1:
            where += f" (and {len(failed) - 1} more)"
        raise SingularityError(
            f"{self.robot.name}: robot{where} cannot take step {step} of this call:"
            " its loops do not close, or its acceleration is not finite; reduce dt or the"
            " efforts, or reset it",
            rows=tuple(failed),
        )

    # Charts: choices of independent joints.

    def _first_choice(self) -> tuple[int, ...]:
        """Independent coordinates to begin with: the robot's own, or others that are cheaper.

        A step solves for the dependent coordinates. Where they fall apart into small groups, that
        is much faster: from the pose of a Stewart platform each leg follows by itself. Others are
        taken as well where the robot's own are near a dead point at the assembly.
        """
        robot = self.robot
        own, q = tuple(robot.independent_coordinates), robot.neutral()
        try:
            other = tuple(with_independent_joints(robot.tree, q, None).independent)
        except InputError:
            return own
        if other == own or _solving_cost(robot, other) < 0.5 * _solving_cost(robot, own):
            return other
        least = _Chart(robot, own, self._choice).conditioning(q)
        if least >= CHANGE:
            return own
        better = _Chart(robot, other, self._choice).conditioning(q) >= 2.0 * least
        return other if better else own

    def _chart_of(self, independent: tuple[int, ...]) -> int:
        with self._changing:
            for number, chart in enumerate(self._charts):
                if chart.independent == independent:
                    return number
            chart = _Chart(self.robot, independent, self._choice)
            for wrenches, each in self._steppers.items():
                each.add_chart(chart.turns, *chart.codes(wrenches))
            self._charts.append(chart)
            return len(self._charts) - 1

    def _stepper(self, wrenches: bool) -> Any:
        if wrenches not in self._steppers:
            robot = self.robot
            bodies = len(robot.spanning_tree.bodies)
            made = stepper.Stepper(
                robot.nq,
                robot.ny,
                len(self._lag),
                6 * bodies if wrenches else 0,
                INTEGRATORS.index(self.integrator),
                self._iterations,
                self.dt,
                STICTION_SPEED,
                SMOOTH_SPEED,
                self._lag,
                self._delay,
                self._points.arguments() if self.contacts else None,
            )
            for chart in self._charts:
                made.add_chart(chart.turns, *chart.codes(wrenches))
            state = tuple(getattr(self, name) for name in _STATE)
            made.attach(self._rows, state, self.threads)
            self._steppers[wrenches] = made
        return self._steppers[wrenches]

    def _change(self, row: int) -> None:
        """Make other joints of a robot independent if these are much better. Called from C."""
        try:
            with self._changing:
                self._change_chart(row)
        except Exception as error:
            self._error = error
            raise

    def _change_chart(self, row: int) -> None:
        q, chart = self._q[row], self._charts[self._chart[row]]
        conditioning = chart.conditioning(q)
        try:
            best = with_independent_joints(self.robot.tree, q, None).independent
        except InputError:
            best = chart.independent
        if best != chart.independent:
            number = self._chart_of(best)
            other = self._charts[number]
            if other.conditioning(q) >= 2.0 * conditioning:
                qd = chart.spanning_velocity(q, self._yd[row])
                self._yd[row] = qd[list(best)]
                self._chart[row], self._limit[row] = number, CHANGE
                return
        self._limit[row] = 0.5 * conditioning

    # Names and shapes.

    def _shaped(self, rows: Array) -> Array:
        return rows[0] if self.batch is None else rows

    def _spanning(self, q: Array, yd: Array, charts: Any) -> Array:
        qd = np.empty((len(q), self.robot.nv))
        for number in np.unique(charts):
            mine = charts == number
            qd[mine] = self._charts[number].spanning_velocity(q[mine], yd[mine])
        return qd

    def _body_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> Array:
        """(rows, 6 * bodies) in body frames, angular first, of wrenches on links."""
        tree = self.robot.tree
        values = np.zeros((self._rows, len(tree.spanning.bodies), 6))
        for link, wrench in wrenches.items():
            place = tree.spanning.links.get(link)
            if place is None:
                raise InputError(f"external_wrenches: {self.robot.name} has no link {link!r}")
            given = np.asarray(wrench, float)
            if given.shape not in ((6,), (self._rows, 6)) or not np.isfinite(given).all():
                raise InputError(
                    f"external_wrenches: {link!r} has shape {given.shape}; give 6 finite numbers"
                )
            if place.body:
                R, p = np.asarray(place.frame.R, float), np.asarray(place.frame.p, float)
                force, moment = given[..., :3] @ R.T, given[..., 3:] @ R.T
                values[:, place.body - 1, :3] += moment + np.cross(p.ravel(), force)
                values[:, place.body - 1, 3:] += force
        return values.reshape(self._rows, -1)

    def _motors(
        self, actuators: Mapping[str, Actuator]
    ) -> list[tuple[tuple[float, float, float], float, int]]:
        """For each motor its limits, the share of a command that arrives in a step, its delay."""
        robot = self.robot
        if unknown := sorted(set(actuators).difference(robot.actuated_joint_names)):
            known = ", ".join(robot.actuated_joint_names)
            raise InputError(f"actuators: {unknown[0]!r} is no actuated joint; use some of {known}")
        motors = []
        for name, j in zip(robot.actuated_joint_names, robot.actuated_coordinates, strict=True):
            motor = actuators.get(name, Actuator())
            effort = float(robot.limits.effort[j] if motor.effort is None else motor.effort)
            fine = effort >= 0.0 and 0.0 <= motor.corner_speed < motor.free_speed
            if not (fine and motor.time_constant >= 0.0 and motor.delay >= 0.0):
                raise InputError(
                    f"actuators: {name!r} has a negative number, or a corner speed above its free"
                    " speed; correct it"
                )
            lag = 1.0
            if motor.time_constant:
                lag = -float(np.expm1(-self.dt / motor.time_constant))
            limits = effort, float(motor.corner_speed), float(motor.free_speed)
            motors.append((limits, lag, round(motor.delay / self.dt)))
        return motors


_STATE = ("_q", "_yd", "_chart", "_limit", "_work", "_actual", "_pipe", "_forces", "_clock")
"""Arrays of the state, in the order that the stepper takes."""


class _Chart:
    """A choice of independent joints, and its kernels."""

    def __init__(self, robot: Robot, independent: tuple[int, ...], choice: StageChoice) -> None:
        own = tuple(robot.independent_coordinates)
        self.independent, self._choice = independent, choice
        tree = robot.tree if independent == own else with_independent(robot.tree, independent)
        self._kernels = robot._kernels if independent == own else KernelCache(tree)
        self.turns = _turns(tree)
        self._none = np.zeros(robot.ny)
        self._ready: dict[str, Kernel] = {}

    def codes(self, wrenches: bool) -> list[tuple[int, int, int, int, Any]]:
        """Kernels for `Stepper.add_chart`: addresses of machine code and owners."""
        more = "_with_wrenches" if wrenches else ""
        if not self._choice.touching:
            return [_code(self._kernels.get(f"simulation_stage{more}", self._choice))]
        stage = self._kernels.get(f"contact_stage{more}", self._choice)
        return [_code(stage), _code(self._kernels.get("simulation_move"))]

    def spanning_velocity(self, q: Array, yd: Array) -> Array:
        """``G yd`` (nv,), or of rows."""
        kernel = self._kernel("spanning_motion")
        if q.ndim == 1:
            return kernel.call(q, np.ascontiguousarray(yd), self._none)[0]
        zero = np.zeros((len(q), self._none.size))
        return kernel.batch(np.ascontiguousarray(q), np.ascontiguousarray(yd), zero)[0]

    def conditioning(self, q: Array) -> float:
        """How well y determines the loops: 0 at a dead point, else up to 1."""
        _, conditioning = self._kernel("loop_state").call(np.ascontiguousarray(q))
        return float(conditioning.min(initial=1.0))

    def _kernel(self, name: str) -> Kernel:
        """In machine code, so that results have the same last bit in every run."""
        if name not in self._ready:
            kernel = self._kernels.get(name)
            kernel.compile(batch=True)
            self._ready[name] = kernel
        return self._ready[name]


def _code(kernel: Kernel) -> tuple[int, int, int, int, Any]:
    """Addresses of a kernel's machine code for one row and for many; constants, memory, owner."""
    if not kernel.compile(batch=True):
        call = _trampoline(kernel)
        return ctypes.cast(call, ctypes.c_void_p).value or 0, 0, 0, 0, (kernel, call)
    batch = kernel._batch_machine.value
    assert batch is not None and kernel.address is not None
    address = batch.code.address("batch_ports")
    return kernel.address, address, batch.constants.ctypes.data, batch.memory, kernel


def _turn(quaternions: Array, w: Array) -> None:
    """Turn quaternions (N, 4) x y z w, in place, by small angles (N, 3) in their own axes."""
    x, y, z, s = quaternions.T.copy()
    a, b, c = 0.5 * w.T
    quaternions.T[:] = (
        x + s * a + y * c - z * b,
        y + s * b + z * a - x * c,
        z + s * c + x * b - y * a,
        s - x * a - y * b - z * c,
    )
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)


def _trampoline(kernel: Kernel) -> Any:
    """A C function that evaluates a kernel by CasADi, where there is no machine code."""
    sizes = [*kernel.input_sizes.values(), *kernel.output_sizes.values()]
    count = len(kernel.input_sizes)

    def evaluate(ports: Any) -> None:
        arrays = [np.ctypeslib.as_array(ports[i], (n,)) for i, n in enumerate(sizes)]
        for into, result in zip(arrays[count:], kernel.interpret(*arrays[:count]), strict=True):
            into[:] = result

    return ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))(evaluate)


def _solving_cost(robot: Robot, independent: Sequence[int]) -> int:
    """Sum of the cubes of the sizes of groups of dependent coordinates that loops connect."""
    cost, q = 0, robot.neutral()
    tree = robot.tree
    for node, at, of in zip(tree.clusters, tree.position_ranges, tree.velocity_ranges, strict=True):
        if node.loop is None or node.loop.constant:
            continue
        K = np.asarray(node.loop.jacobian(q[at.start : at.stop]), float)
        dependent = [j - of.start for j in of if j not in independent]
        groups: list[set[int]] = []
        for row in np.abs(K[:, dependent]) > 1e-9:
            joined = set(np.flatnonzero(row).tolist())
            for group in [each for each in groups if each & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
        cost += sum(len(group) ** 3 for group in groups)
    return cost


def _sticks(robot: Robot) -> bool:
    return any(body.joint.friction for body in robot.spanning_tree.bodies)


def _turns(tree: ClusterTree) -> tuple[tuple[int, int], ...]:
    """Where linear (or -1) and angular velocities of joints with quaternions are in y."""
    place = {j: k for k, j in enumerate(tree.independent)}
    turns, nv = [], 0
    for body in tree.spanning.bodies:
        own = range(nv, nv + body.model.nv)
        nv += body.model.nv
        if body.model.nq != body.model.nv and all(j in place for j in own):
            first = place[own[0]]
            turns.append((first, first + 3) if body.model.nv == 6 else (-1, first))
    return tuple(turns)


def _stops(robot: Robot, time: float) -> tuple[Stop, ...]:
    """Stops of all joints with limits, critically damped for the inertia felt at the assembly."""
    places, rates, bounds = robot._scalar_limits
    limited = np.flatnonzero(np.isfinite(bounds).any(axis=0))
    if not limited.size:
        return ()
    q, stops = robot.neutral(), []
    G = np.array([robot.spanning_velocity(q, row) for row in np.eye(robot.ny)]).T
    inverse = np.einsum("ij,ij->i", G, np.linalg.solve(robot.mass_matrix(q), G.T).T)
    for i in limited:
        inertia = 1.0 / max(float(inverse[rates[i]]), 1e-12)
        lower, upper = bounds[:, i].tolist()
        stop = int(places[i]), int(rates[i]), lower, upper
        stops.append(Stop(*stop, inertia / time**2, 2.0 * inertia / time))
    return tuple(stops)
