"""Commands in joint space, as a controller or a policy thinks, into commands for the motors."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from rbda_ros.algorithms.feedforward import Health
from rbda_ros.errors import InputError
from rbda_ros.node.joint_gains import joint_gains
from rbda_ros.node.joint_map import places
from rbda_ros.node.refusals import Reason, RefusalError
from rbda_ros.node.settings import Settings, joint_offsets
from rbda_ros.node.stream.codec import Codec
from rbda_ros.node.stream.command_way import FIELDS, CommandState, CommandWay, ReadyCommands
from rbda_ros.node.stream.effort_safety import largest_efforts
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.rates import NEVER, Vector
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.node.worker import result_of
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall
from rbda_ros.robot.motor_command import MotorCommandCall

MOST_WAYS = 30
"""Sets of names and fields that are remembered."""
Joints = tuple[str, ...]
Fields = tuple[str, ...]
Prepared = dict[tuple[Any, ...], Future[MotorCommandCall]]


class JointCommands:
    """Turns ``~/joint_commands`` of one robot into ``~/motor_commands``.

    Args:
        robot: the model.
        settings: the parameters of the node.
        publish: takes JointState, serialized or not.
        publish_arrays: takes positions, velocities and efforts of the motors, those there are.
        background: runs something in another thread.
        codec: reads and writes messages.
        before: what answered until now; if the robot has but another load, this goes on from it.
        prepared: what `prepare` made for this robot.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        publish: Callable[[Any], None],
        publish_arrays: Callable[[dict[str, Vector]], None],
        background: Callable[[Callable[[], Any]], Future[Any]],
        codec: Codec,
        before: JointCommands | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        self._robot = robot
        self._publish = publish
        self._publish_arrays = publish_arrays
        self._background = background
        self._codec = codec
        self._reader = codec.reader()
        self._state: CommandState | None = None
        self._ways: dict[tuple[Joints, Fields, Joints], CommandWay] = {}
        self._used: CommandWay | None = None  # for the last command
        self._making: Prepared = prepared or {}
        self._last = self._latest = NEVER  # stamp of a command, and time that was seen
        self.apply(settings)
        if before is not None and before._robot.description is robot.description:
            self._reader, self._state = before._reader, before._state
            self._last, self._latest = before._last, before._latest

    def prepare(self, robot: Robot) -> Prepared:
        """Make what will be needed when another robot takes over; in any thread."""
        prepared: Prepared = {}
        for key in list(self._making):
            joints, efforts, measured, _ = key
            with suppress(InputError):  # the other robot has other joints
                call = robot.motor_command(joints, efforts=efforts, measured=measured or None)
                call.kernel.compile()  # until then, the robot before answers
                prepared[key] = Future()
                prepared[key].set_result(call)
        return prepared

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        self._settings = settings
        self._offsets = joint_offsets(settings, self._robot.actuated_joint_names)
        self._timeout = int(settings.joint_state_timeout * 1e9)
        self._stiffness = joint_gains("stiffness", settings.stiffness)
        self._damping = joint_gains("damping", settings.damping)
        self._limit = largest_efforts(self._robot, settings)
        self._ways.clear()
        self._used = None

    def forget(self) -> None:
        """Let go of what was heard."""
        self._state, self._used = None, None
        self._last = self._latest = NEVER

    def on_state(self, call: FeedforwardCall, now: int) -> None:
        """Keep the state that was answered, for efforts act where the robot is."""
        velocity = np.concatenate([call.base_twist, call.velocity])
        numbers = np.concatenate([velocity, call.q, call.efforts])
        self._state = CommandState(now, call.joints, numbers, len(velocity), len(call.q))

    def on_native_state(self, call: FeedforwardCall, numbers: bytes, time: int) -> None:
        """The same, of the native thread: velocity, position and efforts."""
        size = len(call.base_twist) + len(call.velocity)
        self._state = CommandState(time, call.joints, np.frombuffer(numbers), size, len(call.q))

    def on_native_commands(self, way: CommandWay | None, last: int, latest: int) -> None:
        """Know which way the native thread used last, the stamp of the last command, the time."""
        if way is not None:
            self._used = way
        self._last, self._latest = last, latest

    def ready(self) -> ReadyCommands:
        """What the next commands are answered by, if they are like the last ones."""
        joints = () if self._state is None else self._state.joints
        found: list[tuple[Any, CommandWay]] = []
        for form in self._reader.forms:
            fields = tuple(field for field, n in zip(FIELDS, form.counts, strict=True) if n)
            way = self._ways.get((form.names, fields, joints if self._damping else ()))
            if way is not None and set(form.counts) <= {0, len(form.names)}:
                found.append((form, way))
        return ReadyCommands(found, self._used, self._last, self._latest, self._timeout)

    def on_command(self, data: bytes, now: int) -> tuple[float, list[float]]:
        """Answer one command, a serialized JointState.

        Returns:
            How old it was [s], NaN without a stamp; and `Health`.

        Raises:
            RefusalError, InputError, ModelError: it must not be followed; says why.
        """
        if now < self._latest - JUMP:
            self.forget()  # time has jumped back: all that was heard is from the future
        self._latest = now
        message = self._reader.read(data)
        self._check_time(message.time, now)
        way = self._way(message)
        state = self._fresh(now) if way.needs_state else self._state
        if way is not self._used:
            self._start(way, state)
        way.give(message, state)
        health = way.call()
        self._used = way
        self._publish(way.answer(data))
        self._publish_arrays(way.values)
        age = (now - message.time) * 1e-9 if message.time else math.nan
        return age, list(health[: len(Health._fields)])

    def _check_time(self, time: int, now: int) -> None:
        if self._timeout and abs(now - time) > self._timeout:
            raise RefusalError(
                Reason.STALE,
                f"joint_commands are {(now - time) * 1e-9:.3g} s old by their stamp; check the "
                "clocks, or raise joint_state_timeout (0: any age)",
            )
        if self._timeout and time < self._last:
            raise RefusalError(Reason.OUT_OF_ORDER, "joint_commands are older than the last ones")
        self._last = time

    def _fresh(self, now: int) -> CommandState:
        state = self._state
        if state is None or (self._timeout and abs(now - state.time) > self._timeout):
            raise RefusalError(
                Reason.NO_STATE,
                "no joint_states that could be answered lately; efforts act where the robot is",
            )
        return state

    def _start(self, way: CommandWay, state: CommandState | None) -> None:
        """Have another way begin where the last one ended, or else where the robot is."""
        if self._used is not None:
            way.call.start_from(self._used.call.guess)
        elif state is not None:
            way.call.start_from(state.q)

    def _way(self, message: JointStates) -> CommandWay:
        """How commands with these names and fields are turned over."""
        measured = () if self._state is None or not self._damping else self._state.joints
        fields = tuple(field for field in FIELDS if len(getattr(message, field)))
        sizes = {len(getattr(message, field)) for field in fields}
        key = message.names, fields, measured
        if key not in self._ways or sizes != {len(message.names)}:
            found = self._places(message, fields)
            way = self._new_way(message.names, fields, measured, found)
            if len(self._ways) >= MOST_WAYS:
                self._ways.clear()
            self._ways[key] = way
        return self._ways[key]

    def _places(self, message: JointStates, fields: Fields) -> dict[str, int]:
        """Where the joints of the model stand in a command, if it has all that it needs."""
        names, robot = message.names, self._robot
        found = places(names, self._settings.joint_prefix, set(robot.joint_names))
        unknown = len(names) - len(found)
        if unknown or not names:
            ours = ", ".join(self._settings.joint_prefix + n for n in robot.joint_names)
            raise RefusalError(
                Reason.MISNAMED,
                f"joint_commands name {unknown} joints that '{robot.name}' does not have, or "
                f"none at all; it has {ours}",
            )
        for field in fields:
            size = len(getattr(message, field))
            if size != len(names):
                raise RefusalError(
                    Reason.WRONG_SIZE,
                    f"joint_commands name {len(names)} joints but have {size} numbers in "
                    f"{field}; give one per joint, or none",
                )
        if not fields:
            raise RefusalError(Reason.WRONG_SIZE, "joint_commands have no numbers; give some")
        return found

    def _new_way(
        self, names: Joints, fields: Fields, measured: Joints, found: dict[str, int]
    ) -> CommandWay:
        robot, moves = self._robot, "position" in fields or "velocity" in fields
        joints: Joints | None = None
        if moves:
            try:
                joints = robot.determining_joints(list(found))
            except InputError as error:
                raise RefusalError(Reason.PARTIAL, f"joint_commands: {error}") from error
        made_of = {
            "commanded": "effort" in fields,
            "springs": bool(self._stiffness) and "position" in fields,
            "dampers": bool(self._damping) and moves,
            "feedforward": self._settings.add_feedforward,
        }
        efforts = tuple(name for name, wanted in made_of.items() if wanted)
        if "dampers" in efforts and not measured:
            raise RefusalError(Reason.NO_STATE, "no joint_states yet, whose velocity dampers need")
        call = self._made(joints, efforts, measured, (names, fields))
        self._set(call)
        writes = [field for field in FIELDS[:2] if field in fields] + ["effort"] * bool(efforts)
        prefixed = [self._settings.joint_prefix + name for name in robot.actuated_joint_names]
        return CommandWay(robot, call, fields, efforts, found, self._codec.states(prefixed, writes))

    def _set(self, call: MotorCommandCall) -> None:
        call.max_condition_number = self._settings.max_condition_number
        call.limit[:] = self._limit
        call.offsets[:] = 0.0 if self._offsets is None else self._offsets
        call.effort[:] = 0.0
        for gains, into in ((self._stiffness, call.stiffness), (self._damping, call.damping)):
            into[:] = 0.0
            for name, gain in gains.items():
                if name in self._robot.coordinates.scalar_positions:
                    into[self._robot.coordinates.velocities[name].start] = gain

    def _made(
        self, joints: Joints | None, efforts: tuple[str, ...], measured: Joints, of: Any
    ) -> MotorCommandCall:
        """A call, made in the background: its kernel is traced in tens of milliseconds."""
        key = joints, efforts, measured, of
        if key not in self._making:
            if len(self._making) >= MOST_WAYS:
                self._making.clear()
            self._making[key] = self._background(
                partial(
                    self._robot.motor_command, joints, efforts=efforts, measured=measured or None
                )
            )
        if not self._making[key].done():
            raise RefusalError(Reason.NOT_READY, "the kernel for these commands is being made")
        return result_of(self._making[key])
