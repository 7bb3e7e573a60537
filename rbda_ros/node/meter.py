"""How often and how fast the node answers."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Reading:
    """Of the time since the last reading.

    Attributes:
        answers: messages answered.
        rate: of the answers [Hz].
        mean: time from taking a message to having published its answer, on average [s].
        p99: the same, which one in a hundred exceeds [s].
    """

    answers: int
    rate: float
    mean: float
    p99: float


class Meter:
    """Collects the duration of each answer until it is read."""

    def __init__(self) -> None:
        self._since = perf_counter()
        self._durations: list[float] = []

    def add(self, duration: float) -> None:
        """One answer, and how long it took [s]."""
        self._durations.append(duration)

    def read(self) -> Reading:
        """Sum up what was collected, and begin anew."""
        now = perf_counter()
        elapsed, self._since = now - self._since, now
        durations, self._durations = sorted(self._durations), []
        if not durations:
            return Reading(0, 0.0, 0.0, 0.0)
        return Reading(
            answers=len(durations),
            rate=len(durations) / elapsed,
            mean=sum(durations) / len(durations),
            p99=durations[min(len(durations) - 1, int(0.99 * len(durations)))],
        )
