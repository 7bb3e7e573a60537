"""Short runs of what `make fuzz` runs long, and what once went wrong again."""

import random

import pytest

from rbda_ros.description import read_description
from tools.hardening.fuzz import known, mutate
from tools.hardening.fuzz_targets import TARGETS, close, seeds

COUNT = 60
SLOW = {"assembly": 10, "xacro": 30}
"""Inputs of targets that take longer."""


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_unexpected(name):
    rng, good = random.Random(19), seeds(name)
    try:
        for data in (*good[:3], *known(name)):
            TARGETS[name](data)
        for _ in range(SLOW.get(name, COUNT)):
            TARGETS[name](mutate(rng.choice(good), good, rng))
    finally:
        close()


@pytest.mark.parametrize("name", ["urdf", "sdf"])
def test_inputs_to_begin_from_are_good(name):
    for data in seeds(name):
        assert read_description(data.decode()).joints
