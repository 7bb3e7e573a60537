"""Ctrl-C and SIGTERM end every program of ours, also one that hangs. Imports no ROS."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

GRACE = 4.0
"""Longest time from Ctrl-C or SIGTERM to the end of the process [s]."""


class StopSignals:
    """Ctrl-C and SIGTERM: each ends the process, cleanly or after `GRACE` seconds at the latest.

    rclpy's handlers shut ROS down in the middle of a callback, which then fails loudly, and
    Python's handler raises KeyboardInterrupt there. This one lets the callback end first. What
    hangs after a signal, such as a shutdown inside DDS, is cut off.
    """

    def __init__(self) -> None:
        self._received, written = os.pipe()
        os.set_blocking(written, False)
        # Written to at once, also while the main thread is inside the executor.
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._act: Callable[[], Any] | None = None
        self._came = self._ending = False
        self._lock = threading.Lock()
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def then(self, act: Callable[[], Any]) -> None:
        """Call ``act`` in a thread of its own when a signal comes; at once if one has come."""
        with self._lock:
            self._act = act
            came = self._came
        if came:
            act()

    def ignore(self) -> None:
        """Ignore further signals while the process ends; it ends within `GRACE` seconds.

        One that came while Python ends would look like a crash. Ctrl-C under `ros2 launch` is such
        a case: the terminal signals every process, and launch signals them again.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self._begin_end()

    def _wait(self) -> None:
        os.read(self._received, 1)
        self._begin_end()
        with self._lock:
            self._came = True
            act = self._act
        if act is not None:
            act()

    def _begin_end(self) -> None:
        """End this process `GRACE` seconds after the first call, if it has not ended by itself."""
        with self._lock:
            if self._ending:
                return
            self._ending = True
        timer = threading.Timer(GRACE, _give_up)
        timer.daemon = True
        timer.start()
        # For a call that hangs and holds the interpreter: the kernel ends the process by SIGALRM.
        signal.setitimer(signal.ITIMER_REAL, GRACE + 0.9)


def _give_up() -> None:
    print(f"ended {GRACE:g} s after the signal: something did not stop in time", file=sys.stderr)
    end_process(0)


def end_process(code: int) -> NoReturn:
    """End this process as it is, threads and all; nothing is destroyed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
