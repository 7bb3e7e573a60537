"""JointState messages as bytes on the wire, read and written in place.

Turning the names of thirty joints into Python strings and back takes longer than the dynamics.
They are the same in every message, so all but the first are read and written here without it: in
the common data representation (CDR) of DDS, numbers stand where they stood the last time. What
is read or written so is compared with what rclpy makes of it, once for each set of names; where
that differs, rclpy goes on doing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbda_ros.node.stream.joint_states import JointStates

Vector = NDArray[np.float64]

STAMP = slice(4, 12)
"""Where the stamp is: after four bytes that say how the rest is encoded."""
LITTLE_ENDIAN = b"\x00\x01"
FIELDS = ("position", "velocity", "effort")
MOST_FORMS = 8
"""Sets of names that are read in place."""


class JointStateReader:
    """Reads serialized JointState messages."""

    def __init__(self) -> None:
        self._forms: list[Form] = []
        self._used: Form | None = None  # for the last message

    @property
    def forms(self) -> list[Form]:
        """Those that messages came in, that of the last one first."""
        used = [form for form in self._forms if form is self._used]
        return used + [form for form in self._forms if form is not self._used]

    def read(self, data: bytes) -> JointStates:
        """One message; in place, if one like it was read before."""
        for form in self._forms:
            if form.fits(data):
                self._used = form
                return form.read(data)
        message = deserialize_message(data, JointState)
        names = tuple(message.name)
        known = {form.names: form.names for form in self._forms}
        states = _from_message(message, known.get(names, names))
        if data[:2] == LITTLE_ENDIAN:
            form = Form(data, states)
            if form.fits(data) and _same(form.read(data), states):
                self._forms = [form, *self._forms[: MOST_FORMS - 1]]
                self._used = form
        return states


class Form:
    """Where the numbers are in messages with the same names and sizes.

    Attributes:
        names: of the joints.
        size: of such a message, in bytes.
        position_at, velocity_at, effort_at: where the numbers begin.
        counts: how many positions, velocities and efforts there are.
        has_positions, has_velocities, has_efforts: whether there is one for every name.
        pattern, mask: what all such messages have in common, up to the velocities.
    """

    def __init__(self, data: bytes, like: JointStates) -> None:
        self.names = like.names
        self._positions, self._velocities = len(like.position), len(like.velocity)
        self._efforts = len(like.effort)
        self.counts = self._positions, self._velocities, self._efforts
        self.has_positions = self._positions == len(like.names)
        self.has_velocities = self._velocities == len(like.names)
        self.has_efforts = self._efforts == len(like.names)
        used = [slice(0, 4)]  # bytes that must be the same; what pads them may be anything
        end = _strings(data, 12, 1, used)  # frame_id
        used.append(slice(aligned(end, 4), aligned(end, 4) + 4))  # how many names
        end = _strings(data, used[-1].stop, len(like.names), used)
        used.append(slice(aligned(end, 4), aligned(end, 4) + 4))  # how many positions
        end = used[-1].stop
        self.position_at = aligned(end, 8)
        if self._positions:
            end = self.position_at + 8 * self._positions
        used.append(slice(aligned(end, 4), aligned(end, 4) + 4))  # how many velocities
        self.velocity_at = aligned(used[-1].stop, 8)
        end = self.velocity_at + 8 * self._velocities if self._velocities else used[-1].stop
        self.effort_at = aligned(aligned(end, 4) + 4, 8)

        self.size = len(data)
        self._count = used.pop()
        self._head = slice(0, used[-1].stop)
        mask = bytearray(used[-1].stop)
        for part in used:
            mask[part] = b"\xff" * (part.stop - part.start)
        self._mask = int.from_bytes(mask, "little")
        self._fixed = int.from_bytes(data[self._head], "little") & self._mask
        self._counted = data[self._count]
        mask += bytes(self._count.start - len(mask)) + b"\xff" * len(self._counted)
        self.pattern, self.mask = data[: self._count.stop], bytes(mask)

    def fits(self, data: bytes) -> bool:
        """Whether a message differs from the first of this form only in its numbers."""
        return (
            len(data) == self.size
            and data[self._count] == self._counted
            and int.from_bytes(data[self._head], "little") & self._mask == self._fixed
        )

    def read(self, data: bytes) -> JointStates:
        """One that fits."""
        time = int.from_bytes(data[4:8], "little", signed=True) * 1_000_000_000
        time += int.from_bytes(data[8:12], "little")
        return JointStates(
            self.names,
            time,
            _numbers(data, self._positions, self.position_at),
            _numbers(data, self._velocities, self.velocity_at),
            _numbers(data, self._efforts, self.effort_at),
        )


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
        self.data: bytearray | None = None
        self.starts: dict[str, int] = {}
        for field in fields:
            setattr(self._message, field, [0.0] * count)
        data = serialize_message(self._message)
        if not count or not fields or data[:2] != LITTLE_ENDIAN:
            return
        end = _strings(data, 12, 1, [])  # frame_id
        end = _strings(data, aligned(end, 4) + 4, count, [])  # names
        for field in FIELDS:
            end = aligned(end, 4) + 4  # how many
            if field in fields:
                self.starts[field] = aligned(end, 8)
                end = self.starts[field] + 8 * count
        written = bytearray(data[:end])  # the buffer is longer
        views = {k: np.frombuffer(written, "<f8", count, at) for k, at in self.starts.items()}
        if self._agrees(written, views):
            self.data, self.values = written, views

    def serialized(self, like: bytes) -> Any:
        """The message, with the stamp of another that is serialized too."""
        if self.data is not None and like[:2] == LITTLE_ENDIAN:
            self.data[STAMP] = like[STAMP]
            return bytes(self.data)
        self._message.header.stamp = deserialize_message(like, JointState).header.stamp
        for field, values in self.values.items():
            setattr(self._message, field, values.tolist())
        return self._message

    def _agrees(self, written: bytearray, views: dict[str, Vector]) -> bool:
        """Whether what is written in place is what rclpy writes."""
        sample = JointState(name=self._message.name)
        sample.header.stamp.sec, sample.header.stamp.nanosec = 123456789, 987654321
        for k, (field, values) in enumerate(views.items()):
            values[:] = 0.1 + k + np.arange(len(values))
            setattr(sample, field, values.tolist())
        written[STAMP] = serialize_message(sample)[STAMP]
        return bool(deserialize_message(bytes(written), JointState) == sample)


class EffortWriter(JointStateWriter):
    """Serializes JointState messages with the same names, and efforts.

    Attributes:
        efforts: write them here.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, ("effort",))
        self.efforts = self.values["effort"]


def _from_message(message: JointState, names: tuple[str, ...]) -> JointStates:
    stamp = message.header.stamp
    time = stamp.sec * 1_000_000_000 + stamp.nanosec
    numbers = (np.array(x, float) for x in (message.position, message.velocity, message.effort))
    return JointStates(names, time, *numbers)


def _same(one: JointStates, other: JointStates) -> bool:
    return one.time == other.time and all(
        a.tobytes() == b.tobytes()  # of NaN too
        for a, b in (
            (one.position, other.position),
            (one.velocity, other.velocity),
            (one.effort, other.effort),
        )
    )


def _numbers(data: bytes, count: int, at: int) -> Vector:
    return np.frombuffer(data, "<f8", count, at) if count else _NONE


_NONE: Vector = np.zeros(0)


def aligned(offset: int, size: int) -> int:
    """Where a number of this size stands at the earliest; offsets count from after the head."""
    return offset + (4 - offset) % size


def _strings(data: bytes, offset: int, count: int, used: list[slice]) -> int:
    """Add where strings are; the end of the last."""
    for _ in range(count):
        start = aligned(offset, 4)
        offset = start + 4 + int.from_bytes(data[start : start + 4], "little")
        used.append(slice(start, offset))
    return offset
