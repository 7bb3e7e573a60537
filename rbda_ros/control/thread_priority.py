"""Which threads of the node go first where there are more than processors.

Long work lowers its priority (`control/worker.py`). The threads of the stream ask for short time
slices, for which they need not wait until others have had theirs; every user may do both. With a
real-time priority they go ahead of all else, other processes too, where the system permits it, and
as long as they leave enough to the others.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rbda_ros.control.native import set_slice

STREAM = "stream", "dds.shm.", "dds.udp."
"""How the names begin of the threads that a state passes: ours, and those of Fast DDS."""
SLICE = 100_000
"""How long one of these works before others have their turn [ns]: the least that Linux takes, and
twice what a state needs. Others have up to 3 ms."""
AUTOMATIC, USUAL = -1, 40
"""A priority of our choice, in a process of our own; and which: ros2_control takes 50."""
MAX_WORK = 0.5
"""Processors that they may keep busy with a priority, all together: ten times what 1 kHz needs."""
LEAST_WINDOW = 0.5
"""Over which this is measured [s]."""

own_process = False
"""Whether there is nothing in this process but the node, so that Fast DDS works for it alone."""


class StreamPriority:
    """How the stream's threads are scheduled: as all others, until it is set."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._asked: int | None = None
        self._priority = 0  # that they have, or had before they had too much to do
        self._too_much = False
        self._time = self._work = 0.0  # when they were looked at, and what they had done by then

    def set(self, asked: int) -> None:
        """Schedule them with SCHED_FIFO at this priority; 0 for short turns. Or say why not."""
        if asked == self._asked:
            return
        self._asked, self._too_much = asked, False
        self._priority = asked if asked >= 0 else USUAL * own_process
        self._time, self._work = time.monotonic(), _work()
        if why := _give_stream(self._priority):
            self._priority = 0
            if asked > 0:
                self._logger.warning(f"realtime_priority {asked} is not in use: {why}")
            else:
                self._logger.info(f"joint_states are answered without real-time priority: {why}")

    def tend(self) -> None:
        """Take the priority from them while they leave too little to others; now and then."""
        now = time.monotonic()
        if not self._priority or now - self._time < LEAST_WINDOW:
            return
        work = _work()
        share = (work - self._work) / (now - self._time)
        self._time, self._work = now, work
        if share > MAX_WORK and not self._too_much:
            self._too_much = not _give_stream(0)
            self._logger.warning(
                f"messages keep {share:.1f} processors busy: no real-time priority until there are "
                "fewer; look for a publisher that never rests"
            )
        elif share < 0.5 * MAX_WORK and self._too_much:
            self._too_much = bool(_give_stream(self._priority))

    def end(self) -> None:
        """Let those that stay when the stream is closed go on without a priority."""
        if self._priority:
            _give_stream(0)
        self._asked, self._priority = None, 0


def _give_stream(priority: int) -> str:
    """Why the threads do not have a priority now; empty if they do."""
    if sys.platform != "linux":
        return "there is no SCHED_FIFO here" if priority else ""
    try:
        for task in _stream():
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
        with suppress(OSError):  # the system knows no slices
            set_slice(thread, SLICE)


def _work() -> float:
    """Processor time of all threads of the stream [s]."""
    if sys.platform != "linux":
        return 0.0
    ticks = 0
    for task in _stream():
        with suppress(OSError):  # it has ended since
            user, system = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def _stream() -> Iterator[Path]:
    """The stream's threads, as the system lists them."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended since
            if (task / "comm").read_text().startswith(STREAM):
                yield task
