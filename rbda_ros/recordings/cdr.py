"""JointState messages as a bag has them, read and written without ROS.

The common data representation (CDR) of DDS: four bytes that say how the rest is encoded, then each
number at a multiple of its size, counted from there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from rbda_ros.node.stream.joint_states import Form, JointStates
from rbda_ros.node.stream.rates import Vector

LITTLE_ENDIAN = b"\x00\x01"
STAMP = slice(4, 12)
FIELDS = ("position", "velocity", "effort")
MOST_FORMS = 8
"""Sets of names whose places in messages are remembered."""
_UINT = struct.Struct("<I")
_TIME = struct.Struct("<iI")


class UnreadableError(Exception):
    """A message that is no JointState, or not all of one."""


class _Form:
    """Where the numbers are in messages with the same names and sizes."""

    def __init__(self, data: bytes) -> None:
        if data[:2] != LITTLE_ENDIAN:
            raise UnreadableError("the message is not plain little-endian CDR")
        try:
            end, _ = _string(data, 12)  # frame_id
            count, end = _count(data, end)
            if count > len(data):
                raise UnreadableError(f"the message names {count} joints in {len(data)} bytes")
            names = []
            for _ in range(count):
                end, name = _string(data, end)
                names.append(name)
            self._fixed = [slice(12, end)]
            self._numbers: list[tuple[int, int]] = []
            for _ in FIELDS:
                start = _aligned(end, 4)
                count, end = _count(data, end)
                self._fixed.append(slice(start, end))
                start = _aligned(end, 8)
                end = start + 8 * count if count else end
                self._numbers.append((count, start))
        except (struct.error, UnicodeDecodeError) as error:
            raise UnreadableError(f"the message ends too early: {error}") from error
        if end > len(data):
            raise UnreadableError(f"the message has {len(data)} bytes and should have {end}")
        self.names = tuple(names)
        self._size = len(data)
        self._like = [data[part] for part in self._fixed]

    def fits(self, data: bytes) -> bool:
        """Whether a message differs from the first of this form only in its numbers."""
        return (
            len(data) == self._size
            and data[:2] == LITTLE_ENDIAN
            and all(data[part] == l for part, l in zip(self._fixed, self._like, strict=True))
        )

    def field(self, data: bytes, field: str) -> Vector:
        """The numbers of a field."""
        count, start = self._numbers[FIELDS.index(field)]
        return np.frombuffer(data, "<f8", count, start) if count else _NONE


class CdrReader:
    """Reads serialized JointState messages.

    Attributes:
        forms: none: no native thread reads recordings.
    """

    forms: Sequence[Form] = ()

    def __init__(self) -> None:
        self._forms: list[_Form] = []

    def form(self, data: bytes) -> _Form:
        """Where the numbers of a message are; known if one like it was read before.

        Raises:
            UnreadableError: it is none, or not all of one.
        """
        for form in self._forms:
            if form.fits(data):
                return form
        form = _Form(data)
        for known in self._forms:
            if known.names == form.names:
                form.names = known.names  # equal, and now the same
        self._forms = [form, *self._forms[: MOST_FORMS - 1]]
        return form

    def read(self, data: bytes) -> JointStates:
        """One message."""
        form = self.form(data)
        return JointStates(form.names, stamp(data), *(form.field(data, field) for field in FIELDS))


class CdrWriter:
    """Serializes JointState messages with the same names and fields.

    Attributes:
        values: write each field's numbers here.
        data: None, as no native thread writes recordings.
    """

    data: bytearray | None = None

    def __init__(self, names: Sequence[str], fields: Sequence[str]) -> None:
        data = bytearray(LITTLE_ENDIAN + b"\0\0" + bytes(8))
        _add_string(data, "")
        _add_count(data, len(names))
        for name in names:
            _add_string(data, name)
        self.starts: dict[str, int] = {}
        for field in FIELDS:
            size = len(names) if field in fields else 0
            _add_count(data, size)
            if size:
                data += bytes(_aligned(len(data), 8) - len(data))
                self.starts[field] = len(data)
                data += bytes(8 * size)
        self._data = data
        self.values: dict[str, Vector] = {field: np.zeros(0) for field in fields}
        for field, start in self.starts.items():
            self.values[field] = np.frombuffer(data, "<f8", len(names), start)

    @property
    def efforts(self) -> Vector:
        """Write efforts here."""
        return self.values["effort"]

    def serialized(self, like: bytes) -> bytes:
        """The message, with the stamp of another that is serialized too."""
        self._data[STAMP] = like[STAMP]
        return bytes(self._data)


class CdrCodec:
    """Reads and writes what the stream does; see `node.stream.codec.Codec`.

    Attributes:
        writers: what was made for each set of fields of joint states.
    """

    def __init__(self) -> None:
        self._reader = CdrReader()
        self.writers: dict[tuple[str, ...], CdrWriter] = {}

    def reader(self) -> CdrReader:
        """For joint states."""
        return self._reader

    def efforts(self, names: Sequence[str]) -> CdrWriter:
        """For efforts of named joints."""
        return CdrWriter(names, ("effort",))

    def states(self, names: Sequence[str], fields: Sequence[str]) -> CdrWriter:
        """For some of position, velocity and effort of named joints."""
        self.writers[tuple(fields)] = writer = CdrWriter(names, fields)
        return writer

    def commands(self) -> Any:
        """Commands are no labels: nothing is written here."""
        return SimpleNamespace(data=[])

    def wrench(self) -> Any:
        """Wrenches are no labels."""
        raise NotImplementedError


def stamp(data: bytes) -> int:
    """The stamp of a serialized message that begins with a header [ns]."""
    sec, nanosec = _TIME.unpack_from(data, 4)
    return int(sec) * 1_000_000_000 + int(nanosec)


def _aligned(offset: int, size: int) -> int:
    return offset + (4 - offset) % size


def _count(data: bytes, offset: int) -> tuple[int, int]:
    """A number of elements, and where it ends."""
    start = _aligned(offset, 4)
    return _UINT.unpack_from(data, start)[0], start + 4


def _string(data: bytes, offset: int) -> tuple[int, str]:
    size, start = _count(data, offset)
    if start + size > len(data):
        raise UnreadableError(f"a text of {size} bytes in a message of {len(data)}")
    return start + size, data[start : start + size].rstrip(b"\0").decode()


def _add_count(data: bytearray, count: int) -> None:
    data += bytes(_aligned(len(data), 4) - len(data)) + _UINT.pack(count)


def _add_string(data: bytearray, text: str) -> None:
    encoded = text.encode() + b"\0"
    _add_count(data, len(encoded))
    data += encoded


_NONE: Vector = np.zeros(0)
