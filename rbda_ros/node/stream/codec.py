"""What reads and writes the messages of the stream: ROS in the node, a bag's library elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rbda_ros.node.stream.joint_states import Form, JointStates
from rbda_ros.node.stream.rates import Vector


class Reader(Protocol):
    """Reads serialized JointState messages."""

    @property
    def forms(self) -> Sequence[Form]:
        """Of the messages that are read in place, that of the last one first."""
        ...

    def read(self, data: bytes) -> JointStates:
        """One message."""
        ...


class StatesWriter(Protocol):
    """Serializes JointState messages with the same names and fields.

    Attributes:
        data: the message, and starts, where each field's numbers begin in it; None if not written
            in place.
    """

    data: bytearray | None
    starts: dict[str, int]

    @property
    def values(self) -> Mapping[str, Vector]:
        """Write each field's numbers here."""
        ...

    def serialized(self, like: bytes) -> Any:
        """The message, with the stamp of another that is serialized too."""
        ...


class EffortsWriter(StatesWriter, Protocol):
    """Serializes JointState messages with the same names, and efforts alone."""

    @property
    def efforts(self) -> Vector:
        """Write them here."""
        ...


class Codec(Protocol):
    """Makes what the stream reads and writes with."""

    def reader(self) -> Reader:
        """For joint states."""
        ...

    def efforts(self, names: Sequence[str]) -> EffortsWriter:
        """For efforts of named joints."""
        ...

    def states(self, names: Sequence[str], fields: Sequence[str]) -> StatesWriter:
        """For some of position, velocity and effort of named joints."""
        ...

    def commands(self) -> Any:
        """A new Float64MultiArray."""
        ...

    def wrench(self) -> Any:
        """A new WrenchStamped."""
        ...
