"""What the thread of commands goes by: all that Python decided for those that came last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.node.stream.command_way import CommandWay, ReadyCommands
from rbda_ros.node.stream.joint_states import Form
from rbda_ros.node.stream.native_parts import (
    ALWAYS,
    EVERY_STATE,
    STAMPED,
    Message,
    array_message,
    call_parts,
    same_parts,
)
from rbda_ros.node.stream.rates import Indices
from rbda_ros.node.stream.responder import JUMP
from rbda_ros.robot.conversion import CANNOT_GIVE
from rbda_ros.robot.feedforward_call import FeedforwardCall

NOWHERE: Indices = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False)
class CommandOutputs:
    """Where motor commands go; publishers by their addresses.

    Attributes:
        motors: of ``~/motor_commands``.
        arrays: of the bare arrays, by field; and
        order: places of their joints among the actuated ones.
    """

    motors: int
    arrays: Mapping[str, int]
    order: Indices


@dataclass(frozen=True, eq=False)
class CommandPlan:
    """A plan in the form that C reads.

    Attributes:
        parts: what it is made of; of the same objects, it is the same plan.
        description: as `command.c` reads it.
        ways: that it has.
    """

    parts: tuple[Any, ...]
    description: tuple[Any, ...]
    ways: tuple[CommandWay, ...]


def make_command_plan(
    ready: ReadyCommands,
    outputs: CommandOutputs,
    states: Any,
    call: FeedforwardCall | None,
    before: CommandPlan | None,
) -> CommandPlan | None:
    """The plan for commands like the last ones; None where Python must answer them.

    Args:
        ready: what Python answers them by.
        outputs: where answers go.
        states: the native thread that answers joint states, whose last state counts; or None.
        call: that these must be answered by.
        before: the last plan, which may still do.
    """
    known = [
        (form, way)
        for form, way in ready.known
        if way.call.kernel.address is not None and way.writer.data is not None
    ]
    parts = (
        states, call, ready.timeout, outputs.motors, *outputs.arrays.values(), outputs.order,
        *(part for pair in known for part in pair),
    )  # fmt: skip
    if before is not None and same_parts(parts, before.parts):
        return before
    ways = [_way(form, way, outputs) for form, way in known]
    if not ways or None in ways:
        return None
    description = states, id(call), ready.timeout, JUMP, CANNOT_GIVE, tuple(ways)
    return CommandPlan(parts, description, tuple(way for _, way in known))


def _way(form: Form, way: CommandWay, outputs: CommandOutputs) -> tuple[Any, ...] | None:
    messages = _messages(way, outputs)
    if None in messages:
        return None
    call = way.call
    return (
        form.pattern,
        form.mask,
        form.size,
        len(form.names),
        form.position_at if call.moves and way.held is None else 0,
        form.velocity_at if way.has_velocity else 0,
        form.effort_at if len(way.effort_source) else 0,
        way.order,
        NOWHERE if way.held is None else way.held,
        way.effort_source,
        way.effort_target,
        call.moves,
        way.needs_state,
        call_parts(call),
        tuple(messages),
    )


def _messages(way: CommandWay, outputs: CommandOutputs) -> list[Message | None]:
    every = np.arange(len(way.call.motor_position), dtype=np.intp)
    writer = way.writer
    numbers = tuple((way.values[field], every, at) for field, at in writer.starts.items())
    arrays = (
        array_message(outputs.arrays[field], values, outputs.order)
        for field, values in way.values.items()
        if field in outputs.arrays
    )
    return [(outputs.motors, writer.data, STAMPED, EVERY_STATE, ALWAYS, numbers), *arrays]
