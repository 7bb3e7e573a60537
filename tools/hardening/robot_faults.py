"""Faults of the robot itself, on a simulated leg: what the node notices, how soon, and meanwhile.

The leg is simulated here, 1,000 steps a second, and held by its motors: the node's feedforward
efforts and weak motor gains that follow a slow swing. Joints and rotors have encoders, so that most
measurements are redundant. Two seconds after the start the fault comes.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from ros_graph import Graph
from sensor_msgs.msg import JointState

from rbda_ros import ModelError, Robot, load_robot
from rbda_ros.demo.resources import share_file
from tools.hardening.driver import LOOPS, URDF
from tools.hardening.leg_node import LEG, serve
from tools.hardening.verdicts import LoadedError

ONSET = 3.0  # [s]
PATIENCE = 6.0  # [s] after the onset in which a fault is to be noticed
STEP = 1e-3  # [s] of the simulation
PERIOD = 5e-3  # [s] between two joint states
TIMEOUT = 0.1  # [s] the node's
TOLERANCE = 0.05  # [rad] between redundant measurements
THRESHOLD = 1.0  # [N m] external effort that counts as a contact
STIFFNESS, DAMPING = 0.05, 2e-3  # of the motors [N m/rad, N m s/rad]
HELD = 0.05  # [s] for which the motors hold an effort
BEHIND = 0.03  # [s] that the simulation may be late: stamps are real, and so are forces from them
MIDDLE, SIZE, PACE = np.array([0.05, 0.3, 0.9, -0.1]), np.array([0.05, 0.1, 0.2, 0.1]), 2.0


@dataclass
class Leg:
    """The leg as it really is.

    Attributes:
        robot: with its real masses.
        dead: motors that give no effort.
        y, yd: its state.
    """

    robot: Robot
    dead: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.y, self.yd = MIDDLE.copy(), SIZE * PACE
        self.q = self.goal = self.robot.close(self.y)
        self.at = list(self.robot.tree.actuated)

    def step(self, t: float, feedforward: np.ndarray) -> np.ndarray:
        """One step; the efforts that the motors were told to give."""
        robot = self.robot
        wanted = MIDDLE + SIZE * np.sin(PACE * t)
        self.goal = robot.close(wanted, guess=self.goal)
        qd = robot.spanning_velocity(self.q, self.yd)[self.at]
        goal_rate = robot.spanning_velocity(self.goal, SIZE * PACE * np.cos(PACE * t))[self.at]
        told = feedforward + STIFFNESS * (self.goal - self.q)[self.at] + DAMPING * (goal_rate - qd)
        given = np.array([0.0 if k in self.dead else each for k, each in enumerate(told)])
        tau = np.zeros(robot.nv)
        tau[self.at] = given
        self.yd = self.yd + STEP * robot.forward_dynamics(self.q, self.yd, tau)
        y = self.y + STEP * self.yd
        try:
            self.q = robot.close(y, guess=self.q)
            self.y = y
        except ModelError:  # at the end of its reach: a stop
            self.yd = np.zeros_like(self.yd)
        return told


Measure = Callable[[float, JointState], JointState | None]
"""Time since the onset, and the true joint state: what is published; None for nothing."""


class Trial:
    """One leg, one node, one fault."""

    def __init__(self, graph: Graph, leg: Leg, measure: Measure, broken: set[int]) -> None:
        self.leg, self.measure, self.broken = leg, measure, broken
        self.model = load_robot(share_file(URDF), share_file(LOOPS))  # the model of the node
        serve(
            graph,
            joint_state_timeout=TIMEOUT,
            measurement_tolerance=TOLERANCE,
            on_stale="zero",
            publish_external_effort=True,
            contact_threshold=THRESHOLD,
        )
        self.client = graph.client()
        self.client.until_active()
        self.publisher = self.client.publisher(JointState, "joint_states")
        node = self.client.node
        node.create_subscription(JointState, "dynamics/feedforward", self.on_effort, 50)
        node.create_subscription(JointState, "dynamics/external_effort", self.on_external, 50)
        node.create_subscription(DiagnosticArray, "/diagnostics", self.on_diagnostics, 10)
        self.names = list(self.model.joint_names)
        self.effort, self.received = np.zeros(4), -1.0
        self.truth: dict[int, np.ndarray] = {}  # efforts of the true state, by stamp
        self.delayed: deque[tuple[float, JointState]] = deque()
        self.t = 0.0
        self.answers: list[tuple[float, float]] = []  # time, and how wrong
        self.noticed: tuple[float, str] | None = None
        self.external: list[float] = []  # largest of each estimate [N m]
        self.before = ""  # what diagnostics said before the onset
        self.behind = 0.0  # how late the simulation was at most [s]

    def on_effort(self, message: Any) -> None:
        self.effort, self.received = np.array(message.effort), self.t
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        right = self.truth.get(stamp)
        if right is not None and self.effort.any():
            self.answers.append((self.t, float(np.abs(self.effort - right).max())))

    def on_external(self, message: Any) -> None:
        largest = float(np.abs(message.effort).max())
        self.external.append(largest)
        if largest > THRESHOLD:
            self.notice(f"external effort of {largest:.2g} N m")

    def on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.level == DiagnosticStatus.OK:
                continue
            if self.t < ONSET:
                self.before = status.message
            elif status.message != self.before:
                self.notice(f"diagnostics: {status.message}")

    def notice(self, how: str) -> None:
        if self.noticed is None and self.t > ONSET:
            self.noticed = (self.t - ONSET, how)

    def run(self) -> Trial:
        """Until the fault is noticed, or for `PATIENCE`."""
        begin = time.monotonic()
        while self.t < ONSET + PATIENCE and (
            self.noticed is None or self.t < ONSET + self.noticed[0] + 1.0
        ):
            if self.t >= ONSET:
                self.leg.dead = self.broken
            told = np.zeros(4)
            for _ in range(round(PERIOD / STEP)):
                held = self.effort if self.t - self.received < HELD else np.zeros(4)
                told = self.leg.step(self.t, held)
                self.t += STEP
            self.publish(told)
            self.behind = max(self.behind, time.monotonic() - begin - self.t)
            self.client.spin(max(begin + self.t - time.monotonic(), 1e-3))
            if self.t - max(self.received, ONSET) > TIMEOUT + 0.05:
                self.notice("no efforts any more")
        return self

    def publish(self, told: np.ndarray) -> None:
        robot, leg = self.leg.robot, self.leg
        message = JointState(name=self.names, position=leg.q.tolist())
        message.velocity = robot.spanning_velocity(leg.q, leg.yd).tolist()
        efforts = np.zeros(robot.nv)
        efforts[leg.at] = told
        message.effort = efforts.tolist()
        stamp = time.time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        still = np.zeros(self.model.ny)
        self.truth[stamp] = self.model.inverse_dynamics_efforts(leg.q, leg.yd, still)[0]
        sent = self.measure(self.t - ONSET, message) if self.t >= ONSET else message
        if sent is not None:
            self.publisher.publish(sent)

    @property
    def meanwhile(self) -> str:
        """What was published between the onset and its notice."""
        end = ONSET + (PATIENCE if self.noticed is None else self.noticed[0])
        errors = [error for t, error in self.answers if ONSET < t <= end]
        if not errors:
            return "no effort meanwhile"
        return f"{len(errors)} efforts meanwhile, wrong by {max(errors):.2g} N m at most"

    def judge(self, right: bool) -> None:
        """Fail where something is not right, unless other work made the simulation late."""
        if not right and self.behind > BEHIND:
            raise LoadedError(f"the simulation was {self.behind:.2g} s late; {self.story()}")
        assert right, self.story()

    def story(self) -> str:
        if self.noticed is None:
            return f"not noticed in {PATIENCE:g} s; {self.meanwhile}"
        after, how = self.noticed
        return f"noticed after {after:.2f} s ({how[:150]}); {self.meanwhile}"


def _leg() -> Leg:
    return Leg(load_robot(share_file(URDF), share_file(LOOPS)))


def _noticed(
    graph: Graph, measure: Measure, leg: Leg | None = None, dead: set[int] | None = None
) -> str:
    trial = Trial(graph, leg or _leg(), measure, dead or set()).run()
    trial.judge(trial.noticed is not None)
    return trial.story()


def _as_it_is(t: float, message: JointState) -> JointState:
    return message


def _at_knee(change: Callable[[float, float], float]) -> Measure:
    """A measurement that changes the knee's encoder: ``(time since the onset, angle)``."""

    def measure(t: float, message: JointState) -> JointState:
        k = list(message.name).index("knee")
        message.position[k] = change(t, message.position[k])
        return message

    return measure


