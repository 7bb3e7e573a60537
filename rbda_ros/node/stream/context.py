"""What the stream has from whoever runs it: a node, or a recording that is played."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rbda_ros.node.refusals import Refusals
from rbda_ros.node.stream.codec import Codec
from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.meter import Meter
from rbda_ros.robot.feedforward_call import FeedforwardCall

Publish = Callable[[Any], None]


@dataclass(frozen=True)
class Context:
    """What a `Responder` works with.

    Attributes:
        publish: takes efforts, as JointState, serialized or not.
        publish_commands: takes commands, as Float64MultiArray.
        now: present time [ns], of the clock that stamps are from.
        background: runs something in another thread.
        refusals: counts what is not answered.
        meter: measures what is.
        codec: reads and writes messages.
        answered: takes the call that answered a message, and the message, serialized and read.
        closed: takes the same of a message whose efforts are not known, but whose joints are; and
            whether their velocities are.
    """

    publish: Publish
    publish_commands: Publish
    now: Callable[[], int]
    background: Callable[[Callable[[], Any]], Future[Any]]
    refusals: Refusals
    meter: Meter
    codec: Codec
    answered: Callable[[FeedforwardCall, bytes, JointStates], None] = lambda call, data, states: (
        None
    )
    closed: Callable[[FeedforwardCall, bytes, JointStates, bool], None] = (
        lambda call, data, states, moving: None
    )
