"""Efforts of samples, low-passed without delay: averages over what came before and after."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.recordings.labeller import Sample, Vector

LOWEST = 0.1
"""Cutoff that bounds what is remembered [Hz]."""
HALF_WIDTH = 0.36
"""Of a Hann window that lets half of the power at 1 Hz through [s]."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A sample, and the message that it is of.

    Attributes:
        time: when it was recorded [ns].
        data: the message.
        labels: of it, each by its name, serialized.
        sample: what is known by them.
    """

    time: int
    data: bytes
    labels: list[tuple[str, bytes]]
    sample: Sample


class Smoother:
    """Gives samples back with averaged efforts, measured and computed, at their own stamps.

    Positions and velocities stay as they are, so that loops stay closed. Averages end where an
    episode does.

    Args:
        cutoff: frequency of which half of the power is let through [Hz].

    Raises:
        InputError: a cutoff that would take too much memory.
    """

    def __init__(self, cutoff: float) -> None:
        if not LOWEST <= cutoff < float("inf"):
            raise InputError(f"the cutoff is {cutoff:g} Hz; give {LOWEST:g} Hz or more")
        self._reach = max(1, round(1e9 * HALF_WIDTH / cutoff))  # [ns]
        self._known: deque[Labelled] = deque()
        self._waiting: deque[Labelled] = deque()

    def add(self, labelled: Labelled) -> Iterator[Labelled]:
        """Take the next of an episode; those whose averages are known by now."""
        self._known.append(labelled)
        self._waiting.append(labelled)
        while self._waiting[0].sample.stamp + self._reach <= labelled.sample.stamp:
            yield self._smoothed()

    def end(self) -> Iterator[Labelled]:
        """The rest of an episode."""
        while self._waiting:
            yield self._smoothed()
        self._known.clear()

    def _smoothed(self) -> Labelled:
        labelled = self._waiting.popleft()
        sample = labelled.sample
        while self._known[0].sample.stamp <= sample.stamp - self._reach:
            self._known.popleft()
        near = []
        for other in self._known:
            if other.sample.stamp >= sample.stamp + self._reach:
                break
            near.append(other.sample)
        away = np.array([other.stamp - sample.stamp for other in near]) / self._reach
        weights = 0.5 * (1.0 + np.cos(np.pi * away))
        measured, external = sample.measured, sample.external
        if measured is not None:
            measured = _average([other.measured for other in near], weights)
        if external is not None:
            external = _average([other.external for other in near], weights)
        feedforward = _average([other.feedforward for other in near], weights)
        averaged = replace(sample, measured=measured, feedforward=feedforward, external=external)
        return replace(labelled, sample=averaged)


def _average(values: Sequence[Vector | None], weights: Vector) -> Vector:
    known = [k for k, value in enumerate(values) if value is not None]
    return np.average([values[k] for k in known], axis=0, weights=weights[known])
