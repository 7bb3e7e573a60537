"""What the node tells about its own health, once a second on /diagnostics."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType

from rbda_ros.node.meter import Reading


class Diagnostics:
    """Publishes the state of a dynamics node."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._refused_before = 0
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A steady clock: with simulated time, a clock that stands still must be reported too.
        node.create_timer(1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def publish(self) -> None:
        """Publish one message about the time since the last."""
        node, reading = self._node, self._node.meter.read()
        refused = node.refusals.total - self._refused_before
        self._refused_before = node.refusals.total

        status = DiagnosticStatus(name=f"{node.get_fully_qualified_name()[1:]}: feedforward")
        status.hardware_id = node.robot.name if node.robot else ""
        status.level, status.message = self._judge(reading, refused)
        values = {
            "model": node.robot.name if node.robot else "none",
            "active": str(node.active),
            "rate [Hz]": f"{reading.rate:.1f}",
            "processing time, mean [us]": f"{reading.mean * 1e6:.0f}",
            "processing time, 99th percentile [us]": f"{reading.p99 * 1e6:.0f}",
            "refused": str(node.refusals.total),
        }
        values |= {f"refused: {reason.value}": str(n) for reason, n in node.refusals.counts.items()}
        if node.refusals.total:
            values["last refusal"] = node.refusals.last_message
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]

        message = DiagnosticArray(status=[status])
        message.header.stamp = node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _judge(self, reading: Reading, refused: int) -> tuple[bytes, str]:
        node = self._node
        if node.robot is None:
            return DiagnosticStatus.WARN, "no model: waiting for a robot_description"
        if not node.active:
            return DiagnosticStatus.OK, "inactive"
        if refused:
            level = DiagnosticStatus.WARN if reading.answers else DiagnosticStatus.ERROR
            return level, f"input refused: {node.refusals.last_message}"
        if not reading.answers:
            return DiagnosticStatus.STALE, "no joint_states"
        return DiagnosticStatus.OK, "publishing efforts"
