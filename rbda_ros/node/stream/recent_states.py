"""The last seconds of joint states, as they came: for whoever asks about the past."""

from __future__ import annotations

from collections import deque

MOST_STATES = 120_000
"""Messages that are remembered at most: a minute at 2 kHz."""


class RecentStates:
    """Remembers serialized messages for some time; one thread adds, any may ask.

    Attributes:
        window: how long [s]; nothing is remembered at 0.
    """

    def __init__(self) -> None:
        self.window = 0.0
        self._states: deque[tuple[int, bytes]] = deque(maxlen=MOST_STATES)

    def take(self, data: bytes, now: int) -> None:
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

    def forget(self) -> None:
        """Let go of all."""
        self._states.clear()
