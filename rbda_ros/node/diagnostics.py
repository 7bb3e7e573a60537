"""Diagnostics of the node: its own health, once a second on /diagnostics, and its checks.

While it runs, the node compares its machine code, and what was read from disk, with fresh traces,
and the order of a controller's joints with its own.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import InvalidServiceNameException

from rbda_ros.control.rejections import Reason
from rbda_ros.control.settings import Settings
from rbda_ros.control.stream import Reading
from rbda_ros.errors import listed, shown
from rbda_ros.robot import Robot
from rbda_ros.robot.machine_code_check import (
    MachineCodeError,
    check_kernel,
    check_machine_code,
    reassembled,
)

Failure = tuple[list[str], Robot]
"""Sentences about what differed, and the robot to go on with."""
OFF_LOOKS_AGAIN = 1.0
"""How often to look whether the parameter has switched the check on [s]."""


class SelfCheck:
    """Compares the machine code of a dynamics node, in the background.

    Attributes:
        failed: what differed, ever; empty while all is well.
        checks: how many there were.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.failed = ""
        self.checks = 0
        self._busy = False
        self._assembly_checked: Callable[[], Robot | None] = lambda: None
        self._timer = node.create_timer(
            OFF_LOOKS_AGAIN, self._begin, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def _begin(self) -> None:
        node = self._node
        period = node.settings.self_check_period
        wanted = int((period or OFF_LOOKS_AGAIN) * 1e9)
        if self._timer.timer_period_ns != wanted:
            self._timer.timer_period_ns = wanted
        robot = node.robot
        if not period or robot is None or not node.active or self._busy:
            return
        self._busy = True
        live = node.stream.in_use()
        checking = node.builder.background(lambda: self._check(robot, live))
        checking.add_done_callback(lambda done: self._then(robot, done))

    def _then(self, robot: Robot, done: Future[Failure | None]) -> None:
        """Go on, on the executor, if something was found; in whatever thread this is."""
        self._busy = False
        if done.cancelled() or done.exception() is not None or done.result() is None:
            return  # the node ends, or all is well
        if self._node.executor is not None:
            self._node.executor.create_task(self._take_over, robot, done.result())

    def _check(self, robot: Robot, live: Any) -> Failure | None:
        self.checks += 1
        trusted = robot
        said = check_machine_code(robot, self.checks)
        if live is not None and live[0].compiled and (wrong := check_kernel(*live)):
            said.append(wrong)
        if self._assembly_checked() is not robot:  # once: it does not change
            fresh = reassembled(robot)
            if fresh is not None:
                said.append("the loops on disk are not those of the description")
                trusted = fresh
            self._assembly_checked = weakref.ref(robot)
        return (said, trusted) if said else None

    def _take_over(self, robot: Robot, failure: Failure) -> None:
        said, trusted = failure
        self.failed = "; ".join(said)
        self._node.get_logger().error(
            f"self-check: {self.failed}; the virtual machine takes over, restart the node and "
            "look at the memory of this computer, and at who may write to its cache folder"
        )
        self._node.replace_model(robot, trusted.interpreted(MachineCodeError(self.failed)))


ASK_AGAIN = 1.0
"""How often a controller that does not answer is asked again [s]."""


class ControllerCheck:
    """Compares ``command_joints`` with the parameter ``joints`` of a controller.

    A bare array has no names: in another order, each effort reaches another motor.

    Args:
        node: the dynamics node.

    Attributes:
        problem: what differs, and what to change; empty where nothing is known to.
        finding: the state of the comparison, for diagnostics; empty where none was asked for.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._client: Any = None
        self._timer: Any = None
        self._asked: Any = None
        self._controller = ""
        self.problem = self.finding = ""

    def begin(self, settings: Settings) -> None:
        """Ask the controller for its joints, as soon as it answers."""
        self.end()
        self._controller = settings.command_controller
        if not self._controller or not settings.command_joints:
            return
        name = f"{self._controller.rstrip('/')}/get_parameters"
        try:
            self._client = self._node.create_client(GetParameters, name)
        except InvalidServiceNameException:
            self.problem = self.finding = (
                f"command_controller: '{shown(self._controller)}' is no name of a node; give one "
                "such as /feedforward"
            )
            self._node.get_logger().error(self.problem)
            return
        self.finding = f"waiting for {self._controller}"
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._node.create_timer(ASK_AGAIN, self._ask, clock=steady)
        self._ask()

    def end(self) -> None:
        """Stop asking, and forget what was found."""
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        if self._client is not None:
            self._node.destroy_client(self._client)
        self._timer = self._client = self._asked = None
        self.problem = self.finding = ""

    def _ask(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._client.remove_pending_request(self._asked)  # it ended before it answered
        if not self._client.service_is_ready():
            return
        self._asked = self._client.call_async(GetParameters.Request(names=["joints"]))
        self._asked.add_done_callback(self._on_answer)

    def _on_answer(self, asked: Any) -> None:
        if asked is not self._asked or asked.cancelled():
            return
        self._node.destroy_timer(self._timer)
        self._timer = None
        values = asked.result().values if asked.exception() is None else []
        if not values or values[0].type != ParameterType.PARAMETER_STRING_ARRAY:
            self.finding = f"{self._controller} has no parameter 'joints' to compare with"
            return
        theirs = list(values[0].string_array_value)
        settings: Settings = self._node.settings
        ours = [settings.joint_prefix + name for name in settings.command_joints]
        if ours == theirs:
            self.finding = f"the same as of {self._controller}"
            return
        kind = "in another order" if sorted(ours) == sorted(theirs) else "other joints"
        self.problem = self.finding = (
            f"command_joints are {listed(ours)}, but {self._controller} has {kind}: "
            f"{listed(theirs)}; give command_joints in the order of the controller's joints"
        )
        self._node.get_logger().error(self.problem)


REPEAT = 10.0  # [s] until the log says the same again


class Diagnostics:
    """Publishes the state of a dynamics node, and logs what is wrong with it.

    Attributes:
        level, message: that were published last.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.level, self.message = DiagnosticStatus.STALE, ""  # that was published last
        self._refused_before: dict[Reason, int] = {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A steady clock: with simulated time, a clock that stands still must be reported too.
        node.create_timer(1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def publish(self) -> None:
        """Publish one message about the time since the last."""
        node, stream = self._node, self._node.stream
        stream.collect()
        reading, commands = stream.stream.states.read(), stream.stream.commands.read()
        rejections = stream.rejections
        status = DiagnosticStatus(name=f"{node.get_fully_qualified_name()[1:]}: feedforward")
        model = shown(node.robot.name) if node.robot else ""
        status.hardware_id = model
        self.level, self.message = self._judge(reading, self._newly_refused())
        status.level, status.message = self.level, self.message
        values = {
            "model": model or "none",
            "active": str(node.active),
            "kernel": stream.kernel_state,
            "self-checks": str(node.self_check.checks),
            "rate [Hz]": f"{reading.rate:.1f}",
            "processing time, median [us]": _microseconds(reading.processing[0]),
            "processing time, 99th percentile [us]": _microseconds(reading.processing[1]),
            "latency, median [us]": _microseconds(reading.latency[0]),
            "latency, 99th percentile [us]": _microseconds(reading.latency[1]),
            "loop residual": _number(reading.residual, ".1e"),
            "condition number": _number(reading.condition, ".3g"),
            "saturated": str(stream.stream.states.limited + stream.stream.commands.limited),
            "answered": str(stream.stream.states.total),
            "refused": str(rejections.total),
            "lost to newer messages": str(stream.overtaken),
            **node.slow_services.progress(),
        }
        if commands.answers:
            values["motor commands, rate [Hz]"] = f"{commands.rate:.1f}"
            values["motor commands, latency, median [us]"] = _microseconds(commands.latency[0])
        if node.controller_check.finding:
            values["joints of the controller"] = node.controller_check.finding
        if rejections.contradiction is not None:
            difference, joint = rejections.contradiction
            values["largest contradiction of measurements"] = f"{difference:.3g}: {joint}"
        external = rejections.largest_external
        if node.settings.publish_external_effort and not math.isnan(external):
            threshold = node.settings.contact_threshold
            values["external effort, largest [N m, N]"] = f"{external:.3g}"
            values["contact"] = str(bool(threshold and external > threshold))
        values |= {f"refused: {reason.value}": str(n) for reason, n in rejections.counts.items()}
        if rejections.total:
            values["last refusal"] = rejections.last_message
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]

        message = DiagnosticArray(status=[status])
        message.header.stamp = node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _newly_refused(self) -> set[Reason]:
        """Reasons of the last second."""
        counts, before = self._node.stream.rejections.counts, self._refused_before
        self._refused_before = dict(counts)
        return {reason for reason, count in counts.items() if count > before.get(reason, 0)}

    def _judge(self, reading: Reading, refused: set[Reason]) -> tuple[bytes, str]:
        node, log = self._node, self._node.get_logger()
        if node.robot is None:
            return DiagnosticStatus.WARN, "no model: waiting for a robot_description"
        if node.self_check.failed:
            return DiagnosticStatus.ERROR, f"self-check: {node.self_check.failed}"
        if not node.active:
            return DiagnosticStatus.OK, "inactive"
        if node.controller_check.problem:
            return DiagnosticStatus.ERROR, node.controller_check.problem
        if reading.answers:
            refused -= {Reason.MISNAMED}  # others may share the topic
        if refused:
            text = f"input refused: {node.stream.rejections.last_message}"
            log.warning(text, throttle_duration_sec=REPEAT)
            return DiagnosticStatus.WARN if reading.answers else DiagnosticStatus.ERROR, text
        if not reading.answers:
            return DiagnosticStatus.STALE, "no joint_states"
        if reading.limited:
            text = f"efforts clipped at their limits in {reading.limited} of {reading.answers}"
            log.warning(text, throttle_duration_sec=REPEAT)
            return DiagnosticStatus.WARN, text
        return DiagnosticStatus.OK, "publishing efforts"


def _microseconds(seconds: float) -> str:
    return _number(seconds * 1e6, ".0f")


def _number(value: float, form: str) -> str:
    return "none" if math.isnan(value) else format(value, form)
