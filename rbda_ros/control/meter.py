"""How often, how fast and how well the node answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

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

    ROW = 2 + len(Health._fields)
    """Numbers of one answer: duration and age of its message [s] (or NaN), `Health`."""

    def __init__(self) -> None:
        self.limited = 0  # ever
        self.total = 0  # answers, ever
        self._since = perf_counter()
        self._more = 0  # answers without further numbers
        self._answers: list[tuple[float, float, list[float]]] = []

    def add(self, count: int, rows: NDArray[np.float64]) -> None:
        """Answers, and of some of them the numbers (few or all of them, ROW)."""
        self.total += count
        self._more += count - len(rows)
        self._answers += [(duration, age, health) for duration, age, *health in rows.tolist()]

    def read(self) -> Reading:
        """Sum up what was collected, and begin anew."""
        now = perf_counter()
        elapsed, self._since = now - self._since, now
        answers, self._answers = self._answers, []
        healths = [Health(*health) for _, _, health in answers]
        more, self._more = self._more, 0
        limited = sum(health.limited > 0 for health in healths)
        self.limited += limited
        return Reading(
            answers=len(answers) + more,
            rate=(len(answers) + more) / elapsed,
            processing=_median_and_p99([duration for duration, _, _ in answers]),
            latency=_median_and_p99([d + age for d, age, _ in answers if not math.isnan(age)]),
            residual=max((health.residual for health in healths), default=math.nan),
            condition=max((1.0 / health.conditioning for health in healths), default=math.nan),
            limited=limited,
        )


def _median_and_p99(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return math.nan, math.nan
    ordered, last = sorted(values), len(values) - 1
    return ordered[last // 2], ordered[min(last, int(0.99 * len(values)))]
