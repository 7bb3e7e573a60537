"""Searching for closed loops beside the stream: where there are none, it takes half a second."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import Any

from rbda_ros.errors import ClosureError
from rbda_ros.node.worker import result_of
from rbda_ros.robot.feedforward_call import FeedforwardCall

PAUSE = 2.0
"""Time between two searches, so that they do not take what others need [s]."""


class Search:
    """One search at a time, for a call that did not find the closed position nearby.

    Args:
        background: runs something in another thread.
    """

    def __init__(self, background: Callable[[Callable[[], Any]], Future[Any]]) -> None:
        self._background = background
        self._call: FeedforwardCall | None = None  # that it is for
        self._found: Future[Any] | None = None
        self._began = 0.0

    def call_again(self, call: FeedforwardCall) -> list[float]:
        """FeedforwardCall with what was found, or begin to search.

        Raises:
            ClosureError: nothing was found, or not yet.
        """
        found, began = self._found, self._began
        if found is None or self._call is not call or self._is_over(found, began):
            self._call, self._began = call, perf_counter()
            self._found = found = self._background(call.find())
        if not found.done():
            raise ClosureError(
                "the loops do not close near the last position; a closed one is being searched for"
            )
        call.start_from(result_of(found))
        return call()

    @staticmethod
    def _is_over(found: Future[Any], began: float) -> bool:
        return found.done() and perf_counter() - began > PAUSE
