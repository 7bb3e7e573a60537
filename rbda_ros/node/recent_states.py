"""The last seconds of joint states, as they came: for services that ask about the past."""

from __future__ import annotations

from collections import deque
from typing import Any

from sensor_msgs.msg import JointState

MAX_STATES = 120_000
"""Messages that are remembered at most: a minute at 2 kHz."""


class RecentStates:
    """Remembers serialized joint states of a node for some time, by a subscription of its own.

    One thread adds messages, any thread may ask.

    Args:
        node: whose topic ``joint_states`` this is.

    Attributes:
        window: how long [s]; nothing is remembered at 0.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self.window = 0.0
        self._subscription: Any = None
        self._states: deque[tuple[int, bytes]] = deque(maxlen=MAX_STATES)

    def begin(self, window: float, qos: Any) -> None:
        """Remember the last seconds; 0 for none."""
        self.window = window
        if not window:
            self.end()
        elif self._subscription is None:
            clock = self._node.get_clock()
            self._subscription = self._node.create_subscription(
                JointState,
                "joint_states",
                lambda data: self.add(data, clock.now().nanoseconds),
                qos,
                raw=True,
            )

    def end(self) -> None:
        """Stop listening, and forget all."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
            self._states.clear()

    def add(self, data: bytes, now: int) -> None:
        """Add a message that came now [ns], and forget those that are too old.

        Where time has jumped back, all are from the future.
        """
        states = self._states
        if states and now < states[-1][0]:
            states.clear()
        states.append((now, data))
        oldest = now - int(self.window * 1e9)
        while states[0][0] < oldest:
            states.popleft()

    def last(self, seconds: float = 0.0) -> list[bytes]:
        """Messages of the last seconds before the newest, in order; 0 for all there are."""
        states = list(self._states.copy())
        oldest = states[-1][0] - int(seconds * 1e9) if states and seconds else 0
        return [data for time, data in states if time >= oldest]
