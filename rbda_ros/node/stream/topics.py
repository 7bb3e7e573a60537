"""The topics of the node: joint states and what goes with them in, efforts out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rbda_ros.errors import InputError, ModelError, one_line
from rbda_ros.node.model_builder import ModelBuilder
from rbda_ros.node.parameters import Settings
from rbda_ros.node.refusals import Refusals, refusal
from rbda_ros.node.stream.completed_states import CompletedStates
from rbda_ros.node.stream.external_effort import ExternalEffort
from rbda_ros.node.stream.joint_commands import JointCommands
from rbda_ros.node.stream.meter import Meter
from rbda_ros.node.stream.recent_states import RecentStates
from rbda_ros.node.stream.responder import Context, Prepared, Responder
from rbda_ros.node.stream.ros_codec import RosCodec
from rbda_ros.node.stream.wire import Vector
from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

# Best effort matches reliable publishers too. Deep enough for joint states in several parts that
# come at the same moment; what is too old by the time it is taken is refused.
NEWEST = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

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
    """

    def __init__(self, node: Any, builder: ModelBuilder) -> None:
        self.refusals = Refusals()
        self.meter = Meter()
        self._node = node
        self._efforts = node.create_lifecycle_publisher(JointState, "~/feedforward", 10)
        self._motors = node.create_lifecycle_publisher(JointState, "~/motor_commands", 10)
        self._arrays: dict[str, Publisher] = {}  # of commands, by field
        self._source = ""  # of the commands
        self._states: Publisher | None = None
        self._completed: CompletedStates | None = None
        self._joint_commands: JointCommands | None = None
        self.external: ExternalEffort | None = None
        self.recent = RecentStates()
        self._remembering: Any = None  # a subscription
        self._observed: list[Publisher] = []
        self._array_order: list[int] = []
        self._subscriptions: list[Any] = []
        self._responder: Responder | None = None
        self._robot: Robot | None = None
        self._prepared: tuple[Robot | None, Prepared | None] = None, None
        self.topic: str = self._efforts.topic_name
        clock = node.get_clock().handle
        self._context = Context(
            # Without asking the lifecycle: there are subscriptions only while it is active.
            publish=partial(Publisher.publish, self._efforts),
            publish_commands=self._publish_commands,
            answered=self._answered,
            now=lambda: clock.get_now().nanoseconds,
            background=builder.background,
            refusals=self.refusals,
            meter=self.meter,
            codec=RosCodec(),
        )

    def prepare(self, robot: Robot) -> None:
        """Make ready for a model of the same joints; not on the executor. Then `use` it."""
        if self._responder is not None:
            self._prepared = robot, self._responder.prepare(robot)

    def use(self, robot: Robot, settings: Settings) -> None:
        """Put a model in the place of the one before, between two messages."""
        for_robot, prepared = self._prepared
        self._responder = Responder(
            robot,
            settings,
            self._context,
            self._responder,
            prepared if for_robot is robot else None,
        )
        self._prepared = None, None
        self._robot = robot
        self._joint_commands = JointCommands(
            robot,
            settings,
            partial(Publisher.publish, self._motors),
            self._publish_motor_arrays,
        )
        self._offer_commands(settings)
        self._offer_states(settings)
        self._offer_external(settings)

    def apply(self, settings: Settings) -> None:
        """Go on with other settings."""
        if self._responder is not None:
            self._responder.apply(settings)
            if self._joint_commands is not None:
                self._joint_commands.apply(settings)
            self._offer_commands(settings)
            self._offer_states(settings)
            self._offer_external(settings)
        if self._subscriptions:
            self._remember(settings.payload_window)

    def open(self) -> None:
        """Begin to listen."""
        self._listen(JointState, "joint_states", Responder.on_joint_states, raw=True)
        self._listen(JointTrajectory, "~/reference", Responder.on_reference)
        self._listen(Odometry, "~/base_state", Responder.on_base_state)
        self._listen(WrenchStamped, "~/external_wrench", Responder.on_external_wrench)
        self._listen(JointState, "~/joint_commands", self._on_joint_commands, raw=True)
        self._remember(self._node.settings.payload_window)

    def close(self) -> None:
        """Stop listening, and forget what was heard."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._remember(0.0)
        if self._responder is not None:
            self._responder.forget()
        if self._joint_commands is not None:
            self._joint_commands.forget()
        if self.external is not None:
            self.external.forget()

    def free(self) -> None:
        """Let go of the model."""
        self._responder = self._robot = self._completed = self._joint_commands = None
        self.external = None
        for publisher in (*self._arrays.values(), *self._observed, self._states):
            if publisher is not None:
                self._node.destroy_publisher(publisher)
        self._arrays.clear()
        self._observed.clear()
        self._states = None

    @property
    def kernel_state(self) -> str:
        """How efforts are computed: by machine code, or not yet."""
        return "none" if self._responder is None else self._responder.kernel_state

    def _listen(self, kind: Any, topic: str, handle: Handler, *, raw: bool = False) -> None:
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

        self._subscriptions.append(
            self._node.create_subscription(kind, topic, guarded, NEWEST, raw=raw)
        )

    def _remember(self, window: float) -> None:
        """Remember joint states for some time, by a subscription of their own; 0 for none [s]."""
        self.recent.window = window
        if window and self._remembering is None:
            self._remembering = self._node.create_subscription(
                JointState,
                "joint_states",
                lambda data: self.recent.take(data, self._context.now()),
                NEWEST,
                raw=True,
            )
        elif not window and self._remembering is not None:
            self._node.destroy_subscription(self._remembering)
            self._remembering = None
            self.recent.forget()

    def _offer_commands(self, settings: Settings) -> None:
        """The topics of commands are not there unless asked for."""
        self._source = settings.command_source
        fields = (
            ("effort",) if self._source == "feedforward" else ("position", "velocity", "effort")
        )
        wanted = fields if settings.command_joints else ()
        for field in [field for field in self._arrays if field not in fields]:
            self._node.destroy_publisher(self._arrays.pop(field))
        for field in wanted:
            if field not in self._arrays:
                publisher = self._node.create_publisher(
                    Float64MultiArray, f"~/{field}_commands", 10
                )
                self._arrays[field] = publisher
        if self._robot is not None:
            names = self._robot.actuated_joint_names
            self._array_order = [names.index(name) for name in settings.command_joints]

    def _offer_states(self, settings: Settings) -> None:
        """Joint states are completed if asked for, or where joints follow from others."""
        robot = self._robot
        wanted = robot is not None and (
            settings.publish_joint_states == "always"
            or (settings.publish_joint_states == "auto" and robot.tree.has_loops)
        )
        self._completed = None
        if robot is None or not wanted:
            if self._states is not None:
                self._node.destroy_publisher(self._states)
                self._states = None
            return
        if self._states is None:
            self._states = self._node.create_publisher(JointState, "~/joint_states", 10)
        self._completed = CompletedStates(
            robot,
            settings.joint_prefix,
            self._states.publish,
            self._context.background,
            self._context.codec,
        )

    def _offer_external(self, settings: Settings) -> None:
        """What acts from outside is estimated if asked for."""
        for publisher in self._observed:
            self._node.destroy_publisher(publisher)
        self._observed.clear()
        self.external = None
        if self._robot is None or not settings.publish_external_effort:
            return
        efforts = self._node.create_publisher(JointState, "~/external_effort", 10)
        self._observed.append(efforts)
        wrenches = efforts
        if settings.contact_end_effector:
            wrenches = self._node.create_publisher(WrenchStamped, "~/estimated_wrench", 10)
            self._observed.append(wrenches)
        self.external = ExternalEffort(
            self._robot, settings, efforts.publish, wrenches.publish, self._context.codec
        )

    def _answered(self, call: FeedforwardCall, data: bytes) -> None:
        if self._joint_commands is not None:
            self._joint_commands.on_state(call, self._context.now())
        states = self._states
        # Nobody listens, nobody pays.
        if self._completed is not None and states is not None and states.get_subscription_count():
            self._completed.on_state(call, data)
        if self.external is not None:
            try:
                self.external.on_state(call, data, self._context.now())
            except (InputError, ModelError) as error:
                self.refusals.add(refusal(error))

    def _on_joint_commands(self, responder: Responder, data: bytes) -> None:
        try:
            if self._joint_commands is not None:
                self._joint_commands.on_command(data, self._context.now())
        except (InputError, ModelError) as error:
            self.refusals.add(refusal(error))

    def _publish_commands(self, commands: Float64MultiArray) -> None:
        if self._source == "feedforward" and "effort" in self._arrays:
            self._arrays["effort"].publish(commands)

    def _publish_motor_arrays(self, commands: dict[str, Vector]) -> None:
        if self._source != "joint_commands" or not self._array_order:
            return
        for field, values in commands.items():
            data = values[self._array_order].tolist()
            self._arrays[field].publish(Float64MultiArray(data=data))
