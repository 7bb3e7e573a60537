"""Commands as bare arrays, in the order of ``command_joints``, for forward_command_controller."""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.publisher import Publisher
from std_msgs.msg import Float64MultiArray

from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.rates import Indices, Vector
from rbda_ros.robot import Robot


class CommandArrays:
    """The topics ``~/effort_commands``, ``~/position_commands`` and ``~/velocity_commands``.

    Args:
        node: whose topics these are; they are not there unless asked for.

    Attributes:
        order: places of the joints among the actuated ones.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}  # by field
        self._unused: list[Publisher] = []
        self._source = ""
        self.order: Indices = np.zeros(0, np.intp)

    def offer(self, robot: Robot, settings: Settings) -> None:
        """Have the topics that the settings want; `withdraw` the others once nobody uses them."""
        self._source = settings.command_source
        fields = (
            ("effort",) if self._source == "feedforward" else ("position", "velocity", "effort")
        )
        for field in [field for field in self._publishers if field not in fields]:
            self._unused.append(self._publishers.pop(field))
        for field in fields if settings.command_joints else ():
            if field not in self._publishers:
                self._publishers[field] = self._node.create_publisher(
                    Float64MultiArray, f"~/{field}_commands", 10
                )
        names = robot.actuated_joint_names
        self.order = np.array([names.index(name) for name in settings.command_joints], np.intp)

    def withdraw(self) -> None:
        """Take topics back that are not wanted any more."""
        while self._unused:
            self._node.destroy_publisher(self._unused.pop())

    @property
    def feedforward(self) -> Publisher | None:
        """Where efforts of the feedforward go, if they do."""
        return self._publishers.get("effort") if self._source == "feedforward" else None

    @property
    def motor_commands(self) -> dict[str, Publisher]:
        """Where motor commands go, by field, if they do."""
        wanted = self._source == "joint_commands" and len(self.order)
        return self._publishers if wanted else {}

    def publish_feedforward(self, commands: Float64MultiArray) -> None:
        """Publish efforts that are in order already."""
        if (publisher := self.feedforward) is not None:
            publisher.publish(commands)

    def publish_motor_commands(self, commands: dict[str, Vector]) -> None:
        """Publish commands of the actuated joints (actuated,), by field."""
        publishers = self.motor_commands
        for field, values in commands.items() if publishers else ():
            data = values[self.order].tolist()
            publishers[field].publish(Float64MultiArray(data=data))

    def free(self) -> None:
        """Take the topics back."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        self._publishers.clear()
