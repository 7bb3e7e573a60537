"""Calls of one robot, made in the background, each for some joints and terms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from rbda_ros.robot import Robot
from rbda_ros.robot.feedforward_call import FeedforwardCall

Joints = tuple[str, ...]
Kind = tuple[Joints, Joints | None, bool]
"""Joints that are measured, joints whose acceleration is given, and whether wrenches are."""
Key = tuple[Joints, Joints | None, bool, tuple[str, ...]]
"""The same, and the terms."""
Prepared = tuple[Key, FeedforwardCall]

MOST_CALLS = 30
"""That are cached."""
MOST_PREPARED = 2
"""Models that may come into use: one from a description, one with a load."""


class MadeCalls:
    """A cache of calls.

    Args:
        robot: whose they are.
        background: runs something in another thread.
        prepared: one that is there already.
    """

    def __init__(
        self,
        robot: Robot,
        background: Callable[[Callable[[], Any]], Future[Any]],
        prepared: Prepared | None,
    ) -> None:
        self._robot, self._background = robot, background
        self._calls: dict[Key, Future[FeedforwardCall]] = {}
        if prepared is not None:
            key, call = prepared
            self._calls[key] = Future()
            self._calls[key].set_result(call)

    def make(self, kind: Kind, terms: tuple[str, ...]) -> Future[FeedforwardCall]:
        """Begin to make one, if that was not done before."""
        key = *kind, terms
        if key not in self._calls:
            if len(self._calls) >= MOST_CALLS:
                self._calls.clear()
            self._calls[key] = self._background(partial(_call, self._robot, key))
        return self._calls[key]

    def another(self, kind: Kind, terms: tuple[str, ...]) -> FeedforwardCall:
        """One more of a kind that is made: the same kernel, and arrays that nobody uses yet."""
        key = *kind, terms
        call = _call(self._robot, key)
        self._calls[key] = Future()
        self._calls[key].set_result(call)
        return call


class PreparedCalls:
    """Calls for models that may come into use; of the newest few, since a call has its model."""

    def __init__(self) -> None:
        self._entries: deque[tuple[Robot, Prepared]] = deque(maxlen=MOST_PREPARED)

    def add(self, robot: Robot, prepared: Prepared) -> None:
        """Keep one until its model comes into use; in any thread."""
        self._entries.append((robot, prepared))

    def take(self, robot: Robot) -> Prepared | None:
        """That of a model, which is not kept any longer."""
        for entry in list(self._entries):
            if entry[0] is robot:
                with suppress(ValueError):  # a newer one has pushed it out
                    self._entries.remove(entry)
                return entry[1]
        return None

    def clear(self) -> None:
        """Let go of all."""
        self._entries.clear()


def prepare_call(robot: Robot, kind: Kind, terms: tuple[str, ...]) -> Prepared:
    """Make one now, in any thread, and machine code of it; InputError for other joints."""
    key = *kind, terms
    call = _call(robot, key)
    call.kernel.compile()
    return key, call


def _call(robot: Robot, key: Key) -> FeedforwardCall:
    joints, wanted, wrenches, terms = key
    return robot.feedforward(joints, wanted, terms=terms, wrenches=wrenches)
