"""Short runs of what `make fuzz` runs long, and what once went wrong again."""

import random

import pytest

from tools.hardening.fuzz import known, mutate
from tools.hardening.fuzz_targets import TARGETS, seeds

COUNT = 60


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_unexpected(name):
    rng, good = random.Random(19), seeds(name)
    for data in (*good[:3], *known(name)):
        TARGETS[name](data)
    for _ in range(COUNT):
        TARGETS[name](mutate(rng.choice(good), good, rng))
