"""Which threads of the node go first where there are more than processors.

Long work steps back, which every user may have it do. The stream goes ahead of all else, other
processes too, if asked for and permitted: a state that waits for a processor waits 3 ms.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

STEPS_BACK = 5
"""Niceness of threads that do long work, beyond that of the main thread. With more, those that wait
for the interpreter would wait longer while one of these has it."""
STREAM = "joint_states", "joint_commands", "dds.shm.", "dds.udp."
"""How the names begin of the threads that a state passes: ours, and those of Fast DDS."""


def step_back() -> None:
    """Have the system run this thread, and those it starts, rather after others.

    Where niceness belongs to threads, as on Linux.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + STEPS_BACK
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(niceness, 19))


class StreamPriority:
    """The priority of the stream's threads: that of all others, until it is set."""

    def __init__(self, logger: Any) -> None:
        self._logger, self._priority = logger, 0

    def set(self, priority: int) -> None:
        """Have them go by SCHED_FIFO, with so much; 0 for as all others. Or warn why not."""
        if priority == self._priority:
            return
        self._priority = priority
        if why := _give_stream(priority):
            self._logger.warning(f"realtime_priority {priority} is not in use: {why}")


def _give_stream(priority: int) -> str:
    """Why the threads do not have a priority now; empty if they do."""
    if sys.platform != "linux":
        return "there is no SCHED_FIFO here" if priority else ""
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    try:
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text().startswith(STREAM):
                os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))
    except PermissionError:
        return "the system does not permit it; raise rtprio in /etc/security/limits.conf"
    except OSError as error:
        return str(error)
    return ""
