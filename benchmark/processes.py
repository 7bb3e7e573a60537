"""Programs beside a benchmark."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


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
