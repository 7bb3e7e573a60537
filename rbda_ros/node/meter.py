"""How often, how fast and how well the node answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from rbda_ros.algorithms.feedforward import Health


@dataclass(frozen=True)
class Reading:
    """Of the time since the last reading; NaN where nothing was measured.

    Attributes:
        answers: messages answered.
        rate: of the answers [Hz].
        processing: median and 99th percentile of the time from taking a message to having
            published its answer [s].
        latency: the same of the time from a message's stamp to having published its answer [s].
        residual: largest |phi| of the loops [m, or sine of an angle].
        condition: largest condition number of a loop.
        limited: answers with an effort that was clipped at its limit.
    """

    answers: int
    rate: float
    processing: tuple[float, float]
    latency: tuple[float, float]
    residual: float
    condition: float
    limited: int


class Meter:
    """Collects what each answer took until it is read."""

    def __init__(self) -> None:
        self.limited = 0  # ever
        self._since = perf_counter()
        self._begin()

    def _begin(self) -> None:
        self._durations: list[float] = []
        self._ages: list[float] = []
        self._residual, self._conditioning = 0.0, 1.0
        self._limited = 0

    def add(self, duration: float, age: int, health: Health) -> None:
        """One answer: how long it took [s], how old its message was [ns], how well it went.

        A negative age is none: the message had no stamp.
        """
        self._durations.append(duration)
        if age >= 0:
            self._ages.append(age * 1e-9 + duration)
        if health.residual > self._residual:
            self._residual = health.residual
        if health.conditioning < self._conditioning:
            self._conditioning = health.conditioning
        if health.limited:
            self._limited += 1

    def read(self) -> Reading:
        """Sum up what was collected, and begin anew."""
        now = perf_counter()
        elapsed, self._since = now - self._since, now
        self.limited += self._limited
        reading = Reading(
            answers=len(self._durations),
            rate=len(self._durations) / elapsed,
            processing=_median_and_p99(self._durations),
            latency=_median_and_p99(self._ages),
            residual=self._residual if self._durations else math.nan,
            condition=1.0 / self._conditioning if self._durations else math.nan,
            limited=self._limited,
        )
        self._begin()
        return reading


def _median_and_p99(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return math.nan, math.nan
    ordered, last = sorted(values), len(values) - 1
    return ordered[last // 2], ordered[min(last, int(0.99 * len(values)))]
