"""Running a node until it is done or told to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from rbda_ros.errors import one_line

FOREVER = 1e8  # [s]
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
        self._came = False
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
        _end_within(GRACE)

    def _wait(self) -> None:
        os.read(self._received, 1)
        _end_within(GRACE)
        with self._lock:
            self._came = True
            act = self._act
        if act is not None:
            act()


def _end_within(seconds: float) -> None:
    """End this process after that time, if it has not ended by itself."""

    def end() -> None:
        print(f"ended {seconds:g} s after the signal without ROS's shutdown", file=sys.stderr)
        end_process(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    # For a call that hangs and holds the interpreter: the kernel ends the process by SIGALRM.
    signal.setitimer(signal.ITIMER_REAL, seconds + 0.5)


def init(arguments: Sequence[str]) -> StopSignals:
    """Initialize ROS; ``spin`` takes what it returns."""
    signals = StopSignals()
    rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    return signals


def make_executor() -> Any:
    """Make the executor with the least delay that this rclpy has."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(
    node: Any,
    done: Future,
    signals: StopSignals,
    first: Callable[[], None] | None = None,
    finish: Callable[[], bool] = lambda: True,
) -> None:
    """Spin until ``done``, then destroy the node and shut ROS down.

    Args:
        node: the only node of the executor.
        done: ends the spin when it completes; completed with None when told to stop.
        signals: what tells it to stop.
        first: run on the executor before anything else.
        finish: ends what works for the node in other threads. If it returns False, some still
            do, and the process ends at once: what they use cannot be destroyed beneath them.
    """
    executor = make_executor()
    executor.add_node(node)
    signals.then(lambda: executor.create_task(done.set_result, None))
    if first is not None:
        executor.create_task(first)
    try:
        while not done.done() and rclpy.ok():
            _spin_some(executor, node, done)
    finally:
        signals.ignore()
        if not finish():
            end_process(0)
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()


def end_process(code: int) -> NoReturn:
    """End this process as it is, threads and all; nothing is destroyed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _spin_some(executor: Any, node: Any, done: Future) -> None:
    try:
        # EventsExecutor.spin() of rclpy 7.1 burns a core and runs nothing; this works.
        executor.spin_until_future_complete(done, FOREVER)
    except Exception as error:  # out of a callback; one bad message must not end the process
        if rclpy.ok():
            node.get_logger().error(f"{type(error).__name__}: {one_line(error)}")