def stuck_encoder(graph: Graph) -> str:
    """The knee's encoder stays where it is."""
    stuck: list[float] = []

    def stay(t: float, angle: float) -> float:
        stuck.append(angle)
        return stuck[0]

    return _noticed(graph, _at_knee(stay))


def encoder_offset(graph: Graph) -> str:
    """The knee's encoder has lost its zero: 0.2 rad."""
    return _noticed(graph, _at_knee(lambda t, angle: angle + 0.2))


def inverted_sign(graph: Graph) -> str:
    """The knee's encoder counts the other way round."""
    return _noticed(graph, _at_knee(lambda t, angle: -angle))


def slipping_gear(graph: Graph) -> str:
    """The rotor of the knee slips: half a radian a second."""

    def slip(t: float, message: JointState) -> JointState:
        k = list(message.name).index("knee_rotor")
        message.position[k] += 0.5 * t
        return message

    return _noticed(graph, slip)


def packet_loss(graph: Graph) -> str:
    """A third of the joint states is lost: efforts go on, and are right."""
    rng = np.random.default_rng(0)
    trial = Trial(
        graph, _leg(), lambda t, message: message if rng.random() > 1 / 3 else None, set()
    ).run()
    errors = [error for t, error in trial.answers if t > ONSET]
    trial.judge(trial.noticed is None and max(errors, default=0.0) < 1e-6)
    return f"nothing to notice: {trial.meanwhile}"


