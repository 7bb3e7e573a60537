"""The papers' claims still stand: counts and accuracy, without times."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.papers.__main__ import MODULES

ROOT = Path(__file__).resolve().parents[2]
LONG = {"chignoli2024_fig10", "growth", *(f"sathya2024_fig{k}" for k in (1, 3, 4, 5))}
"""Ten seconds and more each, for counts of algorithms that other tests hold to their numbers."""


@pytest.mark.parametrize(
    "figure", [pytest.param(m, marks=[pytest.mark.nightly] * (m in LONG)) for m in MODULES]
)
def test_no_claim_of_the_papers_flips(figure):
    command = [sys.executable, "-m", "benchmark.papers", "--quick", figure]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
