"""What all plans of native threads are made of, in the form that C reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64MultiArray

from rbda_ros.cluster_tree.closing.tolerances import CLOSED, NEARBY, PRECISE, STREAM_REPEATS
from rbda_ros.node.stream.rates import Indices, Vector
from rbda_ros.node.stream.wire import LITTLE_ENDIAN, aligned
from rbda_ros.robot.closing_call import ClosingCall

Message = tuple[int, bytearray | None, bool, bool, int, tuple[tuple[Any, Any, int], ...]]
"""As `message.c` reads it."""

EVERY_STATE, IF_HEARD = False, True
ALWAYS, WITHOUT_EFFORTS, WITH_EFFORTS = range(3)
STAMPED, UNSTAMPED = True, False


def same_parts(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether plans made of these are the same plan."""
    return len(some) == len(others) and all(
        a is b or (isinstance(a, int | bytes) and a == b) for a, b in zip(some, others, strict=True)
    )


def call_parts(call: ClosingCall) -> tuple[Any, ...]:
    """A call whose kernel is compiled, as `stream_call.c` reads it."""
    return (
        call.kernel.address,
        call.arrays,
        call.guess_at,
        PRECISE,
        CLOSED,
        NEARBY,
        STREAM_REPEATS,
        call.max_condition_number,
    )


def array_message(publisher: int, values: Vector, order: Indices) -> Message | None:
    """A Float64MultiArray of some of the values; None where its bytes look unknown."""
    start = _start_of_array()
    if start is None:
        return None
    data = serialize_message(Float64MultiArray(data=[0.0] * len(order)))
    written = bytearray(data[: start + 8 * len(order)])  # the buffer is longer
    return publisher, written, UNSTAMPED, EVERY_STATE, ALWAYS, ((values, order, start),)


@cache
def _start_of_array() -> int | None:
    """Where the numbers of a serialized Float64MultiArray stand; None where it looks unknown."""
    start = aligned(4 + 3 * 4, 8)  # no dimensions, no offset, how many numbers
    sample = Float64MultiArray(data=[0.5, 1.5])
    data = serialize_message(Float64MultiArray(data=[0.0, 0.0]))
    written = bytearray(data[: start + 16])
    written[start:] = np.array([0.5, 1.5]).tobytes()
    agrees = data[:2] == LITTLE_ENDIAN
    return start if agrees and deserialize_message(bytes(written), type(sample)) == sample else None
