"""Files that are too large are refused before they take memory."""

import tracemalloc
from pathlib import Path

import pytest

from rbda_ros.description import read_description
from rbda_ros.errors import DescriptionError


def resident():
    """Memory of this process that was ever in use [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def test_a_million_links_are_refused_unread():
    text = "<robot name='many'>" + "<link name='a'/>" * 600_000 + "</robot>"
    before = resident()
    tracemalloc.start()
    with pytest.raises(DescriptionError, match="more than 200000 elements"):
        read_description(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6
    assert resident() - before < 40.0
