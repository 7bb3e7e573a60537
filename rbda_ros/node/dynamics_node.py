"""The lifecycle node ``dynamics``: when there is a model, and when it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future as BuildFuture
from functools import wraps
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import String

from rbda_ros.cluster_tree.cancelling import CancelledWorkError
from rbda_ros.control.model_builder import ModelBuilder, ModelSource
from rbda_ros.errors import ModelError, one_line, readable, shown
from rbda_ros.node import parameters
from rbda_ros.node.diagnostics import ControllerCheck, Diagnostics, SelfCheck
from rbda_ros.node.services.advertise import advertise
from rbda_ros.node.slow_services import SlowServices, guard_change_state
from rbda_ros.node.stream_topics import Topics
from rbda_ros.robot import Robot

PATIENCE = 10.0
"""How long the end waits for what is under way: until its next step [s]."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

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
        stream: its topics.
        builder: makes models and kernels beside its executor.
        slow_services: those that are answered beside it.
        self_check: compares machine code while it runs.
        controller_check: compares the joints of a controller with ours.
        diagnostics: tells of all this.
        given_up: completes with a message if the node cannot start with its parameters.
        on_model: called when a model has come into use; for whoever owns the process.

    Raises:
        ParameterError: a parameter it was started with cannot be used.
    """

    slow_services: SlowServices | None = None  # not before the parameters are found good

    def __init__(self, **kwargs: Any) -> None:
        self.builder = ModelBuilder()
        self._destroyed = False
        self._declaring = False
        # Maps by joint may be set in their old form, which is declared nowhere else.
        super().__init__("dynamics", allow_undeclared_parameters=True, **kwargs)
        self.settings = parameters.declare(self)
        self.add_on_set_parameters_callback(self._on_parameters)
        self.robot: Robot | None = None
        self.active = False
        self.given_up: Future = Future()
        self.on_model: Callable[[], None] = lambda: None

        self._source: ModelSource | None = None  # the newest that was not refused
        self._built: BuildFuture[Robot] | None = None  # for on_configure
        self._starting = False
        self._generation = 0  # increases when the model is released
        self.stream = Topics(self, self.builder)
        self._descriptions = self.create_subscription(
            String, "robot_description", self._on_description, LATCHED
        )
        self.slow_services = advertise(self)
        self.self_check = SelfCheck(self)
        self.controller_check = ControllerCheck(self)
        self.diagnostics = Diagnostics(self)
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

    def finish_work(self, patience: float) -> bool:
        """Cancel all that takes long; whether its threads have come to rest within that time [s].

        Nothing is destroyed. Call it when the executor does not spin any more.
        """
        deadline = time.monotonic() + patience
        if self.slow_services is not None:
            self.stream.close()  # first: whatever else takes long, motors get their last message
        parts = [part for part in (self.slow_services, self.builder) if part is not None]
        for part in parts:
            part.cancel()
        return all([part.wait(deadline) for part in parts])

    def destroy_node(self) -> None:
        """Free everything but what a thread still uses; at once where that was waited for."""
        if self._destroyed:
            return  # rclpy 9 destroys nodes when it shuts down
        self._destroyed = True
        if self.finish_work(PATIENCE):
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
        self._await(source, self.builder.build(source, self.stream.prepare))

    def _await(self, source: ModelSource, building: BuildFuture[Robot]) -> None:
        generation = self._generation

        def done(building: BuildFuture[Robot]) -> None:
            if not building.cancelled() and self.executor is not None:
                self.executor.create_task(self._finish, source, generation, building)

        building.add_done_callback(done)

    def _finish(self, source: ModelSource, generation: int, building: BuildFuture[Robot]) -> None:
        if generation != self._generation:
            return  # the node was cleaned up meanwhile
        robot = self._outcome(building)
        if isinstance(robot, CancelledWorkError):
            return  # a newer one is being built
        if isinstance(robot, BaseException):
            self._refuse(source, robot)
            return
        if self.robot is not None:
            links = robot.spanning_tree.links
            carried = {n: load for n, load in self.robot.payloads.items() if load.link in links}
            if robot.payloads != carried:  # this build does not carry them, or others by now
                self._await(source, self.builder.load(robot, carried, self.stream.prepare))
                return
            for name in self.robot.payloads.keys() - carried.keys():
                self.get_logger().warning(
                    f"load '{shown(name)}' is off: the new model lacks its link"
                )
            self._use(robot)
            self.get_logger().info(f"the model is now '{shown(robot.name)}'")
        elif self._starting:
            self._starting = False
            self._built = building
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()

    def _outcome(self, building: BuildFuture[Robot]) -> Robot | BaseException:
        """The robot, or why there is none.

        Not raised: what a future holds would then hold the frames that hold the future, and half
        a model would stay with them.
        """
        if (error := building.exception()) is not None:
            return error
        robot = building.result()
        self._declaring = True
        try:
            settings = parameters.declare_joints(self, robot, self.settings)
            parameters.check_model(settings, robot)
        except parameters.ParameterError as refused:
            return refused
        finally:
            self._declaring = False
        self.settings = settings
        return robot

    def _refuse(self, source: ModelSource, error: BaseException) -> None:
        if self._source == source:
            self._source = None
        reason = _reason(error)
        if self.robot is not None:
            self.get_logger().error(
                f"new robot_description refused, '{shown(self.robot.name)}' stays: {reason}"
            )
        elif source.robot_description == self.settings.robot_description:
            self.given_up.set_result(f"robot_description cannot be used: {reason}")
        else:
            self.get_logger().error(
                f"robot_description refused: {reason}; waiting for another on "
                f"{self._descriptions.topic_name}"
            )

    def replace_model(self, old: Robot, new: Robot) -> Robot | None:
        """Put a model in the place of another, if that is the one in use; on the executor only.

        Returns:
            The model that was in use, ``old`` or another.
        """
        found = self.robot
        if found is old:
            self._use(new)
        return found

    def _use(self, robot: Robot) -> None:
        """Swap the model in, between two messages."""
        self.robot = robot
        parameters.undeclare_joints(self, robot)
        self.stream.use(robot, self.settings)
        self.on_model()
        for warning in robot.warnings:
            self.get_logger().warning(readable(warning))

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
        robot = self._outcome(built)
        if isinstance(robot, BaseException):
            self.get_logger().error(f"robot_description cannot be used: {_reason(robot)}")
            return TransitionCallbackReturn.FAILURE
        self._use(robot)
        name, count = shown(robot.name), len(robot.joint_names)
        self.get_logger().info(f"configured for '{name}', {count} joints")
        return super().on_configure(state)

    def _prepare(self) -> BuildFuture[Robot] | None:
        """Begin to build what to configure from: what came by topic, else the parameter."""
        if self.robot is not None:
            return None
        by_topic = self._source.robot_description if self._source else ""
        description = by_topic or self.settings.robot_description
        if not description:
            return None
        source = ModelSource.of(description, self.settings)
        if self._built is None or source != self._source:  # else it is under way
            self._source = source
            self._built = self.builder.build(source, self.stream.prepare)
        return self._built

    @_reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to answer."""
        self.stream.open()
        self.controller_check.begin(self.settings)
        result = super().on_activate(state)
        self.active = result == TransitionCallbackReturn.SUCCESS
        self.get_logger().info(f"active: efforts on {self.stream.topic}")
        return result

    @_reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop answering; the model stays."""
        self._stop()
        return super().on_deactivate(state)

    @_reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release the model."""
        self._free()
        return super().on_cleanup(state)

    @_reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything."""
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
        self.stream.close()
        self.controller_check.end()

    def _free(self) -> None:
        self.robot = self._built = None
        self._generation += 1
        self.stream.free()

    def _on_parameters(self, changed: list[Any]) -> SetParametersResult:
        if self._declaring:
            return SetParametersResult(successful=True)  # read by whoever declares them
        configured = self.robot is not None or self._built is not None
        settings, result = parameters.change(self, self.settings, changed, self.robot, configured)
        if result.successful:
            if settings.robot_description != self.settings.robot_description:
                self._source = None  # the parameter is newer than what came by topic
            before, self.settings = self.settings, settings
            self.stream.apply(settings)
            compared = ("command_joints", "command_controller", "joint_prefix")
            if self.active and any(getattr(settings, n) != getattr(before, n) for n in compared):
                self.controller_check.begin(settings)
        return result


def _reason(error: BaseException) -> str:
    """Why a model could not be built; a bug of ours keeps the name of its exception."""
    known = isinstance(error, ModelError | parameters.ParameterError)
    name = "" if known else f"{type(error).__name__}: "
    return name + one_line(error)
