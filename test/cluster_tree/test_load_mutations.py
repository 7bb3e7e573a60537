"""Mutated mechanisms through the whole of load_robot: a ModelError or a robot that computes."""

from __future__ import annotations

import random
import time
from typing import Any

import casadi as ca
import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS, Mechanism
from test_mutations import mutate_elements, mutate_mapping, mutate_tokens

from rbda_ros import InputError, ModelError, load_robot
from rbda_ros.algorithms.rnea import inverse_dynamics

SUBJECTS = (
    *("gear", "belt_pair", "mimic_chain", "rotors", "screw", "four_bar", "slider_crank"),
    *("planar_cut", "spherical_cut", "distance_cut", "cam", "ball_joint_loop", "nested_loops"),
)
FEW, MANY = 2, 45  # of each subject and kind; the many are 2,340 in all
KERNEL_EVERY = 8  # the others are evaluated on numbers, which needs no compilation
LONGEST = 10.0  # [s of processor time], for one file


def mutations(mechanism: Mechanism, rng: random.Random) -> tuple[tuple[Any, Any], ...]:
    """One mutant of each kind: URDF elements, numbers and words of either file, the mapping."""
    urdf = mechanism.urdf.read_text().split("?>")[1]
    loops = mechanism.loops.read_text() if mechanism.loops else "constraints: []\n"
    return (
        (mutate_elements(urdf, rng), loops),
        (urdf, mutate_mapping(yaml.safe_load(loops), rng)),
        (mutate_tokens(urdf, rng), loops) if rng.random() < 0.3 else (nudged(urdf, rng), loops),
        (urdf, nudged(loops, rng)),
    )


def nudged(text: str, rng: random.Random) -> str:
    """The text with some of its numbers changed to others that are still numbers."""
    words = text.replace('"', ' " ').replace(",", " , ").replace("]", " ] ").split(" ")
    at = [i for i, word in enumerate(words) if word.lstrip("-").replace(".", "", 1).isdigit()]
    for i in rng.sample(at, min(len(at), rng.randint(1, 4))):
        words[i] = rng.choice(["0", "1", "-1", "1e9", "1e-9", "100.0", "3.14159", "-0.5", "1e30"])
    return " ".join(words).replace(' " ', '"').replace(" , ", ",").replace(" ] ", "]")


def load_and_use(urdf: Any, loops: Any, floating_base: bool, through_kernel: bool) -> bool:
    """Whether the robot loads; anything but a ModelError, and any wrong number, goes through."""
    try:
        robot = load_robot(urdf, loops, floating_base=floating_base)
    except ModelError as error:
        assert str(error)
        return False
    state = robot.tree.home, np.zeros(robot.ny), np.zeros(robot.ny)
    try:
        if through_kernel:
            tau = robot.inverse_dynamics(*state)
        else:
            tau = np.asarray(inverse_dynamics(robot.tree, *map(ca.DM, state))).ravel()
    except (InputError, ModelError) as error:
        assert str(error)
    else:
        assert tau.shape == (robot.ny,)
        assert np.all(np.isfinite(tau))
    return True


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SUBJECTS)
def test_mutants_load_or_are_refused(name, count):
    rng = random.Random(name)
    mechanism = MECHANISMS[name]
    loaded = tried = 0
    for _ in range(count):
        for urdf, loops in mutations(mechanism, rng):
            start = time.process_time()
            loaded += load_and_use(urdf, loops, rng.random() < 0.3, tried % KERNEL_EVERY == 0)
            tried += 1
            assert time.process_time() - start < LONGEST
    print(f"{name}: {loaded} of {tried} loaded")
    assert 0 < loaded < tried  # else the mutations are too wild or too tame
