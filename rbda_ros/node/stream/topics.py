"""The topics of the node: joint states and what goes with them in, efforts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rbda_ros.errors import InputError, ModelError, one_line
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.node.model_builder import ModelBuilder
from rbda_ros.node.refusals import Refusals, refusal, stale_states
from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.command_arrays import CommandArrays
from rbda_ros.node.stream.command_topic import TOPIC, CommandTopic
from rbda_ros.node.stream.completed_states import CompletedStates
from rbda_ros.node.stream.context import Context
from rbda_ros.node.stream.external_effort import ExternalEffort
from rbda_ros.node.stream.external_topics import ExternalTopics
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.made_calls import PreparedCalls
from rbda_ros.node.stream.meter import Meter
from rbda_ros.node.stream.native_plan import Outputs, Plan, make_plan
from rbda_ros.node.stream.native_thread import Arming, NativeThread, NoThreadError
from rbda_ros.node.stream.rates import Vector
from rbda_ros.node.stream.recent_states import RecentStates
from rbda_ros.node.stream.remembering import Remembering
from rbda_ros.node.stream.responder import JUMP, Responder
from rbda_ros.node.stream.ros_codec import RosCodec
from rbda_ros.node.thread_priority import StreamPriority
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

# Best effort matches reliable publishers too. Deep enough for joint states in several parts that
# come at the same moment, and for those at 1 kHz while the model is swapped; but what falls behind
# for good shall not answer much that is old.
NEWEST = QoSProfile(depth=30, reliability=ReliabilityPolicy.BEST_EFFORT)

Handler = Callable[[Responder, Any], None]


class Stream:
    """Publishers and subscriptions of a lifecycle node, and the feedforward between them.

    Args:
        node: the node.
        builder: makes kernels beside its executor.

    Attributes:
        topic: where efforts go.
        refusals: input that was not answered, by reason.
        meter: how often and how fast the rest was.
        external: estimates what acts from outside; None unless asked for.
        recent: the last joint states, if asked for.
        commands: what turns commands of joints into those of motors.
    """

    def __init__(self, node: Any, builder: ModelBuilder) -> None:
        self.refusals = Refusals()
        self.meter = Meter()
        self._node = node
        self._efforts = node.create_lifecycle_publisher(JointState, "~/feedforward", 10)
        self._arrays = CommandArrays(node)
        self._states: Publisher | None = None
        self._completed: CompletedStates | None = None
        self.external: ExternalEffort | None = None
        self.recent = RecentStates()
        self._remembering = Remembering(node, self.recent)
        self._subscriptions: list[Any] = []
        self._native: NativeThread | None = None
        self._priority = StreamPriority(node.get_logger())
        self._responder: Responder | None = None
        self._robot: Robot | None = None
        self._prepared = PreparedCalls()
        self.topic: str = self._efforts.topic_name
        clock = node.get_clock().handle
        self._context = Context(
            # Without asking the lifecycle: there are subscriptions only while it is active.
            publish=partial(Publisher.publish, self._efforts),
            publish_commands=self._arrays.publish_feedforward,
            answered=self._answered,
            closed=self._complete,
            now=lambda: clock.get_now().nanoseconds,
            background=builder.background,
            refusals=self.refusals,
            meter=self.meter,
            codec=RosCodec(),
        )
        self._external_topics = ExternalTopics(node, self._context.codec)
        self.commands = CommandTopic(node, self._arrays, self._context)

    def prepare(self, robot: Robot) -> None:
        """Make ready for a model of the same joints; not on the executor. Then `use` it."""
        if self._responder is not None and (made := self._responder.prepare(robot)) is not None:
            self._prepared.add(robot, made)
        self.commands.prepare(robot)

    def use(self, robot: Robot, settings: Settings) -> None:
        """Put a model in the place of the one before, between two messages."""
        before, prepared = self._responder, self._prepared.take(robot)
        responder = Responder(robot, settings, self._context, before, prepared)
        completed = self._completes(robot, settings)
        with self._replacing():
            if before is not None:
                responder.latest = before.latest
            self._robot, self._responder = robot, responder
            self.commands.use(robot, settings)
            self._offer(robot, settings, completed)
        self._withdraw()

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        responder = self._responder
        forgets = responder is not None and responder.forgets_by(settings)
        with self._changing() if forgets else self._replacing():
            if responder is not None:
                responder.apply(settings)
                self.commands.apply(settings)
                if self._robot is not None:
                    self._offer(self._robot, settings, self._completes(self._robot, settings))
        self._withdraw()
        if self._subscriptions:
            self._remembering.begin(settings.payload_window, NEWEST)
            self._priority.set(settings.realtime_priority)

    def open(self) -> None:
        """Begin to listen."""
        self._listen_to_joint_states()
        self._listen_to_commands()
        self._listen(JointTrajectory, "~/reference", self._beside(Responder.on_reference))
        self._listen(Odometry, "~/base_state", self._beside(Responder.on_base_state))
        wrench = self._beside(Responder.on_external_wrench)
        self._listen(WrenchStamped, "~/external_wrench", wrench)
        self._remembering.begin(self._node.settings.payload_window, NEWEST)
        self._priority.set(self._node.settings.realtime_priority)

    def close(self) -> None:
        """Stop listening, and forget what was heard."""
        self.commands.close()
        if self._native is not None:
            self._native.close()
            self.collect()
            self._native = None
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._priority.end()
        self._remembering.end()
        if self._responder is not None:
            self._responder.forget()
        if self.external is not None:
            self.external.forget()

    def free(self) -> None:
        """Let go of the model."""
        self._responder = self._robot = self._completed = self.external = None
        self._prepared.clear()
        self.commands.free()
        self._arrays.free()
        self._external_topics.free()
        self._withdraw()

    @property
    def kernel_state(self) -> str:
        """How efforts are computed: by machine code, or not yet."""
        return "none" if self._responder is None else self._responder.kernel_state

    def collect(self) -> None:
        """Count what the native thread has answered, and refused, by now; once a second or so."""
        if self._native is not None:
            self._native.look()
            self.meter.add_native(*self._native.answers())
        self.commands.collect()
        self._priority.tend()

    def in_use(self) -> tuple[Kernel, list[Vector]] | None:
        """What answers joint states now, and a copy of what it was given last."""
        call = None if self._responder is None else self._responder.call_in_use
        with self._changing():  # or the native thread might write meanwhile
            return None if call is None else (call.kernel, [x.copy() for x in call.inputs])

    def _listen(self, kind: Any, topic: str, handle: Handler, *, raw: bool = False) -> None:
        callback = self._guarded(topic, handle)
        made = self._node.create_subscription(kind, topic, callback, NEWEST, raw=raw)
        self._subscriptions.append(made)

    def _listen_to_joint_states(self) -> None:
        topic, handle = "joint_states", Responder.on_joint_states
        hooks = self._guarded(topic, handle), self._hear, self._arming
        try:
            if self.external is not None:
                raise NoThreadError("external efforts are estimated")
            self._native = NativeThread(topic, self._node, topic, NEWEST.depth, *hooks)
        except NoThreadError as error:
            self._node.get_logger().info(f"{topic} are answered by Python: {error}", once=True)
            self._listen(JointState, topic, handle, raw=True)

    def _listen_to_commands(self) -> None:
        """By a native thread too, if joint states have one: it goes by their last."""

        def handle(responder: Responder, data: bytes) -> None:
            self.commands.on_command(data)

        native, answer = self._native, self._guarded(TOPIC, handle)
        if native is None or not self.commands.open_native(native, NEWEST.depth, answer):
            self._listen(JointState, TOPIC, handle, raw=True)

    def _guarded(self, topic: str, handle: Handler) -> Callable[[Any], None]:
        def guarded(message: Any) -> None:
            # An exception that leaves a callback ends the executor's spin: none may.
            try:
                if self._responder is not None:
                    handle(self._responder, message)
            except Exception as error:
                if not self._node.context.ok():
                    return  # the process is ending
                self._node.get_logger().error(
                    f"{topic} not answered: {type(error).__name__}: {one_line(error)}",
                    throttle_duration_sec=1.0,
                )

        return guarded

    # The native thread.

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """While something changes that the native threads go by."""
        states = nullcontext() if self._native is None else self._native.changing()
        with self.commands.changing(), states:  # whose plan is made first: commands go by it
            yield

    @contextmanager
    def _replacing(self) -> Iterator[None]:
        """The same, but nothing that the thread of joint states uses: it goes on meanwhile."""
        states = nullcontext() if self._native is None else self._native.replacing()
        if self._native is not None:
            self._native.look()  # what was heard goes over to what comes now
        with self.commands.changing(), states:
            yield

    def _hear(self, plan: Plan, heard: Any) -> None:
        """Know what the thread knows."""
        latest, forms, state, stale, age = heard
        plan.tell(forms, self.refusals)
        if stale:
            self.refusals.add(stale_states(age), stale)
        if self._responder is not None:
            self._responder.latest = latest
            if state and self._responder.call_in_use is plan.call:
                self.commands.on_native_state(plan.call, state, latest)

    def _arming(self) -> Arming | None:
        """What the thread may go on with."""
        responder, native = self._responder, self._native
        if responder is None or native is None or self.external is not None:
            return None
        in_use = native.plan_in_use
        ready = responder.ready(None if in_use is None else in_use.call)
        if ready is None:
            return None
        commands = self._arrays.feedforward
        states = None if self._completed is None else self._states
        outputs = Outputs(
            self._efforts.handle.pointer,
            0 if commands is None else commands.handle.pointer,
            self._arrays.order,
            0 if states is None else states.handle.pointer,
            self._completed if states is not None and states.get_subscription_count() else None,
        )
        plan = make_plan(ready, outputs, native.plan)
        if plan is None:
            return None
        return plan, (responder.latest, plan.times, *ready.others)

    def _beside(self, handle: Handler) -> Handler:
        """What handles another topic, while the native thread answers joint states."""

        def handled(responder: Responder, message: Any) -> None:
            native = self._native
            if native is not None:
                native.look()  # for the time that was seen last
            if native is None or self._context.now() < responder.latest - JUMP:
                with self._changing():  # what was heard will be forgotten
                    handle(responder, message)
                return
            handle(responder, message)
            if native.plan is None:
                return
            staged = responder.stage(native.plan.call)
            if staged is None:
                with native.changing():
                    pass  # nothing more: it needs another plan
            else:
                native.put(*staged)

        return handled

    # What is published, and when.

    def _offer(self, robot: Robot, settings: Settings, completed: CompletedStates | None) -> None:
        self._arrays.offer(robot, settings)
        self._completed = completed
        self.external = self._external_topics.offer(robot, settings)

    def _withdraw(self) -> None:
        """Take back what the native thread used until now, and no plan has any more."""
        self._arrays.withdraw()
        if self._completed is None and self._states is not None:
            self._node.destroy_publisher(self._states)
            self._states = None

    def _completes(self, robot: Robot, settings: Settings) -> CompletedStates | None:
        """What completes joint states, if asked for, or where joints follow from others."""
        wanted, prefix = settings.publish_joint_states, settings.joint_prefix
        if wanted == "never" or (wanted == "auto" and not robot.tree.has_loops):
            return None
        if self._completed is not None and self._completed.is_for(robot, prefix):
            return self._completed
        if self._states is None:
            self._states = self._node.create_publisher(JointState, "~/joint_states", 10)
        publish, context = self._states.publish, self._context
        return CompletedStates(robot, prefix, publish, context.background, context.codec)

    def _answered(self, call: FeedforwardCall, data: bytes, states: JointStates) -> None:
        self.commands.on_state(call)
        self._complete(call, data, states)
        if self.external is not None:
            try:
                self.external.on_state(call, data, states, self._context.now())
            except (InputError, ModelError) as error:
                self.refusals.add(refusal(error))

    def _complete(
        self, call: FeedforwardCall, data: bytes, states: JointStates, moving: bool = True
    ) -> None:
        publisher, completed = self._states, self._completed
        # Nobody listens, nobody pays.
        if completed is not None and publisher is not None and publisher.get_subscription_count():
            completed.on_state(call, data, states, moving)
