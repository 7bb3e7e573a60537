"""The leg in MuJoCo against our model."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rbda_ros.demo.closed_loop import MIDDLE, MujocoLeg


def test_accelerates_as_our_model_says():
    leg = MujocoLeg(MIDDLE)
    robot = leg.robot
    efforts = np.array([0.5, -1.0, 0.8, 0.3])
    tau = np.zeros(robot.nv)
    tau[list(robot.tree.actuated)] = efforts
    ydd = robot.forward_dynamics(MIDDLE, np.zeros(4), tau)
    leg.step(efforts, 0.01)
    found = leg.velocities(robot.independent_joint_names) / 0.01
    np.testing.assert_allclose(found, ydd, rtol=0.05, atol=0.5)
    assert leg.gap() < 1e-5
