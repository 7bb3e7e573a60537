"""What the native thread goes by: all that Python decided for the messages that came last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64MultiArray

from rbda_ros.cluster_tree.closing.tolerances import CLOSED, NEARBY, PRECISE, STREAM_REPEATS
from rbda_ros.node.refusals import RefusalError, Refusals
from rbda_ros.node.stream.codec import EffortsWriter
from rbda_ros.node.stream.completed_states import CompletedStates, InPlace
from rbda_ros.node.stream.handover import Ready
from rbda_ros.node.stream.joint_states import Form
from rbda_ros.node.stream.measurements import Layout
from rbda_ros.node.stream.rates import Indices
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.node.stream.wire import LITTLE_ENDIAN, aligned
from rbda_ros.robot.feedforward_call import FeedforwardCall

Message = tuple[int, bytearray | None, bool, bool, int, tuple[tuple[Any, Any, int], ...]]

EVERY_STATE, IF_HEARD = False, True
ALWAYS, WITHOUT_EFFORTS, WITH_EFFORTS = range(3)
STAMPED, UNSTAMPED = True, False


@dataclass(frozen=True, eq=False)
class Outputs:
    """Where the answers of the thread go; its publishers by their addresses, 0 for none.

    Attributes:
        efforts: of ``~/feedforward``.
        commands: of ``~/effort_commands``.
        command_order: places of its joints among the actuated ones.
        states: of ``~/joint_states``.
        completed: what completes these; None while nobody listens.
    """

    efforts: int
    commands: int
    command_order: Indices
    states: int
    completed: CompletedStates | None


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan in the form that C reads, and what must be told when it is taken back.

    Attributes:
        parts: what it is made of; of the same objects, it is the same plan.
        description: as `plan.c` reads it.
        layouts: of each of its forms.
        call: that it calls.
    """

    parts: tuple[Any, ...]
    description: tuple[Any, ...]
    layouts: tuple[Layout | RefusalError, ...]
    call: FeedforwardCall

    @property
    def times(self) -> tuple[int, ...]:
        """Stamps of the last message of each form [ns]."""
        return tuple(0 if isinstance(of, RefusalError) else of.time for of in self.layouts)

    def tell(self, forms: Iterable[tuple[int, int]], refusals: Refusals) -> None:
        """Take over what the thread has heard: of each form the last stamp, and refusals."""
        for layout, (time, refused) in zip(self.layouts, forms, strict=True):
            if not isinstance(layout, RefusalError):
                layout.time = time
            elif refused:
                refusals.add(layout, refused)


def make_plan(ready: Ready, outputs: Outputs, before: Plan | None) -> Plan | None:
    """The plan for messages like the last ones; None where Python must answer them.

    Args:
        ready: what Python answers them by.
        outputs: where answers go.
        before: the last plan, which may still do.
    """
    call, writer = ready.call, ready.writer
    completed = None if outputs.completed is None else outputs.completed.in_place(call)
    parts = (
        call, writer, ready.settings, completed, outputs.efforts, outputs.commands, outputs.states,
        ready.kept[-1],
        *(part for known in ready.forms for part in known),
    )  # fmt: skip
    if before is not None and _same(parts, before.parts):
        return before
    if call.kernel.address is None or not call.closes_itself or writer.data is None:
        return None
    messages = [_efforts(outputs, call, writer)]
    if outputs.commands:
        if _start_of_array() is None:
            return None
        messages.append(_commands(outputs, call))
    if outputs.states:
        messages += _states(outputs, completed)
    description = (
        call.kernel.address,
        call.arrays,
        0 if completed is None else completed.kernel.address,
        None if completed is None else completed.velocities,
        None if completed is None else completed.efforts,
        ready.kept,
        tuple(
            _form(*known, None if completed is None else outputs.completed) for known in ready.forms
        ),
        tuple(messages),
        PRECISE,
        CLOSED,
        NEARBY,
        STREAM_REPEATS,
        call.max_condition_number,
        ready.timeout,
        JUMP,
        ready.needs_others,
    )
    return Plan(parts, description, tuple(layout for _, layout, _ in ready.forms), call)


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(
        a is b or (isinstance(a, int | bytes) and a == b) for a, b in zip(some, others, strict=True)
    )


def _form(
    form: Form,
    layout: Layout | RefusalError,
    target: Indices | None,
    completed: CompletedStates | None,
) -> tuple[Any, ...]:
    refused = isinstance(layout, RefusalError)
    order, partial = None, False
    if not isinstance(layout, RefusalError):
        order = layout.order if target is None else layout.source
        partial = layout.joints is None
    efforts = None
    if completed is not None and form.has_efforts:
        efforts = form.effort_at, *completed.effort_places(form.names)
    return (
        form.pattern,
        form.mask,
        form.size,
        len(form.names),
        form.position_at,
        form.velocity_at,
        order,
        target,
        partial,
        refused,
        efforts,
    )


def _efforts(outputs: Outputs, call: FeedforwardCall, writer: EffortsWriter) -> Message:
    every = np.arange(len(call.efforts), dtype=np.intp)
    numbers = ((call.efforts, every, writer.starts["effort"]),)
    return outputs.efforts, writer.data, STAMPED, EVERY_STATE, ALWAYS, numbers


def _commands(outputs: Outputs, call: FeedforwardCall) -> Message:
    order, start = outputs.command_order, _start_of_array() or 0
    data = serialize_message(Float64MultiArray(data=[0.0] * len(order)))
    written = bytearray(data[: start + 8 * len(order)])  # the buffer is longer
    numbers = ((call.efforts, order, start),)
    return outputs.commands, written, UNSTAMPED, EVERY_STATE, ALWAYS, numbers


def _states(outputs: Outputs, completed: InPlace | None) -> list[Message]:
    if completed is None:  # for Python, once it is heard
        return [(outputs.states, None, STAMPED, IF_HEARD, ALWAYS, ())]
    return [
        (outputs.states, data, STAMPED, IF_HEARD, when, parts)
        for when, (data, parts) in (
            (WITHOUT_EFFORTS, completed.without),
            (WITH_EFFORTS, completed.with_efforts),
        )
    ]


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
