"""The topics of commands: ``~/joint_commands`` in, ``~/motor_commands`` and bare arrays out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from time import perf_counter
from typing import Any

from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from rbda_ros.errors import InputError, ModelError
from rbda_ros.node.refusals import refusal
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.command_arrays import CommandArrays
from rbda_ros.node.stream.context import Context
from rbda_ros.node.stream.joint_commands import JointCommands, Prepared
from rbda_ros.node.stream.meter import Meter
from rbda_ros.node.stream.native_command_plan import (
    CommandOutputs,
    CommandPlan,
    make_command_plan,
)
from rbda_ros.node.stream.native_thread import Arming, NativeThread, NoThreadError
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

TOPIC = "~/joint_commands"


class CommandTopic:
    """Commands of one node, by a native thread where there is one.

    Args:
        node: the node.
        arrays: the bare arrays.
        context: what the stream works with.

    Attributes:
        meter: how often and how fast commands were answered.
    """

    def __init__(self, node: Any, arrays: CommandArrays, context: Context) -> None:
        self._node = node
        self._arrays = arrays
        self._context = context
        self.meter = Meter()
        self._motors = node.create_lifecycle_publisher(JointState, "~/motor_commands", 10)
        self._commands: JointCommands | None = None
        self._prepared: tuple[Robot | None, Prepared] = None, {}
        self._states: NativeThread | None = None
        self._native: NativeThread | None = None

    def prepare(self, robot: Robot) -> None:
        """Make ready for a model of the same joints; not on the executor. Then `use` it."""
        if self._commands is not None:
            self._prepared = robot, self._commands.prepare(robot)

    def use(self, robot: Robot, settings: Settings) -> None:
        """Put a model in the place of the one before."""
        for_robot, prepared = self._prepared
        self._prepared = None, {}
        self._commands = JointCommands(
            robot,
            settings,
            # Without asking the lifecycle: there are subscriptions only while it is active.
            partial(Publisher.publish, self._motors),
            self._arrays.publish_motor_commands,
            self._context.background,
            self._context.codec,
            self._commands,
            prepared if for_robot is robot else None,
        )

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        if self._commands is not None:
            self._commands.apply(settings)

    def open_native(
        self, states: NativeThread, depth: int, answer: Callable[[bytes], None]
    ) -> bool:
        """Listen by a native thread, beside that of the joint states; whether there is one.

        Args:
            states: answers joint states.
            depth: how many commands may wait.
            answer: `on_command`, which raises nothing.
        """
        self._states = states
        with suppress(NoThreadError):
            self._native = NativeThread(
                "joint_commands", self._node, TOPIC, depth, answer, self._hear, self._arming
            )
        return self._native is not None

    def close(self) -> None:
        """Stop listening, and forget what was heard."""
        if self._native is not None:
            self._native.close()
            self.collect()
        self._native = self._states = None
        if self._commands is not None:
            self._commands.forget()

    def free(self) -> None:
        """Let go of the model."""
        self._commands, self._prepared = None, (None, {})

    def changing(self) -> AbstractContextManager[None]:
        """While something changes that the thread goes by."""
        return nullcontext() if self._native is None else self._native.changing()

    def on_state(self, call: FeedforwardCall) -> None:
        """Take a state that Python has answered."""
        if self._commands is not None:
            self._commands.on_state(call, self._context.now())

    def on_native_state(self, call: FeedforwardCall, numbers: bytes, time: int) -> None:
        """Take the last one that the native thread has answered."""
        if self._commands is not None:
            self._commands.on_native_state(call, numbers, time)

    def on_command(self, data: bytes) -> None:
        """Answer one, or count why not."""
        if self._states is not None:
            self._states.look()  # for the state that was answered last
        began = perf_counter()
        try:
            if self._commands is not None:
                answered = self._commands.on_command(data, self._context.now())
                self.meter.add(perf_counter() - began, *answered)
        except (InputError, ModelError) as error:
            self._context.refusals.add(refusal(error))

    def collect(self) -> None:
        """Count what the native thread has answered by now."""
        if self._native is not None:
            self.meter.add_native(*self._native.answers())

    def _hear(self, plan: CommandPlan, heard: Any) -> None:
        used, last, latest = heard
        if self._commands is not None:
            way = plan.ways[used] if used >= 0 else None
            self._commands.on_native_commands(way, last, latest)

    def _arming(self) -> Arming | None:
        """What the thread may go on with."""
        commands, native, states = self._commands, self._native, self._states
        if commands is None or native is None or states is None:
            return None
        ready = commands.ready()
        outputs = CommandOutputs(
            self._motors.handle.pointer,
            {field: each.handle.pointer for field, each in self._arrays.motor_commands.items()},
            self._arrays.order,
        )
        call = None if states.plan is None else states.plan.call
        plan = make_command_plan(ready, outputs, states.thread, call, native.plan)
        if plan is None:
            return None
        used = plan.ways.index(ready.used) if ready.used in plan.ways else -1
        return plan, (used, ready.last, ready.latest)
