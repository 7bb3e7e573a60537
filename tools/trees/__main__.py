"""``python -m tools.trees OLD``: differences from another tree, which `make` installed."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
from pathlib import Path

from tools.trees import cases, compare

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """The variables of this process that do not choose among environments of Python."""
    left_out = "_ROS_WHEELS", "LD_LIBRARY_PATH", "PYTHON"
    return {k: v for k, v in os.environ.items() if not k.startswith(left_out)}


def record(tree: Path, given: Path, into: Path) -> None:
    """Run the cases in a tree's own environment."""
    python = tree / ".venv" / "bin" / "python"
    script = ROOT / "tools" / "trees" / "record.py"
    subprocess.run([python, script, given, into], cwd=tree, env=environment(), check=True)


def main() -> None:
    """Make cases, record both trees, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="a checkout after `make install`")
    parser.add_argument("--recordings", type=int, default=400, help="of streams")
    parser.add_argument("--show", type=int, default=2, help="examples of each difference")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "build" / "trees", help="where files go"
    )
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    made = cases.make(given.old / "test" / "mechanisms", given.recordings)
    (given.keep / "cases").write_bytes(pickle.dumps(made))
    found = []
    for name, tree in (("old", given.old), ("new", ROOT)):
        record(tree.resolve(), given.keep / "cases", given.keep / name)
        found.append(pickle.loads((given.keep / name).read_bytes()))
    old, new = found
    print(*compare.of_calls(made, old["calls"], new["calls"], given.show), sep="\n")
    print(*compare.of_services(made, old["services"], new["services"], given.show), sep="\n")
    print(*compare.of_streams(made, old["streams"], new["streams"], given.show), sep="\n")


if __name__ == "__main__":
    main()
