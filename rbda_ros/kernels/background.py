"""Things that take a while to build: in the background, or now for whoever cannot wait.

One daemon thread builds what was asked for, in order. It holds what waits only weakly, so that a
robot that is dropped is not compiled. Building is serial: LLVM would be locked anyway.
"""

from __future__ import annotations

import atexit
import collections
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from rbda_ros.cluster_tree.cancelling import CancelledWorkError, CancelToken, cancelled_by

T = TypeVar("T")

_ending = CancelToken()
"""Cancelled when the process ends."""
begin_thread: Callable[[], None] | None = None
"""Called in the thread when it starts; for whoever owns the process."""
_log = logging.getLogger(__name__)
_building = threading.RLock()
"""Held while something is built, and taken before a fork, so that no child inherits half of it."""


class Lazy(Generic[T]):
    """A value that is built once.

    Attributes:
        value: None until it is there, and if it was withdrawn.
        error: why it will never be there.
    """

    def __init__(self, name: str, build: Callable[[], T]) -> None:
        self.name = name
        self.value: T | None = None
        self.error: Exception | None = None
        self.withdrawn: T | None = None
        self._build = build
        self._worker: _Worker | None = None

    def request(self) -> None:
        """Have it built in the background; asking again costs nothing."""
        if self._worker is not _worker and self.value is None and self.error is None:
            self._worker = _worker
            _worker.add(self)

    def wait(self) -> T | None:
        """The value, built here and now if it must be; None if it cannot be built."""
        with _building:
            if self.value is None and self.error is None:
                try:
                    with cancelled_by(_ending):
                        self.value = self._build()
                except CancelledWorkError:
                    return None
                except Exception as error:  # whatever it is, the virtual machine goes on
                    self.error = error
                    _log.warning("%s is not compiled and stays slow: %s", self.name, error)
            return self.value

    def withdraw(self, why: Exception) -> None:
        """Take the value back. It lives on, for whoever is using it."""
        with _building:
            self.withdrawn, self.value, self.error = self.value, None, why


class _Worker:
    """The thread, started when there is something to build, and what waits for it."""

    def __init__(self) -> None:
        self.waiting: collections.deque[weakref.ref[Lazy]] = collections.deque()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def add(self, lazy: Lazy) -> None:
        with self.lock:
            self.waiting.append(weakref.ref(lazy))
            if self.thread is None and not _ending.cancelled:
                thread = threading.Thread(target=self.run, name="rbda_ros compiler", daemon=True)
                try:
                    thread.start()
                    self.thread = thread
                except RuntimeError as error:  # the system allows no more; the next request tries
                    _log.warning("%s is not compiled yet and stays slow: %s", lazy.name, error)

    def run(self) -> None:
        if begin_thread is not None:
            begin_thread()
        while not _ending.cancelled:
            with self.lock:
                if not self.waiting:
                    self.thread = None
                    return
                reference = self.waiting.popleft()
            lazy = reference()
            if lazy is not None:
                lazy.wait()
            del lazy

    def end(self, patience: float) -> bool:
        """Let the function that LLVM is at finish: the process must not end beneath it."""
        _ending.cancel()
        thread = self.thread
        if thread is not None:
            thread.join(timeout=patience)
        return thread is None or not thread.is_alive()


_worker = _Worker()


def _in_child() -> None:
    """Start afresh after a fork, where the thread does not exist; requests are made again."""
    global _worker
    _worker = _Worker()
    _building.release()


def end_compiling(patience: float) -> bool:
    """Compile nothing more in this process; whether the compiler stops within so many seconds.

    Kernels that are not compiled by then are answered by the virtual machine.
    """
    return _worker.end(patience)


atexit.register(lambda: end_compiling(10.0))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_building.acquire, after_in_parent=_building.release, after_in_child=_in_child
    )
