"""Long work in a thread of lower priority, one piece after the other; it can be cancelled."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from rbda_ros.cluster_tree.cancelling import CancelToken, cancelled_by, check_cancelled

T = TypeVar("T")

NICENESS = 5
"""Niceness of threads that do long work, beyond that of the main thread. With more, those that wait
for the interpreter would wait longer while one of these has it."""


def lower_priority() -> None:
    """Have the system prefer other threads to this one, and to those that it starts.

    Where niceness belongs to threads, as on Linux.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(niceness, 19))


class Worker:
    """One thread of lower priority, started when there is work.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._ending = CancelToken()
        self._pending: set[Future[Any]] = set()
        self._thread = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=name, initializer=lower_priority
        )

    def submit(self, make: Callable[[], T], *tokens: CancelToken) -> Future[T]:
        """Begin to make something, once all before it is made; these tokens cancel it too.

        Raises:
            RuntimeError: it was told to stop, or the system allows no more threads.
        """

        def run() -> T:
            with cancelled_by(self._ending, *tokens):
                check_cancelled()
                return make()

        future = self._thread.submit(run)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    @property
    def pending(self) -> int:
        """Number of jobs that run or wait."""
        return len(self._pending)

    @property
    def ending(self) -> bool:
        """Whether it was cancelled."""
        return self._ending.cancelled

    def cancel(self) -> None:
        """Cancel running work at its next step, and waiting work."""
        self._ending.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def wait(self, deadline: float) -> bool:
        """Whether the thread has come to rest by a monotonic time."""
        return not wait(set(self._pending), max(deadline - time.monotonic(), 0.0)).not_done
