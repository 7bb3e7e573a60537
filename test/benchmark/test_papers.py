"""The papers' claims still stand: counts and accuracy, without times."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(600)  # two minutes alone; other tests share the cores
def test_no_claim_of_the_papers_flips():
    command = [sys.executable, "-m", "benchmark.papers", "--quick"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
