"""Ctrl-C, SIGTERM and SIGHUP end every program of ours, also one that hangs. Imports no ROS.

Programs that run until they are stopped end with exit code 0. A computation that is cut short, or a
program that has not begun yet, ends with 128 plus the number of the signal, as in a shell.

SIGHUP comes when a terminal or an SSH connection is closed. It stays ignored under `nohup`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

GRACE = 4.0
"""Longest time from a signal to the end of the process [s]."""
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class StopSignals:
    """Signals to end: the first ends the process, cleanly or else after `GRACE` seconds.

    rclpy's handlers shut ROS down in the middle of a callback, which then fails loudly, and
    Python's handler raises KeyboardInterrupt there. This one lets the callback end first. What
    hangs after a signal, such as a shutdown inside DDS, is cut off.

    Further signals are ignored: one that came while Python ends would look like a crash. Ctrl-C
    under `ros2 launch` is such a case: the terminal signals every process, and launch signals them
    again.

    Args:
        interrupt: raise KeyboardInterrupt in the main thread. The exit code is then that of a
            computation that was cut short. Otherwise the process ends at once, with exit code 0,
            until `then` says what to do instead.
    """

    def __init__(self, interrupt: bool = False) -> None:
        self._received, written = os.pipe()
        os.set_blocking(written, False)
        # Written to at once, also while the main thread is inside the executor.
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._interrupt = interrupt
        self.exit_code = 0
        self._act: Callable[[], Any] | None = None if interrupt else lambda: end_process(0)
        self._came = self._ending = False
        self._lock = threading.Lock()
        threading.Thread(target=self._wait, name="signals", daemon=True).start()
        for number in _heeded():
            signal.signal(number, self._on_signal)

    def then(self, act: Callable[[], Any]) -> None:
        """Call ``act`` in a thread of its own when a signal comes, instead of ending at once."""
        with self._lock:
            self._act = act
            came = self._came
        if came:
            act()

    def ignore(self) -> None:
        """Ignore signals from here on: the process ends, within `GRACE` seconds."""
        _ignore_signals()
        self._begin_end()

    def _on_signal(self, number: int, _: Any) -> None:
        _ignore_signals()
        if self._interrupt:
            self.exit_code = 128 + number
            raise KeyboardInterrupt

    def _wait(self) -> None:
        (number,) = os.read(self._received, 1)
        if self._interrupt:
            self.exit_code = 128 + number
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
        timer = threading.Timer(GRACE, self._give_up)
        timer.daemon = True
        timer.start()
        # For a call that hangs and holds the interpreter: the kernel ends the process by SIGALRM.
        signal.setitimer(signal.ITIMER_REAL, GRACE + 0.9)

    def _give_up(self) -> None:
        print(
            f"ended {GRACE:g} s after the signal: something did not stop in time", file=sys.stderr
        )
        end_process(self.exit_code)


def end_at_signals(code: int | None = None) -> None:
    """Have Ctrl-C, SIGTERM and SIGHUP end this process at once, without a traceback.

    Args:
        code: exit code; None for 128 plus the number of the signal.
    """
    for number in _heeded():
        signal.signal(number, lambda n, _: os._exit(128 + n if code is None else code))


def runs_module_of(package: str) -> bool:
    """Whether this process is `python -m PACKAGE.MODULE`."""
    words = sys.orig_argv
    return any(
        option == "-m" and module.startswith(f"{package}.") for option, module in pairwise(words)
    )


def end_process(code: int) -> NoReturn:
    """End this process as it is, threads and all; nothing is destroyed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _heeded() -> list[signal.Signals]:
    """All but SIGHUP where that is ignored, as under `nohup`."""
    left = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in SIGNALS if not (left and number == signal.SIGHUP)]


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
