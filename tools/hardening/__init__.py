"""`make soak`, `make faults`, `make fuzz`: each ends by itself, with a table of verdicts."""

import sys
from pathlib import Path

# They talk to nodes, and make robots, as the tests do.
_TEST = Path(__file__).resolve().parents[2] / "test"
sys.path[:0] = [str(_TEST), str(_TEST / "control")]
