"""`rbda_ros demo`, as `make run` runs it."""

import re
import signal
from pathlib import Path

import pytest


def test_shows_efforts_and_an_answer_and_ends(graph):
    demo = graph.run("demo", "--seconds", "3")
    assert demo.wait() == 0
    assert "Traceback" not in demo.log
    assert re.search(r"\d+ Hz, latency \d+\.\d+ ms", demo.log)
    assert re.search(r"hip_flexion_rotor [+-]\d+\.\d+ N m", demo.log)
    assert "~/inverse_dynamics, to hold it still: hip_abduction_rotor" in demo.log


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly_when_told_to(graph, how):
    demo = graph.run("demo")
    graph.client().until(lambda: "Hz" in demo.log)
    pid = demo.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(children) == 2
    assert demo.stop(how) == 0
    assert "Traceback" not in demo.log
    assert not any(Path("/proc", child).exists() for child in children)
