"""What the native thread goes by: all that Python decided for the messages that came last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.node.refusals import RefusalError, Refusals
from rbda_ros.node.stream.codec import EffortsWriter
from rbda_ros.node.stream.completed_states import CompletedStates, InPlace
from rbda_ros.node.stream.handover import Ready
from rbda_ros.node.stream.joint_states import Form
from rbda_ros.node.stream.measurements import Layout
from rbda_ros.node.stream.native_parts import (
    ALWAYS,
    EVERY_STATE,
    IF_HEARD,
    STAMPED,
    WITH_EFFORTS,
    WITHOUT_EFFORTS,
    Message,
    array_message,
    call_parts,
    same_parts,
)
from rbda_ros.node.stream.rates import Indices
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.robot.feedforward_call import FeedforwardCall


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
    if before is not None and same_parts(parts, before.parts):
        return before
    if call.kernel.address is None or not call.closes_itself or writer.data is None:
        return None
    messages = [_efforts(outputs, call, writer)]
    if outputs.commands:
        commands = array_message(outputs.commands, call.efforts, outputs.command_order)
        if commands is None:
            return None
        messages.append(commands)
    if outputs.states:
        messages += _states(outputs, completed)
    description = (
        call_parts(call),
        0 if completed is None else completed.kernel.address,
        None if completed is None else completed.velocities,
        None if completed is None else completed.efforts,
        ready.kept,
        tuple(
            _form(*known, None if completed is None else outputs.completed) for known in ready.forms
        ),
        tuple(messages),
        ready.timeout,
        JUMP,
        ready.needs_others,
        id(call),
    )
    return Plan(parts, description, tuple(layout for _, layout, _ in ready.forms), call)


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
