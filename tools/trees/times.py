"""``python -m tools.trees.times OLD``: times of calls in another tree and in this one, in turns.

Each turn is a process in the environment of one tree, with compiled kernels. The figure is the
processor time of one call: the median over the turns of the least over some repeats.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path

from tools.trees.__main__ import ROOT, environment

TURNS = 5
TIMED = Path(__file__).with_name("timed.py")


def measure(tree: Path) -> dict[str, float]:
    """Microseconds of each call, in one process of a tree."""
    command = [tree / ".venv" / "bin" / "python", TIMED]
    done = subprocess.run(command, cwd=tree, env=environment(), check=True, capture_output=True)
    taken: dict[str, float] = json.loads(done.stdout)
    return taken


def main() -> None:
    """Print the times of both trees, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="a checkout after `make install`")
    old = parser.parse_args().old.resolve()
    for tree in (old, ROOT):
        measure(tree)  # fills the cache of kernels on disk
    turns = [(measure(old), measure(ROOT)) for _ in range(TURNS)]
    print(f"{'call':<52} {'old us':>9} {'new us':>9} {'new/old':>8}")
    for call in turns[0][0]:
        before, after = (statistics.median(turn[k][call] for turn in turns) for k in (0, 1))
        print(f"{call:<52} {before:9.3f} {after:9.3f} {after / before:8.2f}")


if __name__ == "__main__":
    main()
