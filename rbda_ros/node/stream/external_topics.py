"""The topics of what acts from outside: ``~/external_effort`` and ``~/estimated_wrench``."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.codec import Codec
from rbda_ros.node.stream.external_effort import ExternalEffort
from rbda_ros.robot import Robot


class ExternalTopics:
    """Publishers of a node, there while they are asked for.

    Args:
        node: the node.
        codec: writes messages.
    """

    def __init__(self, node: Any, codec: Codec) -> None:
        self._node, self._codec = node, codec
        self._publishers: list[Publisher] = []

    def offer(self, robot: Robot, settings: Settings) -> ExternalEffort | None:
        """What estimates, and publishes, if the settings ask for it."""
        self.free()
        if not settings.publish_external_effort:
            return None
        efforts = wrenches = self._publisher(JointState, "~/external_effort")
        if settings.contact_end_effector:
            wrenches = self._publisher(WrenchStamped, "~/estimated_wrench")
        return ExternalEffort(robot, settings, efforts.publish, wrenches.publish, self._codec)

    def free(self) -> None:
        """Take the topics back."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)
        self._publishers.clear()

    def _publisher(self, kind: Any, topic: str) -> Publisher:
        made: Publisher = self._node.create_publisher(kind, topic, 10)
        self._publishers.append(made)
        return made
