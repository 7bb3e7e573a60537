"""JointState messages with positions, velocities and efforts, serialized in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbda_ros.node.stream.wire import LITTLE_ENDIAN, STAMP, Vector, aligned, end_of_strings

FIELDS = ("position", "velocity", "effort")


class JointStateWriter:
    """Serializes JointState messages with the same names and fields.

    Args:
        names: of the joints.
        fields: some of position, velocity and effort; the others stay empty.

    Attributes:
        values: write each field's numbers here.
        data: the message, and starts, where each field's numbers begin in it; None where rclpy
            must write it.
    """

    def __init__(self, names: Sequence[str], fields: Sequence[str]) -> None:
        count = len(names)
        self._message = JointState(name=list(names))
        self.values: dict[str, Vector] = {field: np.zeros(count) for field in fields}
        for field in fields:
            setattr(self._message, field, [0.0] * count)
        self._in_place = False
        self.data: bytearray | None = None
        self.starts: dict[str, int] = {}
        data = serialize_message(self._message)
        if not count or not fields or data[:2] != LITTLE_ENDIAN:
            return
        end = end_of_strings(data, aligned(end_of_strings(data, 12, 1), 4) + 4, count)
        starts: dict[str, int] = {}
        for field in FIELDS:
            end = aligned(end, 4) + 4  # how many
            if field in fields:
                starts[field] = aligned(end, 8)
                end = starts[field] + 8 * count
        if len(data) < end:
            return
        self._data = bytearray(data[:end])
        for field, start in starts.items():
            self.values[field] = np.frombuffer(self._data, "<f8", count, start)
        self._in_place = self._agrees()
        if self._in_place:
            self.data, self.starts = self._data, starts

    def serialized(self, like: bytes) -> Any:
        """The message, with the stamp of another that is serialized too."""
        if self._in_place and like[:2] == LITTLE_ENDIAN:
            self._data[STAMP] = like[STAMP]
            return bytes(self._data)
        self._message.header.stamp = deserialize_message(like, JointState).header.stamp
        for field, values in self.values.items():
            setattr(self._message, field, values.tolist())
        return self._message

    def _agrees(self) -> bool:
        """Whether what is written in place is what rclpy writes."""
        sample = JointState(name=self._message.name)
        sample.header.stamp.sec, sample.header.stamp.nanosec = 123456789, 987654321
        for k, (field, values) in enumerate(self.values.items()):
            values[:] = 0.1 + k + np.arange(len(values))
            setattr(sample, field, values.tolist())
        self._data[STAMP] = serialize_message(sample)[STAMP]
        return bool(deserialize_message(bytes(self._data), JointState) == sample)
