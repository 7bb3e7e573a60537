"""The lifecycle node ``dynamics``: when there is a model, and when it answers."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Future as BuildFuture
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from rbda_ros.errors import ModelError
from rbda_ros.node import parameters, services
from rbda_ros.node.change_state import guard_change_state
from rbda_ros.node.diagnostics import Diagnostics
from rbda_ros.node.feedforward import Feedforward, Surroundings
from rbda_ros.node.meter import Meter
from rbda_ros.node.model import ModelBuilder, ModelSource, one_line
from rbda_ros.node.refusals import Refusals

if TYPE_CHECKING:
    from rbda_ros.robot import Robot

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Best effort matches reliable publishers too. Deep enough for joint states in several parts that
# come at the same moment; what is too old by the time it is taken is refused.
NEWEST = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

Transition = Callable[["DynamicsNode", LifecycleState], TransitionCallbackReturn]


def _reported(transition: Transition) -> Transition:
    """Report what goes wrong in a transition; rclpy would turn it into ERROR in silence."""

    @wraps(transition)
    def run(node: DynamicsNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception as error:
            node.get_logger().error(
                f"{transition.__name__} failed: {type(error).__name__}: {one_line(error)}"
            )
            return TransitionCallbackReturn.ERROR

    return run


class DynamicsNode(LifecycleNode):
    """Holds one model; serves it over services, and answers joint states with efforts.

    Attributes:
        robot: the model in use; None while unconfigured.
        active: whether joint states and services are answered.
        settings: the parameters.
        refusals: input that was not answered, by reason.
        meter: how often and how fast the rest was.
        given_up: completes with a message if the node cannot start with its parameters.

    Raises:
        ParameterError: a parameter it was started with cannot be used.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("dynamics", **kwargs)
        self.settings = parameters.declare(self)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.robot: Robot | None = None
        self.active = False
        self.refusals = Refusals()
        self.meter = Meter()
        self.given_up: Future = Future()

        self._builder = ModelBuilder()
        self._source: ModelSource | None = None  # the newest that was not refused
        self._built: BuildFuture[Robot] | None = None  # for on_configure
        self._starting = False
        self._generation = 0  # counts up when the model is let go
        self._feedforward: Feedforward | None = None
        self._commands: Publisher | None = None
        self._inputs: list[Any] = []
        self._efforts = self.create_lifecycle_publisher(JointState, "~/feedforward", 10)
        self._descriptions = self.create_subscription(
            String, "robot_description", self._on_description, LATCHED
        )
        self._slow_services = services.advertise(self)
        Diagnostics(self)
        guard_change_state(self, self._prepare)

    def start(self) -> None:
        """Autostart: go to active as soon as there is a description. Call once it spins."""
        if not self.settings.autostart:
            return
        self._starting = True
        if self.settings.robot_description:
            self._begin(ModelSource.of(self.settings.robot_description, self.settings))
        elif self._source is not None:
            self._begin(self._source)
        else:
            self.get_logger().info(
                f"waiting for a robot_description on {self._descriptions.topic_name}"
            )

    def destroy_node(self) -> None:
        """Free everything."""
        self._slow_services.close()
        self._builder.close()
        super().destroy_node()

    # The model: from a description to one that is in use.

    def _on_description(self, message: String) -> None:
        source = ModelSource.of(message.data, self.settings)
        if source == self._source:
            return
        if self.robot is None and not self._starting:
            self._source = source  # for on_configure
        else:
            self._begin(source)

    def _begin(self, source: ModelSource) -> None:
        """Build beside the executor; ``_finish`` runs on it afterwards."""
        self._source = source
        self._await(source, self._builder.build(source))

    def _await(self, source: ModelSource, building: BuildFuture[Robot]) -> None:
        generation = self._generation

        def done(building: BuildFuture[Robot]) -> None:
            if not building.cancelled() and self.executor is not None:
                self.executor.create_task(self._finish, source, generation, building)

        building.add_done_callback(done)

    def _finish(self, source: ModelSource, generation: int, building: BuildFuture[Robot]) -> None:
        if generation != self._generation:
            return  # the node was cleaned up meanwhile
        try:
            robot = building.result()
            parameters.check_model(self.settings, robot)
        except Exception as error:
            self._refuse(source, error)
            return
        if self.robot is not None:
            links = robot.tree.spanning.links
            kept = {n: load for n, load in self.robot.payloads.items() if load.link in links}
            if robot.payloads != kept:  # this build does not carry them, or others by now
                self._await(source, self._builder.load(robot, kept))
                return
            for name in self.robot.payloads.keys() - kept.keys():
                self.get_logger().warning(f"load '{name}' is off: the new model lacks its link")
            self._use(robot)
            self.get_logger().info(f"the model is now '{robot.name}'")
        elif self._starting:
            self._starting = False
            self._built = building
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()

    def _refuse(self, source: ModelSource, error: Exception) -> None:
        if self._source == source:
            self._source = None
        reason = _reason(error)
        if self.robot is not None:
            self.get_logger().error(
                f"new robot_description refused, '{self.robot.name}' stays: {reason}"
            )
        elif source.robot_description == self.settings.robot_description:
            self.given_up.set_result(f"robot_description cannot be used: {reason}")
        else:
            self.get_logger().error(
                f"robot_description refused: {reason}; waiting for another on "
                f"{self._descriptions.topic_name}"
            )

    def replace_model(self, old: Robot, new: Robot) -> bool:
        """Put a model in the place of another, if that is still in use. On the executor only."""
        if self.robot is not old:
            return False
        self._use(new)
        return True

    def _use(self, robot: Robot) -> None:
        """Swap the model in, between two messages."""
        # Else looking for garbage in all that a model is made of takes 50 ms now and then.
        gc.freeze()
        clock = self.get_clock().handle
        self.robot = robot
        around = Surroundings(
            # Without asking the lifecycle: there are subscriptions only while it is active.
            publish=partial(Publisher.publish, self._efforts),
            publish_commands=self._publish_commands,
            now=lambda: clock.get_now().nanoseconds,
            aside=self._builder.aside,
            refusals=self.refusals,
            meter=self.meter,
        )
        self._feedforward = Feedforward(robot, self.settings, around, self._feedforward)
        for warning in robot.warnings:
            self.get_logger().warning(warning)

    def _publish_commands(self, commands: Float64MultiArray) -> None:
        if self._commands is None:  # off unless asked for
            self._commands = self.create_publisher(Float64MultiArray, "~/effort_commands", 10)
        self._commands.publish(commands)

    @property
    def kernel_state(self) -> str:
        """How efforts are computed: by machine code, or not yet."""
        return "none" if self._feedforward is None else self._feedforward.kernel_state

    # Lifecycle.

    @_reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take the model that was built for it; it may have been refused."""
        built, self._built = self._built or self._prepare(), None
        self._starting = False
        if built is None:
            self.get_logger().error(
                "no robot_description: set the parameter, or publish it on "
                f"{self._descriptions.topic_name}, and configure again"
            )
            return TransitionCallbackReturn.FAILURE
        try:
            robot = built.result()
            parameters.check_model(self.settings, robot)
        except Exception as error:
            self.get_logger().error(f"robot_description cannot be used: {_reason(error)}")
            return TransitionCallbackReturn.FAILURE
        self._use(robot)
        self.get_logger().info(f"configured for '{robot.name}', {len(robot.joint_names)} joints")
        return super().on_configure(state)

    def _prepare(self) -> BuildFuture[Robot] | None:
        """Begin to build what to configure from: what came by topic, else the parameter."""
        if self.robot is not None:
            return None
        by_topic = self._source.robot_description if self._source else ""
        description = by_topic or self.settings.robot_description
        if not description:
            return None
        self._source = ModelSource.of(description, self.settings)
        self._built = self._builder.build(self._source)
        return self._built

    @_reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to answer."""
        self._inputs = [
            self.create_subscription(
                JointState, "joint_states", self._on_joint_states, NEWEST, raw=True
            ),
            self.create_subscription(JointTrajectory, "~/reference", self._on_reference, NEWEST),
            self.create_subscription(Odometry, "~/base_state", self._on_base_state, NEWEST),
            self.create_subscription(WrenchStamped, "~/external_wrench", self._on_wrench, NEWEST),
        ]
        result = super().on_activate(state)
        self.active = result == TransitionCallbackReturn.SUCCESS
        self.get_logger().info(f"active: efforts on {self._efforts.topic_name}")
        return result

    @_reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering; the model stays."""
        self._stop()
        return super().on_deactivate(state)

    @_reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of the model."""
        self._free()
        return super().on_cleanup(state)

    @_reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of everything."""
        self._stop()
        self._free()
        return super().on_shutdown(state)

    @_reported
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Back to unconfigured, from where the node can be configured again."""
        self._stop()
        self._free()
        return super().on_error(state)

    def _stop(self) -> None:
        self.active = False
        if self._feedforward is not None:
            self._feedforward.forget()
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs = []

    def _free(self) -> None:
        self.robot = self._feedforward = self._built = None
        self._generation += 1
        if self._commands is not None:
            self.destroy_publisher(self._commands)
            self._commands = None

    # Callbacks.

    def _on_joint_states(self, serialized: bytes) -> None:
        self._guarded("joint_states", Feedforward.on_joint_states, serialized)

    def _on_reference(self, message: JointTrajectory) -> None:
        self._guarded("reference", Feedforward.on_reference, message)

    def _on_base_state(self, message: Odometry) -> None:
        self._guarded("base_state", Feedforward.on_base_state, message)

    def _on_wrench(self, message: WrenchStamped) -> None:
        self._guarded("external_wrench", Feedforward.on_external_wrench, message)

    def _guarded(
        self, topic: str, handle: Callable[[Feedforward, Any], None], message: Any
    ) -> None:
        # An exception that leaves a callback ends the executor's spin: none may.
        try:
            if self.active and self._feedforward is not None:
                handle(self._feedforward, message)
        except Exception as error:
            if not self.context.ok():
                return  # the process is ending
            self.get_logger().error(
                f"{topic} not answered: {type(error).__name__}: {one_line(error)}",
                throttle_duration_sec=1.0,
            )

    def _on_parameters(self, changed: list[Any]) -> SetParametersResult:
        settings, result = parameters.change(self.settings, changed, self.robot)
        if settings.robot_description != self.settings.robot_description:
            self._source = None  # the parameter is newer than what came by topic
        self.settings = settings
        if self._feedforward is not None:
            self._feedforward.apply(settings)
        return result


def _reason(error: Exception) -> str:
    """Why a model could not be built; a bug of ours keeps the name of its exception."""
    known = isinstance(error, ModelError | parameters.ParameterError)
    name = "" if known else f"{type(error).__name__}: "
    return name + one_line(error)
