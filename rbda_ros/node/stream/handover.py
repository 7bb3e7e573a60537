"""What Python and the native thread give each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbda_ros.node.settings import Settings
from rbda_ros.node.stream.codec import EffortsWriter
from rbda_ros.node.stream.measurements import KnownForm
from rbda_ros.robot.feedforward_call import FeedforwardCall


@dataclass(frozen=True, eq=False)
class Ready:
    """What messages like the last ones are answered by.

    Attributes:
        call: computes the efforts.
        writer: of the answers.
        forms: of the messages, as `Measured.known` gives them.
        kept: what is kept of all of them, as `Measured.kept` gives it.
        settings: what else counts.
        timeout: age from which on a message is too old [ns]; 0 for never.
        needs_others: whether it needs more than joint states; then
        others: earliest and latest time that this is from [ns].
    """

    call: FeedforwardCall
    writer: EffortsWriter
    forms: list[KnownForm]
    kept: tuple[Any, ...]
    settings: Settings
    timeout: int
    needs_others: bool
    others: tuple[int, int]


class Staged:
    """Inputs of a call beside what is measured, to be given to the native thread."""

    def __init__(self, call: FeedforwardCall) -> None:
        self.base_position = np.zeros_like(call.base_position)
        self.base_twist = np.zeros_like(call.base_twist)
        self.wrenches = np.zeros_like(call.wrenches)
        base = len(call.base_acceleration)
        self.accelerations = np.zeros(base + len(call.acceleration))
        self.base_acceleration, self.acceleration = np.split(self.accelerations, [base])
