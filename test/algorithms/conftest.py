"""Algorithms are tested as they were traced; test/kernels holds machine code to that."""

import pytest


@pytest.fixture(autouse=True)
def no_machine_code(monkeypatch):
    """Hundreds of robots that answer a few calls each are not worth compiling."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
