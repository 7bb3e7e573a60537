"""Which threads of the node go first where there are more than processors.

Long work steps back, which every user may have it do. The threads of the stream ask for short
turns, for which they need not wait until others have had theirs; that is every user's too. With a
real-time priority they go ahead of all else, other processes too, if asked for and permitted.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

STEPS_BACK = 5
"""Niceness of threads that do long work, beyond that of the main thread. With more, those that wait
for the interpreter would wait longer while one of these has it."""
STREAM = "joint_states", "joint_commands", "dds.shm.", "dds.udp."
"""How the names begin of the threads that a state passes: ours, and those of Fast DDS."""
SLICE = 100_000
"""How long one of these works before others have their turn [ns]: the least that Linux takes, and
twice what a state needs. Others ask for 3 ms."""


def step_back() -> None:
    """Have the system run this thread, and those it starts, rather after others.

    Where niceness belongs to threads, as on Linux.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + STEPS_BACK
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(niceness, 19))


class StreamPriority:
    """How the stream's threads are scheduled: as all others, until it is set."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._priority: int | None = None

    def set(self, priority: int) -> None:
        """Have them go by SCHED_FIFO, with so much; 0 for short turns. Or warn why not."""
        if priority == self._priority:
            return
        self._priority = priority
        if why := _give_stream(priority):
            self._logger.warning(f"realtime_priority {priority} is not in use: {why}")

    def end(self) -> None:
        """Let those that stay when the stream is closed go on without a priority."""
        if self._priority:
            self.set(0)
        self._priority = None


def _give_stream(priority: int) -> str:
    """Why the threads do not have a priority now; empty if they do."""
    if sys.platform != "linux":
        return "there is no SCHED_FIFO here" if priority else ""
    try:
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text().startswith(STREAM):
                _give_thread(int(task.name), priority)
    except PermissionError:
        if priority:
            _give_stream(0)
        return "the system does not permit it; raise rtprio in /etc/security/limits.conf"
    except OSError as error:
        return str(error)
    return ""


def _give_thread(thread: int, priority: int) -> None:
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    os.sched_setscheduler(thread, policy, os.sched_param(priority))
    if not priority:
        with suppress(ImportError, OSError):  # it was not built, or the system knows no slices
            from rbda_ros._native.stream import set_slice  # which needs rclpy, unlike the rest

            set_slice(thread, SLICE)
