"""Interleaved timing: contenders take turns, so that a busy machine is busy for all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

ROUNDS = 31


def interleaved(
    contenders: Mapping[str, Callable[[], object]], seconds: float = 0.004
) -> dict[str, float]:
    """Median thread-CPU time of one call of each contender [us]."""
    counts = {}
    for name, call in contenders.items():
        call()
        began = time.thread_time()
        call()
        counts[name] = max(1, min(2000, int(seconds / max(time.thread_time() - began, 1e-7))))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            began = time.thread_time()
            for _ in range(counts[name]):
                call()
            samples[name].append((time.thread_time() - began) / counts[name])
    return {name: 1e6 * statistics.median(taken) for name, taken in samples.items()}
