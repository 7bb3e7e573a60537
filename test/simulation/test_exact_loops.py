"""Robots with loops that are held and shaken: the cases of the benchmark."""

from __future__ import annotations

import pytest

from benchmark.simulation import CASES, shaken
from tools.hardening.simulated_day import simulated


def check(name, seconds):
    motion = shaken(CASES[name].load(), CASES[name], seconds, "rk4")
    assert motion.finite
    assert motion.gap < 1e-9
    assert motion.balance < 1e-6 * max(motion.energy, 1.0)


@pytest.mark.parametrize("name", ["demo leg", "delta robot", "Stewart platform"])
def test_loops_stay_closed_and_energy_is_the_work_of_the_motors(name):
    check(name, 0.1 if name == "Stewart platform" else 0.5)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", list(CASES))
def test_the_same_for_a_minute(name, monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    check(name, 60.0)


@pytest.mark.nightly
def test_two_hours_without_growing_memory(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    day = simulated(2.0)
    assert day.finite
    assert day.gap < 1e-9
    assert day.growth < 1.0
