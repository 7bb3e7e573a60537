"""The whole stream as a slow and readable model: messages and times in, numbers and reasons out.

`rbda_ros/control` in C must do the same: `test_stream_model.py` compares both on random scenarios.
The model knows joints by their names, forgets nothing but what it says, and computes efforts by
the methods of `Robot`, not by the kernels of the stream. The gate is that of `gate_model.py`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from gate_model import GateModel, GateSettings

from rbda_ros import InputError, Robot
from rbda_ros.control.configuration import joint_offsets, largest_efforts
from rbda_ros.control.settings import Settings, joint_gains, publishes_joint_states

NEVER = -(2**62)
MAX_KERNELS = 30
"""Kernels that are kept; the first ones make room for others."""
JUMP = 10_000_000
"""How far time goes back before it counts as a jump [ns]."""
POSITIONS_SUFFICE = (
    "no fresh reference",
    "no fresh external wrench",
    "no acceleration",
    "joints missing",
    "no fresh base state",
)
"""Reasons after which ~/joint_states are published all the same."""
LONGEST_PAUSE, PAUSES, SLACK = 1_000_000_000, 4, 20_000_000
"""After a pause [ns] longer than the first, or than so many of the last and the slack, the estimate
of external efforts goes on from where it was."""
OLDEST_EFFORT = 10_000_000_000
"""Of measured efforts, without a time-out [ns]."""
Numbers = Mapping[str, np.ndarray]
Key = tuple[frozenset[str], str, bool, frozenset[str] | None, tuple[str, ...]]
"""A kernel: measured joints, source of accelerations, wrenches, joints of references, terms."""


CommandKey = tuple[frozenset[str], tuple[bool, bool, bool], frozenset[str] | None]
"""A kernel for commands: named joints, which fields there are, joints of the measured velocity."""


class RejectedError(Exception):
    """An input without an answer; the text is the reason."""


@dataclass
class JointMessage:
    """A JointState, or a command; a field may be empty or have any size."""

    names: Sequence[str]
    stamp: int
    position: Sequence[float] = ()
    velocity: Sequence[float] = ()
    effort: Sequence[float] = ()


@dataclass
class Rate:
    """Differences of a number through a first-order low-pass."""

    time: int = NEVER
    began: int = NEVER
    value: float = math.nan
    filtered: float = 0.0
    rate: float = math.nan

    def update(self, value: float, time: int, cutoff: float, longest: float) -> None:
        """Take the next number; a rate needs one time constant without a gap."""
        gap = time - self.time
        if gap == 0:
            return
        speed = 2.0 * math.pi * cutoff
        if self.time != NEVER and 0 < gap <= longest:
            raw = (value - self.value) / (gap * 1e-9)
            self.filtered += -math.expm1(-speed * gap * 1e-9) * (raw - self.filtered)
            elapsed = speed * (time - self.began) * 1e-9
            known = elapsed >= 1.0
            self.rate = self.filtered / -math.expm1(-elapsed) if known else math.nan
        else:
            self.began, self.filtered, self.rate = time, 0.0, math.nan
        self.value = value
        self.time = time if math.isfinite(value) else NEVER


@dataclass
class Joint:
    """All that messages said of one joint."""

    position: float = math.nan
    velocity: float = math.nan
    time: int = NEVER
    effort: float = math.nan
    effort_time: int = NEVER
    source: tuple[str, ...] | None = None  # names of the message that the position is from
    position_rate: Rate = field(default_factory=Rate)
    velocity_rate: Rate = field(default_factory=Rate)


@dataclass
class Answer:
    """The state that was answered last.

    Attributes:
        time: its stamp [ns].
        joints: that its motion followed from.
        q, qd: (nq,), (nv,) position and velocity of every joint.
        efforts: (actuated,) before the gate.
    """

    time: int
    joints: frozenset[str]
    q: np.ndarray
    qd: np.ndarray
    efforts: np.ndarray


class WholeStreamModel:
    """Joint states, references, base states, wrenches and commands to all that is published.

    Args:
        robot: the model.
        settings: of the node.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.robot, self.settings = robot, settings
        topics = "feedforward", "motor_commands", "effort_commands"
        self.gates = {topic: GateModel() for topic in topics}
        self.standing = dict.fromkeys(self.gates, False)
        self.held: dict[str, int] = {}  # since when efforts stand after the inputs stopped
        self.speeds: dict[str, int] = {}  # when velocities were sent that are not zero
        self.others = False  # whether the present message names no joint of ours
        self.aside = ""  # why an answer came without an estimate of external efforts
        self.commands: dict[CommandKey, bool] = {}  # as `prepared`
        self.requested_command: CommandKey | None = None
        self.command_q = robot.neutral()
        self.observer_period = 0
        self.last_used: frozenset[str] = frozenset()  # joints of the last answer
        self.terms = settings.terms
        self.pending: dict[str, np.ndarray] = {}
        self.pending_ends: set[str] = set()  # topics whose efforts these zeros end
        self.steady = NEVER
        self.requested: Key | None = None
        self.prepared: dict[Key, bool] = {}  # whether those joints determine the others
        self.q, self.base_twist = robot.neutral(), np.zeros(6)
        self.reference: dict[str, float] = {}
        self._forget()
        for key in self._likely():
            self.prepared[key] = self._determined(key[0])

    # Settings and robots.

    def apply(self, settings: Settings) -> None:
        """Other settings, from the next message on; what was measured stays."""
        names = "velocity_source", "acceleration_source"
        if any(getattr(settings, n) != getattr(self.settings, n) for n in names):
            self._forget_differences()
        self._end_replaced(self.robot, settings)
        if self._command_terms(settings) != self._command_terms(self.settings):
            self.commands.clear()  # each is another kernel
        self.settings = settings
        for key in self._likely(self.last_used):
            if key not in self.prepared:
                self._prepare(key)
        self.last_used = frozenset()

    @staticmethod
    def _command_terms(s: Settings) -> tuple[bool, bool, bool]:
        return bool(s.stiffness), bool(s.damping), s.add_feedforward

    def use(self, robot: Robot) -> None:
        """Another robot: joints of the same name are the same motors.

        Kernels for joints that were used before are prepared where the joints are the same.
        """
        self._end_replaced(robot, self.settings)
        same = robot.joint_names == self.robot.joint_names
        self.home = self.robot.neutral()
        before, self.robot = self.prepared if same else {}, robot
        if not same:
            self.q, self.command_q, self.reference = robot.neutral(), robot.neutral(), {}
            self.observer_period = 0
        elif not np.array_equal(robot.neutral(), self.home):
            self.q, self.command_q = robot.neutral(), robot.neutral()
        self.commands = {key: self._commandable(key) for key in self.commands if same}
        self.last_used = frozenset()
        self._forget()
        for gate in self.gates.values():
            gate.restart()
            if not same:  # motors that this robot lacks are not followed any more
                motors = robot.actuated_joint_names
                gate.last = {name: x for name, x in gate.last.items() if name in motors}
        s = self.settings
        old = [(k[0], s.acceleration_source, s.external_wrench, k[3], s.terms) for k in before]
        if s.acceleration_source != "reference":
            old = [(*key[:3], None, key[4]) for key in old]
        self.prepared = {key: self._determined(key[0]) for key in [*self._likely(), *old]}

    def _end_replaced(self, robot: Robot, settings: Settings) -> None:
        """Zeros, with the next message, for motors and arrays that nobody will send to any more."""
        motors = robot.actuated_joint_names == self.robot.actuated_joint_names
        array = motors and settings.command_joints == self.settings.command_joints
        replaced = dict.fromkeys(self.gates, not motors) | {"effort_commands": not array}
        for topic, gone in replaced.items():
            other_source = topic == "effort_commands" and settings.command_source == "feedforward"
            efforts = gone and self.standing[topic]
            speeds = topic in self.speeds and (gone or other_source)
            self._end(topic, efforts, speeds, self.steady, self.pending)
            if efforts:
                self.pending_ends.add(topic)

    def take_pending(self, steady: int) -> dict[str, np.ndarray]:
        """Messages that were due before this one. They go out now, from which rate limits count."""
        self.steady, pending, self.pending = steady, self.pending, {}
        for topic in self.pending_ends:
            self.gates[topic].time = steady
        self.pending_ends.clear()
        return pending

    def stop(self, steady: int) -> Numbers:
        """End the topics of motors with zeros, and forget all inputs."""
        out = self.take_pending(steady)
        for topic, gate in self.gates.items():
            if self.settings.on_stale != "nothing":
                self._end(topic, self.standing[topic], topic in self.speeds, steady, out)
            gate.restart()
        self.held.clear()
        self._forget()
        return out

    def _forget(self) -> None:
        self.joints: dict[str, Joint] = {name: Joint() for name in self.robot.joint_names}
        self.times: dict[frozenset[str], int] = {}  # of messages with the same joints of ours
        self.reference_time = self.base_time = self.latest = NEVER
        self.command_time = self.command_steady = NEVER  # of the last read; of the last answered
        self.answer: Answer | None = None
        self.completed = False  # whether the velocity of every joint was computed for it
        self.observing, self.observer_time = False, NEVER
        self.external = np.zeros(self.robot.ny)
        self.base_rates = [Rate() for _ in range(6)]
        self.wrenches: dict[str, np.ndarray] = {}
        self.wrench_times: dict[str, int] = {}

    def _forget_differences(self) -> None:
        for joint in self.joints.values():
            joint.position_rate, joint.velocity_rate = Rate(), Rate()
        self.base_rates = [Rate() for _ in range(6)]

    # Kernels: the first message that needs one is rejected, the next is answered.

    def _likely(self, used: frozenset[str] = frozenset()) -> list[Key]:
        """Kernels for the joints used last; at first for those that are usual."""
        robot, s = self.robot, self.settings
        every = frozenset(robot.coordinates.scalar_positions)
        usual = [frozenset(robot.independent_joint_names), every]
        usual.append(frozenset(robot.actuated_joint_names))
        references: list[frozenset[str] | None] = [None]
        if s.acceleration_source == "reference":
            references = [frozenset(), usual[0], every]
        return [
            (names, s.acceleration_source, s.external_wrench, wanted, s.terms)
            for names in ([used] if used else usual)
            for wanted in references
            if names
        ]

    def _determined(self, names: frozenset[str]) -> bool:
        try:
            self.robot.determining_joints(list(names))
        except InputError:
            return False
        return True

    def _prepare(self, key: Key) -> None:
        self.prepared[key] = self._determined(key[0])
        while len(self.prepared) > MAX_KERNELS:
            self.prepared.pop(next(iter(self.prepared)))
        self.last_used = frozenset()

    def _determines(self, names: frozenset[str]) -> bool:
        """Whether these joints determine all others.

        Raises:
            RejectedError: no kernel of them is prepared; it is, for the next message.
        """
        if not names:
            return False
        s, other_terms = self.settings, None
        wanted = frozenset(self.reference) if s.acceleration_source == "reference" else None
        key = names, s.acceleration_source, s.external_wrench, wanted, s.terms
        for known, determined in self.prepared.items():
            if known[0] == names and (not determined or known == key):
                self.terms = s.terms
                return determined
            if known[:4] == key[:4]:
                other_terms = known[4]
        self.requested = key
        if other_terms is None:
            raise RejectedError("kernel not ready")
        self.terms = other_terms  # until there is a better one
        return True

    def end_message(self) -> None:
        """Between two messages, what the last one asked for is prepared."""
        if self.requested is not None:
            self._prepare(self.requested)
            self.requested = None
        if self.requested_command is not None:
            self.commands[self.requested_command] = self._commandable(self.requested_command)
            while len(self.commands) > MAX_KERNELS:
                self.commands.pop(next(iter(self.commands)))
            self.requested_command, self.last_used = None, frozenset()

    def _commandable(self, key: CommandKey) -> bool:
        """Whether commands of these joints determine a motion, if they are to."""
        names, (position, velocity, _), _ = key
        return self._determined(names) if position or velocity else True

    # Inputs.

    def begin(self, now: int) -> None:
        """Look at the clock: where it jumped back, all that was said is from the future."""
        if now < self.latest - JUMP:
            self._forget()
        self.latest = now
        self.others = False

    def _check_ours(self, names: Collection[str]) -> None:
        """Reject a message that names no joint of ours: it says nothing about this robot."""
        self.others = not names
        if self.others:
            raise RejectedError("misnamed joints")

    def _stale(self, time: int, now: int) -> bool:
        timeout = int(self.settings.joint_state_timeout * 1e9)
        return bool(timeout) and abs(now - time) > timeout

    def take_reference(self, accelerations: Mapping[str, float], now: int) -> None:
        """The wanted acceleration of some joints."""
        if any(not math.isfinite(x) for n, x in accelerations.items() if n in self.joints):
            raise RejectedError("not finite")
        self.reference_time = now  # without a stamp, as it arrives
        self.reference = {n: x for n, x in accelerations.items() if n in self.joints}

    def take_base_state(self, pose: np.ndarray, twist: np.ndarray, stamp: int, now: int) -> None:
        """Pose and twist of a floating base."""
        if not (np.isfinite(pose).all() and np.isfinite(twist).all()):
            raise RejectedError("not finite")
        length = float(np.linalg.norm(pose[3:]))
        if abs(length - 1.0) > 1e-3:
            raise RejectedError("not a rotation")
        time = stamp if stamp or self.settings.joint_state_timeout else now
        self.base_time = self._time_of(time, self.base_time, now)
        self.base_pose = np.concatenate([pose[:3], pose[3:] / length])
        self.base_twist = twist
        if self.robot.floating_base and self.settings.acceleration_source == "estimate":
            for rate, value in zip(self.base_rates, twist, strict=True):
                rate.update(value, self.base_time, self.settings.acceleration_cutoff, self._gap)

    def take_wrench(self, link: str, wrench: np.ndarray, now: int) -> None:
        """Force and moment on a link."""
        if link not in self.robot.spanning_tree.links:
            raise RejectedError("misnamed joints")
        if not np.isfinite(wrench).all():
            raise RejectedError("not finite")
        self.wrench_times[link] = now
        self.wrenches[link] = wrench

    def _time_of(self, time: int, before: int, now: int) -> int:
        """The time of an input, which must be recent, and not before the last one."""
        if self._stale(time, now):
            raise RejectedError("stale")
        if self.settings.joint_state_timeout and time < before:
            raise RejectedError("out of order")
        return time

    @property
    def _gap(self) -> float:
        return self.settings.joint_state_timeout * 1e9 or math.inf

    def take_joint_state(self, message: JointMessage, now: int, steady: int) -> Numbers:
        """The answer to joint states, by topic.

        Raises:
            RejectedError: there is none; its second argument has what is published all the same.
        """
        s = self.settings
        names = tuple(message.names)
        known = frozenset(names).intersection(self.joints)
        self._check_ours(known)
        if self._stale(message.stamp, now):
            raise RejectedError("stale")
        if len(set(names)) < len(names):
            raise RejectedError("misnamed joints")
        by_message = s.velocity_source == "message"
        if len(message.position) != len(names) or (
            by_message and len(message.velocity) not in (0, len(names))
        ):
            raise RejectedError("wrong size")
        time = message.stamp or now
        if s.joint_state_timeout and time < self.times.get(known, NEVER):
            raise RejectedError("out of order")
        self.times[known] = time
        finite, said, moves = self._keep(message, names, time)
        try:
            used = self._choose(said, moves, now, finite)
        except RejectedError as rejected:
            if str(rejected) == "no velocity":
                rejected.args += (self._completed(message, self._placed, now, moving=False),)
            raise
        return self._answer(message, used, now, steady)

    def _keep(
        self, message: JointMessage, names: tuple[str, ...], time: int
    ) -> tuple[bool, frozenset[str], frozenset[str]]:
        """Whether all numbers are finite; whose position, and whose velocity too, is known."""
        s = self.settings
        velocities = len(message.velocity) == len(names)
        finite, said, moves = True, set(), set()
        for k, name in enumerate(names):
            if name not in self.joints:
                continue
            joint, position = self.joints[name], message.position[k]
            if len(message.effort) == len(names):
                joint.effort = message.effort[k]
                joint.effort_time = time if math.isfinite(joint.effort) else NEVER
            velocity = message.velocity[k] if velocities else math.nan
            finite &= math.isfinite(position) and (not velocities or math.isfinite(velocity))
            if not math.isfinite(position):
                if joint.source == names:
                    joint.time = NEVER  # whoever measured it does not know it any more
                continue
            joint.position, joint.time, joint.source = position, time, names
            if s.velocity_source == "differentiate":
                joint.position_rate.update(position, time, s.velocity_cutoff, self._gap)
                velocity = joint.position_rate.rate
            joint.velocity = velocity
            if s.acceleration_source == "estimate":
                joint.velocity_rate.update(velocity, time, s.acceleration_cutoff, self._gap)
            said.add(name)
            if math.isfinite(velocity):
                moves.add(name)
        return finite, frozenset(said), frozenset(moves)

    def _fresh(self, now: int, moving: bool) -> frozenset[str]:
        timeout = int(self.settings.joint_state_timeout * 1e9)
        oldest = now - timeout if timeout else NEVER + 1
        return frozenset(
            name
            for name, joint in self.joints.items()
            if joint.time >= oldest and (not moving or math.isfinite(joint.velocity))
        )

    def _choose(
        self, said: frozenset[str], moves: frozenset[str], now: int, finite: bool
    ) -> frozenset[str]:
        """The joints to answer by: those of the message alone, or all that are fresh."""
        try:
            if self._determines(moves):
                for name in said:
                    self.joints[name].time = NEVER  # never together with parts of other messages
                return moves
            fresh = self._fresh(now, moving=True)
            if self._determines(fresh):
                return fresh
        except RejectedError:
            raise RejectedError("kernel not ready" if finite else "not finite") from None
        fresh = self._fresh(now, moving=False)
        first = fresh if said == moves else said
        if self._determines(first):
            self._placed = first
            raise RejectedError("no velocity")
        if self._determines(fresh):
            self._placed = fresh
            raise RejectedError("no velocity")
        raise RejectedError("joints missing" if finite else "not finite")

    # Answers.

    def _answer(
        self, message: JointMessage, used: frozenset[str], now: int, steady: int
    ) -> Numbers:
        try:
            self._check_inputs(used, now)
            position = self._closed(used)
        except RejectedError as rejected:
            if str(rejected) in POSITIONS_SUFFICE:
                rejected.args += (self._completed(message, used, now, moving=True),)
            raise
        efforts = self._efforts(used, position)
        self.q, self.last_used = position, used
        time = message.stamp or now
        joints = frozenset(self.robot.determining_joints(list(used)))
        qd = self.robot.spanning_velocity(position, self._velocity(used, position))
        self.answer = Answer(time, joints, position, qd, efforts)
        out = {"feedforward": self._pass("feedforward", efforts, steady)}
        s, actuated = self.settings, self.robot.actuated_joint_names
        if s.command_joints and s.command_source == "feedforward":
            sent = self._pass("effort_commands", efforts, steady)
            out["effort_commands"] = sent[[actuated.index(name) for name in s.command_joints]]
        completes = publishes_joint_states(s, self.robot)
        if completes:
            out["completed_states"] = self._every_joint(message, used, position, moving=True)
        self.completed = completes or s.on_stale == "damping" or s.publish_external_effort
        if s.publish_external_effort:
            try:
                out |= self._observe(message, time)
            except RejectedError as rejected:
                self.aside = str(rejected)
        return out

    def _observe(self, message: JointMessage, time: int) -> Numbers:
        """The momentum observer: the force on y that comes from outside, of every joint."""
        robot, s, answer = self.robot, self.settings, self.answer
        assert answer is not None
        if len(message.effort) not in (0, len(message.names)):
            raise RejectedError("wrong size")
        spanning = self._measured_efforts(time)
        if time < self.observer_time - JUMP:
            self.observing, self.observer_time, self.observer_period = False, NEVER, 0
            self.external = np.zeros(robot.ny)
        if time <= self.observer_time:
            return {}
        yd = robot.state(answer.q, answer.qd).yd
        p = robot.mass_matrix(answer.q) @ yd
        # d(H yd)/dt = tau + C' yd - g, because dH/dt = C + C'.
        rate = robot.generalized_force(answer.q, spanning) - robot.gravity_force(answer.q)
        rate = rate + robot.coriolis_matrix(answer.q, yd).T @ yd
        pause = 0 if self.observer_time == NEVER else time - self.observer_time
        gap = pause > LONGEST_PAUSE or (
            bool(self.observer_period) and pause > PAUSES * self.observer_period + SLACK
        )
        gain, dt = s.observer_gain, pause * 1e-9
        if not self.observing or gap:
            self.integral = p - self.external / gain
        else:
            known = self.integral + 0.5 * dt * (rate + self.rate)
            self.external = gain * (p - known) / (1.0 + gain * dt)
            self.integral = known + dt * self.external
            self.observer_period = pause
        self.rate, self.observing, self.observer_time = rate, True, time
        return {"external_effort": self.external[6 * robot.floating_base :]}

    def _measured_efforts(self, time: int) -> np.ndarray:
        """(nv,) efforts of the motors, or else of the independent joints."""
        robot = self.robot
        oldest = time - (int(self.settings.joint_state_timeout * 1e9) or OLDEST_EFFORT)
        for names in (robot.actuated_joint_names, robot.independent_joint_names):
            if all(self.joints[name].effort_time >= oldest for name in names):
                spanning = np.zeros(robot.nv)
                for name in names:
                    spanning[robot.coordinates.velocities[name].start] = self.joints[name].effort
                return spanning
        raise RejectedError("no measured effort")

    # Commands.

    def take_command(self, message: JointMessage, now: int, steady: int) -> Numbers:
        """The motors' commands that follow from a command for joints."""
        s, names = self.settings, message.names
        fields = message.position, message.velocity, message.effort
        self._check_ours(self.joints.keys() & set(names))
        if self._stale(message.stamp, now):
            raise RejectedError("stale")
        if len(set(names)) < len(names) or not set(names) <= self.joints.keys():
            raise RejectedError("misnamed joints")
        if any(len(x) not in (0, len(names)) for x in fields) or not any(len(x) for x in fields):
            raise RejectedError("wrong size")
        if s.joint_state_timeout and message.stamp < self.command_time:
            raise RejectedError("out of order")
        self.command_time = message.stamp
        has = (len(fields[0]) > 0, len(fields[1]) > 0, len(fields[2]) > 0)
        moves, dampers = has[0] or has[1], bool(s.damping) and (has[0] or has[1])
        if dampers and self.answer is None:
            raise RejectedError("no fresh joint states")
        damped = self.answer.joints if dampers and self.answer is not None else None
        key = frozenset(names), has, damped
        if key not in self.commands:
            self.requested_command = key
            raise RejectedError("kernel not ready")
        if not self.commands[key]:
            raise RejectedError("joints missing")
        fresh = self.answer is not None and not self._stale(self.answer.time, now)
        springs = bool(s.stiffness) and has[0]
        with_efforts = has[2] or springs or dampers or s.add_feedforward
        if (with_efforts or not has[0]) and not fresh:
            raise RejectedError("no fresh joint states")
        q, qd = self._commanded_motion(message, has, fresh, steady) if moves else (None, None)
        efforts = self._commanded_efforts(message, q, qd) if with_efforts else None
        self.command_q, self.command_steady = self.q if q is None else q, steady
        return self._send_command(has, q, qd, efforts, steady)

    def _commanded_motion(
        self, message: JointMessage, has: tuple[bool, bool, bool], fresh: bool, steady: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity of every joint that a command asks for."""
        robot = self.robot
        timeout = int(self.settings.joint_state_timeout * 1e9)
        start = robot.neutral()
        if fresh:
            start = self.answer.q
        elif self.command_steady != NEVER and not (
            timeout and steady - self.command_steady > timeout
        ):
            start = self.command_q
        joints = robot.determining_joints(list(message.names))
        at = [list(message.names).index(name) for name in joints]
        entries = robot.coordinates.scalar_positions
        position = (
            [message.position[k] for k in at] if has[0] else [start[entries[n]] for n in joints]
        )
        velocity = [message.velocity[k] for k in at] if has[1] else [0.0] * len(joints)
        if not (np.isfinite(position).all() and np.isfinite(velocity).all()):
            raise RejectedError("not finite")
        q = robot.close(dict(zip(joints, position, strict=True)), start)
        base = np.zeros(6) if robot.floating_base else None
        given = dict(zip(joints, velocity, strict=True))
        return q, robot.spanning_velocity(q, robot.independent_velocity(q, given, base))

    def _commanded_efforts(
        self, message: JointMessage, q: np.ndarray | None, qd: np.ndarray | None
    ) -> np.ndarray:
        """Commanded efforts, springs and dampers on the joints, and the feedforward."""
        robot, s, answer = self.robot, self.settings, self.answer
        assert answer is not None
        if not np.isfinite(message.effort).all():
            raise RejectedError("not finite")
        spanning = np.zeros(robot.nv)
        at = {name: robot.coordinates.velocities[name].start for name in robot.joint_names}
        for name, effort in zip(message.names, message.effort, strict=False):
            spanning[at[name]] += effort
        if len(message.position):
            for name, gain in joint_gains("stiffness", s.stiffness).items():
                entry = robot.coordinates.scalar_positions[name]
                spanning[at[name]] += gain * (q[entry] - answer.q[entry])
        if q is not None:
            for name, gain in joint_gains("damping", s.damping).items():
                spanning[at[name]] += gain * (qd[at[name]] - answer.qd[at[name]])
        tau = robot.generalized_force(answer.q, spanning)
        efforts = robot.actuator_efforts(answer.q, tau)
        return efforts + answer.efforts if s.add_feedforward else efforts

    def _send_command(
        self,
        has: tuple[bool, bool, bool],
        q: np.ndarray | None,
        qd: np.ndarray | None,
        efforts: np.ndarray | None,
        steady: int,
    ) -> Numbers:
        robot, s = self.robot, self.settings
        motors = robot.actuated_joint_names
        array = s.command_joints if s.command_source == "joint_commands" else ()
        of_array = [motors.index(name) for name in array]
        layout, columns, out = robot.coordinates, [], {}
        if has[0]:
            offsets = joint_offsets(s, motors)
            position = np.array([q[layout.scalar_positions[name]] for name in motors])
            columns.append(position - (0.0 if offsets is None else offsets))
            out["position_commands"] = columns[-1][of_array]
        if has[1]:
            columns.append(np.array([qd[layout.velocities[name].start] for name in motors]))
            out["velocity_commands"] = columns[-1][of_array]
            for topic in ("motor_commands", *(["effort_commands"] if array else [])):
                self.speeds.pop(topic, None)
                if np.any(columns[-1]):
                    self.speeds[topic] = steady
        if efforts is not None:
            columns.append(self._pass("motor_commands", efforts, steady))
            if array:
                out["effort_commands"] = self._pass("effort_commands", efforts, steady)[of_array]
        out = out if array else {}
        return {"motor_commands": np.concatenate(columns), **out}

    def _check_inputs(self, used: frozenset[str], now: int) -> None:
        s, robot = self.settings, self.robot
        if robot.floating_base and (self.base_time == NEVER or self._stale(self.base_time, now)):
            raise RejectedError("no fresh base state")
        if s.external_wrench and (
            not self.wrenches or any(self._stale(t, now) for t in self.wrench_times.values())
        ):
            raise RejectedError("no fresh external wrench")
        if s.acceleration_source == "reference":
            if self.reference_time == NEVER or self._stale(self.reference_time, now):
                raise RejectedError("no fresh reference")
            try:
                robot.determining_joints(list(self.reference))
            except InputError:
                raise RejectedError("joints missing") from None
        if s.acceleration_source == "estimate":
            joints = robot.determining_joints(list(used))
            rates = [self.joints[name].velocity_rate.rate for name in joints]
            rates += [each.rate for each in self.base_rates] if robot.floating_base else []
            if not np.isfinite(rates).all():
                raise RejectedError("no acceleration")

    def _measured(self, name: str) -> float:
        offsets = joint_gains("joint_offsets", self.settings.joint_offsets, signed=True)
        return self.joints[name].position + offsets.get(name, 0.0)

    def _closed(self, used: frozenset[str], base: np.ndarray | None = None) -> np.ndarray:
        """The closed position that measured joints lead to; the others must agree with it."""
        robot, tolerance = self.robot, self.settings.measurement_tolerance
        joints = robot.determining_joints(list(used))
        q = robot.close({name: self._measured(name) for name in joints}, self.q)
        if robot.floating_base:
            q[:7] = self.base_pose if base is None else base
        entries = robot.coordinates.scalar_positions
        for name in used - set(joints):
            apart = self._measured(name) - q[entries[name]]
            apart = math.remainder(apart, 2.0 * math.pi)
            if tolerance and abs(apart) / self._speed(name, joints) > tolerance:
                raise RejectedError("measurements disagree")
        return q

    def _speed(self, name: str, joints: Sequence[str]) -> float:
        """How fast a joint moves per motion of others, at least 1."""
        robot, home = self.robot, self.robot.neutral()
        at = robot.coordinates.velocities[name].start
        speeds = [1.0]
        for moving in joints:
            yd = robot.independent_velocity(home, {n: float(n == moving) for n in joints})
            speeds.append(abs(robot.spanning_velocity(home, yd)[at]))
        return max(speeds)

    def _velocity(self, used: frozenset[str], q: np.ndarray) -> np.ndarray:
        joints = self.robot.determining_joints(list(used))
        given = {name: self.joints[name].velocity for name in joints}
        base = self.base_twist if self.robot.floating_base else None
        return self.robot.independent_velocity(q, given, base)

    def _efforts(self, used: frozenset[str], q: np.ndarray) -> np.ndarray:
        """Efforts of the motors: the terms one by one."""
        robot, s = self.robot, self.settings
        yd, ydd = self._velocity(used, q), np.zeros(robot.ny)
        base = np.zeros(6) if robot.floating_base else None
        if s.acceleration_source == "reference":
            ydd = self._acceleration(self.reference, q, yd, base)
        elif s.acceleration_source == "estimate":
            joints = robot.determining_joints(list(used))
            given = {name: self.joints[name].velocity_rate.rate for name in joints}
            if robot.floating_base:
                base = np.array([each.rate for each in self.base_rates])
            ydd = self._acceleration(given, q, yd, base)
        gravity = robot.gravity_force(q)
        parts = {
            "gravity": gravity,
            "coriolis": robot.bias_force(q, yd) - gravity,
            "inertial": robot.mass_matrix(q) @ ydd,
        }
        tau = sum(parts[term] for term in self.terms)
        if s.external_wrench:
            rest = np.zeros(robot.ny)
            loaded = robot.inverse_dynamics(q, rest, rest, self.wrenches)
            tau = tau + loaded - robot.inverse_dynamics(q, rest, rest)
        return robot.actuator_efforts(q, tau)

    def _acceleration(
        self, given: Mapping[str, float], q: np.ndarray, yd: np.ndarray, base: np.ndarray | None
    ) -> np.ndarray:
        joints = self.robot.determining_joints(list(given))
        chosen = {name: given[name] for name in joints}
        return self.robot.independent_acceleration(q, yd, chosen, base)

    def _completed(
        self, message: JointMessage, used: frozenset[str], now: int, *, moving: bool
    ) -> Numbers:
        """~/joint_states alone, where no effort can be computed."""
        if not publishes_joint_states(self.settings, self.robot):
            return {}
        try:
            q = self._closed(used, self.q[:7] if self.robot.floating_base else None)
        except RejectedError:
            return {}
        if moving and self.answer is not None:
            self.answer.qd = self.robot.spanning_velocity(q, self._velocity(used, q))
        return {"completed_states": self._every_joint(message, used, q, moving=moving)}

    def _every_joint(
        self, message: JointMessage, used: frozenset[str], q: np.ndarray, *, moving: bool
    ) -> np.ndarray:
        """Positions of every joint, then velocities, then efforts, of those that there are."""
        robot = self.robot
        entries = robot.coordinates.scalar_positions
        names = [name for name in robot.joint_names if name in entries]
        columns = [[q[entries[name]] for name in names]]
        if moving:
            qd = robot.spanning_velocity(q, self._velocity(used, q))
            columns.append([qd[robot.coordinates.velocities[name].start] for name in names])
        given = dict(zip(message.names, message.effort, strict=False))
        whole = len(message.effort) == len(message.names)
        if whole and any(math.isfinite(given[n]) for n in given if n in self.joints):
            efforts = (given.get(name, 0.0) for name in names)
            columns.append([x if math.isfinite(x) else 0.0 for x in efforts])
        return np.concatenate(columns)

    # The gate, and what ends a stream.

    def _gate_settings(self) -> GateSettings:
        s = self.settings
        limits = largest_efforts(self.robot, s)
        return GateSettings(
            limits=dict(zip(self.robot.actuated_joint_names, limits, strict=True)),
            rate=s.effort_rate_limit,
            ramp=int(s.ramp_in * 1e9),
            timeout=int(s.joint_state_timeout * 1e9),
        )

    def _pass(self, topic: str, efforts: np.ndarray, steady: int) -> np.ndarray:
        names = self.robot.actuated_joint_names
        sent = self.gates[topic].send(names, efforts, self._gate_settings(), steady)
        self.standing[topic] = bool(np.any(sent))
        self.held.pop(topic, None)
        return sent

    def _zeros(self, topic: str, steady: int, out: dict[str, np.ndarray]) -> None:
        names = self.robot.actuated_joint_names
        self.gates[topic].end(names, steady)
        self.held.pop(topic, None)
        self._unasked(topic, np.zeros(len(names)), out)

    def _end(
        self, topic: str, efforts: bool, speeds: bool, steady: int, out: dict[str, np.ndarray]
    ) -> None:
        """Zeros for efforts, velocities, or both."""
        if efforts:
            self._zeros(topic, steady, out)
        if not speeds:
            return
        del self.speeds[topic]
        motors, joints = self.robot.actuated_joint_names, self.settings.command_joints
        if topic == "motor_commands":
            out[topic] = np.zeros((1 + efforts) * len(motors))
        elif joints:
            out["velocity_commands"] = np.zeros(len(joints))

    def _unasked(self, topic: str, efforts: np.ndarray, out: dict[str, np.ndarray]) -> None:
        """Efforts of the motors that answer no input."""
        self.standing[topic] = bool(np.any(efforts))
        motors, joints = self.robot.actuated_joint_names, self.settings.command_joints
        if topic != "effort_commands":
            out[topic] = efforts
        elif joints:
            out[topic] = efforts[[motors.index(name) for name in joints]]

    def zeros_after_rejection(self, steady: int, *, command: bool = False) -> Numbers:
        """Zeros on what a rejected input would have driven, if the settings ask for it."""
        out: dict[str, np.ndarray] = {}
        topics = ["motor_commands" if command else "feedforward"]
        if command == (self.settings.command_source == "joint_commands"):
            topics.append("effort_commands")
        if self.settings.on_refusal == "zero" and not self.others:
            for topic in topics:
                self._end(topic, self.standing[topic], topic in self.speeds, steady, out)
        return out

    def tick(self, steady: int) -> Numbers:
        """Messages that end topics on which nothing was sent for longer than the timeout."""
        out = self.take_pending(steady)
        s = self.settings
        timeout = int(s.joint_state_timeout * 1e9)
        for topic in self.gates:
            efforts = self.standing[topic] and self._watch(topic, steady, out)
            late = timeout and steady - self.speeds.get(topic, steady) > timeout
            self._end(topic, efforts, bool(late) and s.on_stale != "nothing", steady, out)
        return out

    def _watch(self, topic: str, steady: int, out: dict[str, np.ndarray]) -> bool:
        """Efforts as `on_stale` says, for a limited time; whether zeros are due."""
        s, gate = self.settings, self.gates[topic]
        timeout, began = int(s.joint_state_timeout * 1e9), self.held.get(topic)
        if began is None:
            late = timeout and steady - (gate.time or 0) > timeout
            if not late or s.on_stale == "nothing":
                return False
        elif steady - began <= int(s.stale_hold_time * 1e9):
            if s.on_stale == "nothing":
                return False
        else:
            return True
        wanted = self._standing_efforts()
        if wanted is None:
            return True
        self.held.setdefault(topic, steady)
        efforts = gate.hold(self.robot.actuated_joint_names, wanted, self._gate_settings(), steady)
        if efforts is not None:
            self._unasked(topic, efforts, out)
        return False

    def _standing_efforts(self) -> np.ndarray | None:
        """Gravity compensation where the robot was, or dampers; None for zeros."""
        robot, answer = self.robot, self.answer
        if answer is None:
            return None
        if self.settings.on_stale == "gravity":
            return robot.actuator_efforts(answer.q, robot.gravity_force(answer.q))
        if self.settings.on_stale == "damping" and self.completed:
            gains, layout = joint_gains("damping", self.settings.damping), robot.coordinates
            return np.array(
                [
                    -gains.get(name, 0.0) * answer.qd[layout.velocities[name].start]
                    for name in robot.actuated_joint_names
                ]
            )
        return None
