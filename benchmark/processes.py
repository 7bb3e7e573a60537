"""Programs beside a benchmark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE = 120.0  # [s]


def own_domain() -> None:
    """Keep this process, and those it starts, apart from others on the network."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def until(condition: Callable[[], bool]) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("it did not come up")
        time.sleep(0.1)


@contextlib.contextmanager
def at_priority(number: int) -> Iterator[None]:
    """With all threads of this process ahead of others, where the system permits that."""

    def put(policy: int, number: int) -> None:
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(number))

    try:
        put(os.SCHED_FIFO, number)
    except (PermissionError, FileNotFoundError):
        print("no priority for who measures: its own delays are in the figures", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        put(os.SCHED_OTHER, 0)


@contextlib.contextmanager
def program(folder: Path, module: str, *arguments: str) -> Iterator[int]:
    """A module as a process of its own, its output in the folder; its number."""
    with (folder / f"{module}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10.0)
