"""Cancellation of long work, which checks at each step whether it was cancelled.

The thread that does the work has a token; the loops of assembling, tracing and compiling call
`check_cancelled`. Unfinished results are dropped: nothing refers to them yet.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class CancelledWorkError(Exception):
    """The work was cancelled: a newer model replaces it, or the process ends."""


class CancelToken:
    """Cancels all work that was begun with it. Any thread may do so."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Have the work stop at its next step."""
        self.cancelled = True


class _Current(threading.local):
    tokens: tuple[CancelToken, ...] = ()


_current = _Current()


@contextmanager
def cancelled_by(*tokens: CancelToken) -> Iterator[None]:
    """Let more tokens cancel what this thread does inside the context."""
    before = _current.tokens
    _current.tokens = (*before, *tokens)
    try:
        yield
    finally:
        _current.tokens = before


def check_cancelled() -> None:
    """Raise CancelledWorkError if the work of this thread was cancelled."""
    for token in _current.tokens:
        if token.cancelled:
            raise CancelledWorkError("no longer wanted")


def cancellable(steps: Iterable[T]) -> Iterator[T]:
    """The same steps, and `check_cancelled` before each."""
    for step in steps:
        check_cancelled()
        yield step
