"""Figures of docs/why.md about models without loops."""

from pathlib import Path

import numpy as np
from pinocchio_oracle import PinocchioOracle, spanning_model

from benchmark.open_chain import compare
from rbda_ros.demo.open_chain import OpenChain

PAGE = (Path(__file__).parents[2] / "docs" / "why.md").read_text()


def test_the_readme_says_what_the_benchmark_prints():
    lines = [line for line in compare().lines() if not line.startswith("hip")]
    assert len(lines) == 4
    for line in lines:
        assert line in PAGE


def test_the_open_chain_is_the_tree_without_pulley_rod_and_rotors():
    chain = OpenChain()
    assert chain.robot.joint_names == ("hip_abduction", "hip_flexion", "knee", "ankle")
    oracle = PinocchioOracle(spanning_model(chain.robot.description, False), chain.robot)
    state = np.array([0.1, 0.3, 0.9, -0.2]), np.arange(4.0), np.arange(4.0)[::-1]
    np.testing.assert_allclose(chain.torques(*state), oracle.rnea(*state), 1e-10)
    knee = chain.on_motors(np.array([0.0, 0.0, 24.0, 0.0]))["knee_rotor"]
    assert knee == 2.0  # 12:1
