"""The codec of the node: messages as rclpy has them, read and written in place where it can."""

from __future__ import annotations

from collections.abc import Sequence

from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Float64MultiArray

from rbda_ros.node.stream.wire import EffortWriter, JointStateReader, JointStateWriter


class RosCodec:
    """See `codec.Codec`."""

    def reader(self) -> JointStateReader:
        """For joint states."""
        return JointStateReader()

    def efforts(self, names: Sequence[str]) -> EffortWriter:
        """For efforts of named joints."""
        return EffortWriter(names)

    def states(self, names: Sequence[str], fields: Sequence[str]) -> JointStateWriter:
        """For some of position, velocity and effort of named joints."""
        return JointStateWriter(names, fields)

    def commands(self) -> Float64MultiArray:
        """A new message."""
        return Float64MultiArray()

    def wrench(self) -> WrenchStamped:
        """A new message."""
        return WrenchStamped()
