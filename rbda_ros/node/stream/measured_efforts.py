"""What acts on the joints, as a message says: nothing but what it names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbda_ros.node.stream.joint_states import JointStates
from rbda_ros.node.stream.rates import Indices, Vector

Joints = tuple[str, ...]

MOST_PLACES = 100
"""Sets of names that are remembered."""


class MeasuredEfforts:
    """Efforts of some joints of the robot: those of a message, and zero on joints it leaves out.

    Args:
        names: of the joints, as messages have them.

    Attributes:
        values: (names,) of the last message that had them [N m, N].
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._place = {name: k for k, name in enumerate(names)}
        self._places: dict[Joints, tuple[Indices, Indices]] = {}
        self.values: Vector = np.zeros(len(names))

    def places(self, names: Joints) -> tuple[Indices, Indices]:
        """Of joints that a message names: where they stand in it, and where among `values`."""
        if names not in self._places:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            found = [(i, self._place[name]) for i, name in enumerate(names) if name in self._place]
            source, target = np.array(found, np.intp).reshape(-1, 2).T.copy()
            self._places[names] = source, target
        return self._places[names]

    def take(self, states: JointStates) -> bool:
        """Take those of a message; whether it has one, and a finite one, for each joint."""
        if len(states.effort) != len(states.names):
            return False
        source, target = self.places(states.names)
        efforts = states.effort[source]
        if not np.isfinite(efforts).all():
            return False
        self.values[:] = 0.0
        self.values[target] = efforts
        return True
