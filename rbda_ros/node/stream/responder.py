"""From joint states to the efforts that they need: the hot path of the node.

At 1 kHz the messages cost more than the arithmetic, so names are matched once, numbers are read
and written in place (`wire`), and one kernel is called in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any

import numpy as np

from rbda_ros.errors import FarError, InputError, ModelError, NotFiniteError
from rbda_ros.node.refusals import Reason, RefusalError, refusal, stale_states
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.closure_search import Search
from rbda_ros.node.stream.context import Context
from rbda_ros.node.stream.effort_safety import EffortSafety, largest_efforts
from rbda_ros.node.stream.handover import Ready, Staged
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.made_calls import Joints, Kind, MadeCalls, Prepared, prepare_call
from rbda_ros.node.stream.measurements import Measured
from rbda_ros.node.stream.other_inputs import OtherInputs
from rbda_ros.node.stream.rates import NEVER, Vector
from rbda_ros.node.worker import result_of
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

JUMP = 10_000_000
"""How far time goes back before it counts as a jump, and not as a clock being set right [ns]."""


class Responder:
    """Answers joint states of one robot with efforts on its actuated joints.

    Args:
        robot: the model.
        settings: the parameters of the node.
        context: what the node has.
        before: what answered until now; if the robot has but another load, this goes on from it.
        prepared: what `prepare` made for this robot.

    Attributes:
        latest: the time that was seen last [ns]; the native thread may have seen a later one.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        context: Context,
        before: Responder | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        self._robot = robot
        self._context = context
        self._settings = settings
        self.latest = NEVER
        self._reader = context.codec.reader()
        self._measured = Measured(robot, settings)
        self._others = OtherInputs(robot)
        self._search = Search(context.background)

        self._call: FeedforwardCall | None = None  # in use
        self._start: Vector | None = None  # where another one's loops begin to close
        self._joints: Joints = ()  # that it goes by
        self._kind: Kind | None = None  # what its inputs mean
        self._unsettled = True  # whether the settings may want another
        self._calls = MadeCalls(robot, context.background, prepared)

        self._safety = EffortSafety(settings)
        self._command = context.codec.commands()
        self._written_names: list[str] | None = None
        self.apply(settings)
        if before is not None:
            self._take_over(before)
        if (kind := self._likely_kind()) is not None:
            self._calls.make(kind, settings.terms)

    def apply(self, settings: Settings) -> None:
        """Go on with other settings; a kernel that they need is made in the background."""
        robot = self._robot
        self._measured.apply(settings)
        self._safety.apply(settings)
        if settings.joint_prefix != self._settings.joint_prefix:
            self._others.forget()
        self._settings, self._unsettled = settings, True
        self._needs_others = (
            robot.floating_base
            or settings.external_wrench
            or settings.acceleration_source == "reference"
        )
        self._timeout = int(settings.joint_state_timeout * 1e9)
        names = [settings.joint_prefix + n for n in robot.actuated_joint_names]
        if names != self._written_names:
            self._written_names, self._writer = names, self._context.codec.efforts(names)
        order = [robot.actuated_joint_names.index(name) for name in settings.command_joints]
        self._command_order = np.array(order, np.intp)
        self._command.data = [0.0] * len(order)
        self._commanded = np.frombuffer(self._command.data) if order else np.zeros(0)

    def forgets_by(self, settings: Settings) -> bool:
        """Whether other settings undo what was heard, by the native thread too."""
        return self._measured.forgets_by(settings)

    def forget(self) -> None:
        """Let go of everything that was heard, and wait for it anew."""
        self._measured.forget()
        self._others.forget()
        self._safety.forget()
        self.latest = NEVER

    @property
    def kernel_state(self) -> str:
        """Whether machine code answers, or still an interpreter."""
        if self._call is None:
            return "none in use yet"
        kernel = self._call.kernel
        if kernel.compiled:
            return "compiled"
        return f"interpreted: {kernel.error}" if kernel.error else "interpreted"

    @property
    def call_in_use(self) -> FeedforwardCall | None:
        """What answered the last message."""
        return self._call

    # Joint states.

    def on_joint_states(self, data: bytes) -> None:
        """Answer one message, a serialized JointState, or count why not."""
        began = perf_counter()
        try:
            age, health = self._respond(data)
        except (InputError, ModelError) as error:
            self._refuse(refusal(error), data)
            return
        self._context.meter.add(perf_counter() - began, age, health)

    def _refuse(self, refused: RefusalError, data: bytes) -> None:
        self._context.refusals.add(refused)
        if self._safety.zero_follows(refused.reason):
            self._send(np.zeros(len(self._writer.efforts)), data)

    def _respond(self, data: bytes) -> tuple[float, list[float]]:
        """Publish the answer; how old the message was [s], NaN without a stamp, and `Health`."""
        states = self._reader.read(data)
        now, time, timeout = self._present(), states.time, self._timeout
        if timeout and abs(now - time) > timeout:
            raise stale_states(now - time)
        oldest = now - timeout if timeout else NEVER + 1
        joints: Joints = ()
        try:
            joints = self._measured.take(states, time or now, oldest)
            call, health = self._compute(states, joints, now)
        except RefusalError as refused:
            moving = refused.reason is not Reason.NO_VELOCITY
            with suppress(RefusalError):  # nor is there where the joints are
                if not (joints or moving):
                    joints = self._measured.take_positions(states, time or now, oldest)
                self._close(states, joints, data, moving)
            raise
        if self._safety.active:
            self._safety.limit(call.efforts, now)
        self._send(call.efforts, data)
        self._context.answered(call, data, states)
        return (now - time) * 1e-9 if time else math.nan, health

    def _compute(
        self, states: JointStates, joints: Joints, now: int
    ) -> tuple[FeedforwardCall, list[float]]:
        """The call that has the efforts for a message, and its `Health`."""
        call = self._call
        if call is None or self._unsettled or joints is not self._joints:
            call = self._settle(joints, now)
        self._measured.give(states, joints, call)
        if self._needs_others:
            self._others.fill(call, now, self._timeout, self._settings)
        try:
            return call, call()
        except NotFiniteError as error:
            raise self._measured.not_finite(call) from error
        except FarError:
            return call, self._search.call_again(call)

    def _close(self, states: JointStates, joints: Joints, data: bytes, moving: bool) -> None:
        """Pass on where the joints are, though what shall move them is not known."""
        making = self._calls.make((joints, None, False), self._settings.terms) if joints else None
        if making is None or not making.done():
            return
        call = result_of(making)
        call.searches, call.max_condition_number = False, self._settings.max_condition_number
        self._measured.give(states, joints, call, moving=moving)
        with suppress(InputError, ModelError):
            call()
            self._context.closed(call, data, states, moving)

    def _send(self, efforts: Vector, data: bytes) -> None:
        """Publish efforts with the stamp of a message."""
        self._writer.efforts[:] = efforts
        self._context.publish(self._writer.serialized(data))
        if len(self._commanded):
            self._commanded[:] = efforts[self._command_order]
            self._context.publish_commands(self._command)

    # The native thread.

    def ready(self, in_use: FeedforwardCall | None) -> Ready | None:
        """What the next message is answered by, if it is like the last; None if not known.

        Args:
            in_use: what the native thread goes on with meanwhile, and nobody else may write.
        """
        if self._unsettled:
            with suppress(InputError, ModelError):  # as the next message will be told
                self._expect(in_use)
        call, others = self._call, self._others.interval(self._settings)
        if call is None or self._unsettled or others is None or self._safety.active:
            return None
        return Ready(
            call,
            self._writer,
            self._measured.known(self._reader.forms, self._joints),
            self._measured.kept(self._joints),
            self._settings,
            self._timeout,
            self._needs_others,
            others,
        )

    def _expect(self, in_use: FeedforwardCall | None) -> None:
        """Settle for messages like the last ones, so that the next need not wait for it."""
        joints = self._joints or self._measured.expected(self._reader.forms)
        if joints:
            now = self._context.now()
            call = self._settle(joints, now, in_use)
            if self._needs_others and call is not in_use:
                self._others.fill(call, now, self._timeout, self._settings)

    def stage(self, call: FeedforwardCall) -> tuple[Staged, tuple[int, int]] | None:
        """The newest of the other topics for a call, and its times; None if it is of no use."""
        others = self._others.interval(self._settings)
        if call is not self._call or self._unsettled or others is None:
            return None
        staged = Staged(call)
        self._others.fill(staged, self.latest, 0, self._settings)
        return staged, others

    # Which kernel.

    def _settle(
        self, joints: Joints, now: int, in_use: FeedforwardCall | None = None
    ) -> FeedforwardCall:
        """The call that settings and joints want; while it is being made, one as good as it."""
        settings = self._settings
        wanted: Joints | None = None
        if settings.acceleration_source == "estimate":
            wanted = joints
        elif settings.acceleration_source == "reference":
            wanted = self._others.acceleration_joints(now, self._timeout)
        kind = joints, wanted, settings.external_wrench
        making = self._calls.make(kind, settings.terms)
        if not making.done():
            if self._call is not None and kind == self._kind:
                return self._call  # of other terms, or of another load: better than none
            raise RefusalError(Reason.NOT_READY, "the kernel for these joints is being made")
        call = result_of(making)
        if call is in_use:
            call = self._calls.another(kind, settings.terms)
        if self._start is not None and call is not self._call:
            call.start_from(self._start)
        self._start = call.guess
        call.limit[:] = largest_efforts(self._robot, settings)
        call.searches, call.max_condition_number = False, settings.max_condition_number
        call.acceleration[:] = 0.0
        call.base_acceleration[:] = 0.0
        self._call, self._joints, self._kind, self._unsettled = call, joints, kind, False
        return call

    def _likely_kind(self) -> Kind | None:
        """What the next message will most likely need: as the last one, or all joints."""
        if self._kind is not None:
            return self._kind
        with suppress(InputError):  # where joints of one coordinate do not determine the others
            joints = self._robot.determining_joints(self._robot.independent_joint_names)
            estimated = self._settings.acceleration_source == "estimate"
            return joints, joints if estimated else None, self._settings.external_wrench
        return None

    def prepare(self, robot: Robot) -> Prepared | None:
        """Make what will be needed when another robot takes over, compiled; in any thread."""
        kind = self._likely_kind()
        if kind is None:
            return None
        with suppress(InputError):  # the other robot has other joints
            return prepare_call(robot, kind, self._settings.terms)
        return None

    def _take_over(self, before: Responder) -> None:
        """Go on from what was heard, and with the old kernel until there is a new one."""
        self._reader = before._reader
        same = before._robot.joint_names == self._robot.joint_names
        if same and before._start is not None and len(before._start) == self._robot.nq:
            self._start = before._start
        if before._robot.description is not self._robot.description:
            return  # what was heard may mean something else
        self._measured, self._others = before._measured, before._others
        self._safety = before._safety
        self._call, self._joints, self._kind = before._call, before._joints, before._kind
        self.latest = before.latest

    # The other topics.

    def on_reference(self, message: Any) -> None:
        """Keep the acceleration of a JointTrajectory's first point."""
        with self._counted():
            if self._others.take_reference(message, self._present(), self._settings):
                self._unsettled = True

    def on_base_state(self, message: Any) -> None:
        """Keep the pose and twist of the floating base from an Odometry message."""
        with self._counted():
            self._others.take_base_state(message, self._present(), self._settings)

    def on_external_wrench(self, message: Any) -> None:
        """Keep the wrench that acts on a link, from a WrenchStamped message."""
        with self._counted():
            self._others.take_wrench(message, self._present())

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except (InputError, ModelError) as error:
            self._context.refusals.add(refusal(error))

    def _present(self) -> int:
        """The time [ns]; where it has jumped back, all that was heard is from the future."""
        now = self._context.now()
        if now < self.latest - JUMP:
            self.forget()
        self.latest = now
        return now
