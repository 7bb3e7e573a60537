"""Runs one command as one line of output: step.py [--idle] NAME TITLE COMMAND...

The line shows the title and the seconds it takes. What the command prints goes into
build/logs/NAME.log; if it fails, its last lines are shown and its exit code is passed on.
With --idle the command gets no more of the processors than others leave.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

LOGS = Path(__file__).resolve().parents[1] / "build" / "logs"
LINES_SHOWN = 40


def run_step(name, title, command):
    """Run the command; return its exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    start = time.monotonic()

    def show(end):
        print(f"{title:<60}{time.monotonic() - start:6.0f} s", end=end, flush=True)

    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while True:
            try:
                code = process.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if sys.stdout.isatty():
                    show(end="\r")
            except KeyboardInterrupt:
                process.wait()
                return 130
    show(end="\n" if code == 0 else "  failed\n")
    if code != 0:
        lines = log.read_text(errors="replace").splitlines()
        print(*lines[-LINES_SHOWN:], sep="\n")
        print(f"The whole log: {log.relative_to(LOGS.parents[1])}")
    return code


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[0] == "--idle":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        given = given[1:]
    sys.exit(run_step(given[0], given[1], given[2:]))
