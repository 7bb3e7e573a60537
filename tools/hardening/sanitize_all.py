"""`make sanitize`: all C of ours under sanitizers, each part in a process of its own.

The native calls, the stream's thread with the simulator, and exported functions under
AddressSanitizer and UBSan; the stream's thread and the simulator under ThreadSanitizer too.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from tools.hardening.verdicts import Verdict, conclude

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"


def parts(calls: int) -> dict[str, list[str]]:
    """Commands that are run, by their names in the table."""
    tools = ROOT / "tools"
    return {
        "native calls, ASan and UBSan": [f"{tools / 'sanitize.py'}", str(calls)],
        "stream's thread, ASan and UBSan": [f"{tools / 'sanitize_stream.py'}", "address"],
        "stream's thread, TSan": [f"{tools / 'sanitize_stream.py'}", "thread"],
        "exported C, ASan and UBSan": ["-m", "tools.hardening.sanitize_export"],
    }


def run(what: str, command: list[str]) -> Verdict:
    """Run one part; what it said last is what was found."""
    log = LOGS / f"sanitize_{what.replace(' ', '_')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    seconds = time.monotonic() - began
    if done.returncode != 0:
        return Verdict(what, False, f"ended with {done.returncode}: see {log.relative_to(ROOT)}")
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = [line for line in lines if re.search("[a-z]", line)][-2:]  # not pytest's dots
    return Verdict(what, True, f"{'; '.join(said)} ({seconds:.0f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000, help="native calls")
    parser.add_argument("--only", default="", help="part of a line's name")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/hardening.md")
    asked = parser.parse_args()
    verdicts = []
    for what, command in parts(asked.calls).items():
        if asked.only in what:
            verdicts.append(run(what, command))
            print(f"{verdicts[-1].word:<9} {what}: {verdicts[-1].found}", flush=True)
    conclude("sanitize", f"{asked.calls} native calls from 8 threads", verdicts, asked.write)


if __name__ == "__main__":
    main()
