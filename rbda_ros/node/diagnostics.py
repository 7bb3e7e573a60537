"""Diagnostics of the node: its own health, once a second on /diagnostics."""

from __future__ import annotations

import math
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType

from rbda_ros.control.meter import Reading
from rbda_ros.control.rejections import Reason
from rbda_ros.errors import shown

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
