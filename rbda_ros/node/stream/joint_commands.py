"""Commands in joint space, as a controller or a policy thinks, into commands for the motors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from rbda_ros.errors import InputError
from rbda_ros.node.joint_gains import joint_gains
from rbda_ros.node.joint_map import places
from rbda_ros.node.refusals import Reason, RefusalError
from rbda_ros.node.settings import Settings, joint_offsets
from rbda_ros.node.stream.effort_safety import largest_efforts
from rbda_ros.node.stream.rates import NEVER
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.node.stream.wire import JointStateWriter, Vector
from rbda_ros.robot import Robot
from rbda_ros.robot.completion import CompletionCall
from rbda_ros.robot.feedforward_call import FeedforwardCall
from rbda_ros.robot.motor_command import MotorCommandCall

MOST_CALLS = 30
"""Sets of names that are remembered."""
FIELDS = ("position", "velocity", "effort")
Commands = dict[str, Vector]


@dataclass(eq=False)
class _Measured:
    """The state that was answered last, copied.

    Attributes:
        time: that it was answered [ns].
        joints: that were measured.
        q: (nq,) spanning position.
        velocity: of the measured joints.
        base_twist: of a floating base.
        efforts: (actuated,) the feedforward.
    """

    time: int
    joints: tuple[str, ...]
    q: Vector
    velocity: Vector
    base_twist: Vector
    efforts: Vector


class JointCommands:
    """Turns ``~/joint_commands`` of one robot into ``~/motor_commands``.

    Args:
        robot: the model.
        settings: the parameters of the node.
        publish: takes JointState, serialized or not.
        publish_arrays: takes positions, velocities and efforts of the motors, those there are.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        publish: Callable[[Any], None],
        publish_arrays: Callable[[Commands], None],
    ) -> None:
        self._robot = robot
        self._publish = publish
        self._publish_arrays = publish_arrays
        self._state: _Measured | None = None
        self._last = NEVER  # stamp of a command
        self._latest = NEVER  # time that was seen
        self._calls: dict[tuple[str, ...], MotorCommandCall] = {}
        self._completions: dict[tuple[str, ...], CompletionCall] = {}
        names = robot.actuated_joint_names
        in_q = robot.coordinates.scalar_positions
        self._usable = all(name in in_q for name in names)
        self._in_q = np.array([in_q.get(name, 0) for name in names], np.intp)
        self._in_qd = np.array(robot.tree.actuated, np.intp)
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        self._settings = settings
        self._limit = largest_efforts(self._robot, settings)
        self._offsets = joint_offsets(settings, self._robot.actuated_joint_names)
        self._timeout = int(settings.joint_state_timeout * 1e9)
        self._writers: dict[tuple[str, ...], JointStateWriter] = {}
        layout = self._robot.coordinates
        gains = {}
        for name in ("stiffness", "damping"):
            found = joint_gains(name, getattr(settings, name))
            at = [joint for joint in found if joint in layout.scalar_positions]
            gains[name] = (
                np.array([layout.scalar_positions[joint] for joint in at], np.intp),
                np.array([layout.velocities[joint].start for joint in at], np.intp),
                np.array([found[joint] for joint in at]),
            )
        self._stiffness, self._damping = gains["stiffness"], gains["damping"]
        self._calls.clear()

    def forget(self) -> None:
        """Let go of what was heard."""
        self._state, self._last, self._latest = None, NEVER, NEVER

    def on_state(self, call: FeedforwardCall, now: int) -> None:
        """Keep the state that was answered, for efforts act where the robot is."""
        self._state = _Measured(
            now,
            call.joints,
            call.q.copy(),
            call.velocity.copy(),
            call.base_twist.copy(),
            call.efforts.copy(),
        )

    def on_native_state(self, call: FeedforwardCall, numbers: bytes, time: int) -> None:
        """The same, of the native thread: twist of the base, velocity, position and efforts."""
        sizes = [len(call.base_twist), len(call.velocity), len(call.q)]
        twist, velocity, q, efforts = np.split(np.frombuffer(numbers), np.cumsum(sizes))
        self._state = _Measured(time, call.joints, q, velocity, twist, efforts)

    def on_command(self, data: bytes, now: int) -> None:
        """Answer one command, a serialized JointState.

        Raises:
            RefusalError, InputError, ModelError: it must not be followed; says why.
        """
        if now < self._latest - JUMP:
            self.forget()  # time has jumped back: all that was heard is from the future
        self._latest = now
        message = deserialize_message(data, JointState)
        self._check_time(message, now)
        given, found = self._read(message)
        state = self._fresh(now) if self._needs_state(given) else self._state
        call = self._call(tuple(found), "position" in given or "velocity" in given)
        answer: Commands = {}
        if "position" in given or "velocity" in given:
            self._move(call, given, found, state)
            if "position" in given:
                answer["position"] = call.q[self._in_q]
                if self._offsets is not None:  # the motors' own zeros
                    answer["position"] -= self._offsets
            if "velocity" in given:
                answer["velocity"] = call.qd[self._in_qd]
        efforts = self._efforts(call, given, found, state)
        if efforts is not None:
            answer["effort"] = efforts
        self._send(answer, data)

    def _check_time(self, message: JointState, now: int) -> None:
        stamp = message.header.stamp
        time = stamp.sec * 1_000_000_000 + stamp.nanosec
        if self._timeout and abs(now - time) > self._timeout:
            raise RefusalError(
                Reason.STALE,
                f"joint_commands are {(now - time) * 1e-9:.3g} s old by their stamp; check the "
                "clocks, or raise joint_state_timeout (0: any age)",
            )
        if self._timeout and time < self._last:
            raise RefusalError(Reason.OUT_OF_ORDER, "joint_commands are older than the last ones")
        self._last = time

    def _read(self, message: JointState) -> tuple[Commands, dict[str, int]]:
        """The fields that a command has, and where the joints of the model stand in them."""
        names = list(message.name)
        found = places(names, self._settings.joint_prefix, set(self._robot.joint_names))
        unknown = len(names) - len(found)
        if unknown or not names:
            ours = ", ".join(self._settings.joint_prefix + n for n in self._robot.joint_names)
            raise RefusalError(
                Reason.MISNAMED,
                f"joint_commands name {unknown} joints that '{self._robot.name}' does not have, or "
                f"none at all; it has {ours}",
            )
        given: Commands = {}
        for field in FIELDS:
            values = np.array(getattr(message, field))
            if values.size and values.size != len(names):
                raise RefusalError(
                    Reason.WRONG_SIZE,
                    f"joint_commands name {len(names)} joints but have {values.size} numbers in "
                    f"{field}; give one per joint, or none",
                )
            if not np.isfinite(values).all():
                raise RefusalError(Reason.NOT_FINITE, f"joint_commands: {field} is not finite")
            if values.size:
                given[field] = values
        if not given:
            raise RefusalError(Reason.WRONG_SIZE, "joint_commands have no numbers; give some")
        if not self._usable:
            raise RefusalError(Reason.MODEL, "a motor has several coordinates: no single position")
        return given, found

    def _needs_state(self, given: Commands) -> bool:
        return (
            "position" not in given
            or "effort" in given
            or self._settings.add_feedforward
            or bool(self._stiffness[2].size or self._damping[2].size)
        )

    def _fresh(self, now: int) -> _Measured:
        state = self._state
        if state is None or (self._timeout and abs(now - state.time) > self._timeout):
            raise RefusalError(
                Reason.NO_STATE,
                "no joint_states that could be answered lately; efforts act where the robot is",
            )
        return state

    def _call(self, names: tuple[str, ...], moves: bool) -> MotorCommandCall:
        """The call for commanded joints; where only efforts are commanded, any call."""
        joints = names if moves else self._robot.independent_joint_names
        if joints not in self._calls:
            if len(self._calls) >= MOST_CALLS:
                self._calls.clear()
            try:
                call = self._robot.motor_command(joints)
            except InputError as error:
                raise RefusalError(Reason.PARTIAL, f"joint_commands: {error}") from error
            call.max_condition_number = self._settings.max_condition_number
            self._calls[joints] = call
            if self._state is not None:
                call.start_from(self._state.q)
        return self._calls[joints]

    def _move(
        self,
        call: MotorCommandCall,
        given: Commands,
        found: dict[str, int],
        state: _Measured | None,
    ) -> None:
        order = [found[name] for name in call.joints]
        if "position" in given:
            call.position[:] = given["position"][order]
        else:  # velocities hold where the robot is
            assert state is not None
            call.start_from(state.q)
            places_in_q = self._robot.coordinates.scalar_positions
            call.position[:] = state.q[[places_in_q[name] for name in call.joints]]
        call.velocity[:] = given["velocity"][order] if "velocity" in given else 0.0
        last = call.q.copy()
        try:
            call.move()
        except Exception:
            call.start_from(last)
            raise

    def _efforts(
        self,
        call: MotorCommandCall,
        given: Commands,
        found: dict[str, int],
        state: _Measured | None,
    ) -> Vector | None:
        """Efforts of the motors: those commanded, of springs and dampers, and the feedforward."""
        in_q, in_qd, stiffness = self._stiffness
        _, damped, damping = self._damping
        springs = stiffness.size and "position" in given
        dampers = damping.size and ("position" in given or "velocity" in given)
        if not ("effort" in given or springs or dampers or self._settings.add_feedforward):
            return None
        assert state is not None
        spanning = np.zeros(self._robot.nv)
        for name, k in found.items():
            if "effort" in given:
                spanning[self._robot.coordinates.velocities[name].start] = given["effort"][k]
        if springs:
            spanning[in_qd] += stiffness * (call.q[in_q] - state.q[in_q])
        if dampers:
            spanning[damped] += damping * (call.qd[damped] - self._measured_velocity(state)[damped])
        efforts = call.efforts(state.q, spanning).copy()
        if self._settings.add_feedforward:
            efforts += state.efforts
        return np.clip(efforts, -self._limit, self._limit)

    def _measured_velocity(self, state: _Measured) -> Vector:
        completion = self._completions.get(state.joints)
        if completion is None:
            completion = self._completions[state.joints] = self._robot.completion(state.joints)
        completion.q[:], completion.velocity[:] = state.q, state.velocity
        completion.base_twist[:] = state.base_twist
        return completion()

    def _send(self, answer: Commands, data: bytes) -> None:
        fields = tuple(answer)
        if fields not in self._writers:
            self._writers[fields] = JointStateWriter(self._names(), fields)
        writer = self._writers[fields]
        for field, values in answer.items():
            writer.values[field][:] = values
        self._publish(writer.serialized(data))
        self._publish_arrays(answer)

    def _names(self) -> Sequence[str]:
        return [self._settings.joint_prefix + name for name in self._robot.actuated_joint_names]