def all_lost(graph: Graph) -> str:
    """All joint states are lost."""
    return _noticed(graph, lambda t, message: None)


def delay(graph: Graph) -> str:
    """Joint states come a fifth of a second late."""
    waiting: deque[JointState] = deque()

    def late(t: float, message: JointState) -> JointState | None:
        waiting.append(message)
        return waiting.popleft() if len(waiting) > 0.2 / PERIOD else None

    return _noticed(graph, late)


def dead_motor(graph: Graph) -> str:
    """The knee's motor gives nothing, and its driver says that it does."""
    return _noticed(graph, _as_it_is, dead={2})


def wrong_masses(graph: Graph) -> str:
    """The leg is a tenth heavier than described: the external effort shows it from the start."""
    text = re.sub(r'mass value="([^"]+)"', lambda m: f'mass value="{1.1 * float(m[1])}"', LEG)
    heavy = Leg(load_robot(text, share_file(LOOPS)))
    trial = Trial(graph, heavy, _as_it_is, set())
    trial.run()
    seen = float(np.median(trial.external)) if trial.external else 0.0
    assert seen > 0.1, f"external effort {seen:.2g} N m; {trial.story()}"
    return f"external effort of {seen:.2g} N m all the time; {trial.story()}"


ROBOT_FAULTS: dict[str, Callable[[Graph], str | None]] = {
    "stuck encoder": stuck_encoder,
    "encoder offset": encoder_offset,
    "inverted encoder": inverted_sign,
    "slipping gear": slipping_gear,
    "packet loss": packet_loss,
    "all packets lost": all_lost,
    "delay": delay,
    "dead motor": dead_motor,
    "masses wrong by 10 %": wrong_masses,
}
