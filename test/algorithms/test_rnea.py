"""Inverse dynamics against Pinocchio's RNEA on real robots, fixed and floating."""

import numpy as np
import pytest
from pinocchio_oracle import PinocchioOracle, example_robots, explicit_jacobian, random_state

from rbda_ros import load_robot

ROBOTS = example_robots()


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_equals_pinocchio(name, floating_base):
    robot = load_robot(ROBOTS[name], floating_base=floating_base)
    oracle = PinocchioOracle(ROBOTS[name], robot)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, qd, ydd = random_state(robot, rng)
        spanning = oracle.rnea(q, qd, robot.spanning_acceleration(q, qd, ydd))
        expected = explicit_jacobian(robot, q).T @ spanning  # mimic joints are loops
        tolerance = 1e-10 * np.abs(spanning).max(initial=1.0)
        np.testing.assert_allclose(robot.inverse_dynamics(q, qd, ydd), expected, 0, tolerance)
