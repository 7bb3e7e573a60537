"""Actuator efforts against the pseudo-inverse, and their power."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close

from rbda_ros import load_robot


@pytest.mark.parametrize("name", MECHANISMS)
def test_smallest_efforts_that_give_the_force(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    actuated = list(robot.tree.actuated)
    for s in states:
        tau = rng.normal(size=robot.ny)
        W = s.G[actuated]
        efforts = robot.actuator_efforts(s.q, tau)
        assert efforts.shape == (len(robot.actuated_joint_names),)
        assert_close(efforts, np.linalg.pinv(W.T, rcond=1e-9) @ tau, 1e-9)


@pytest.mark.parametrize("name", MECHANISMS)
def test_power_is_that_of_the_generalized_force(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(2)
    actuated = list(robot.tree.actuated)
    for s in states[:5]:
        spanning = np.zeros(robot.nv)
        spanning[actuated] = rng.normal(size=len(actuated))
        tau = robot.generalized_force(s.q, spanning)  # what these actuators can give
        efforts = robot.actuator_efforts(s.q, tau)
        assert efforts @ s.qd[actuated] == pytest.approx(tau @ s.yd, rel=1e-10, abs=1e-10)


def test_gear_divides_the_effort():
    gear = MECHANISMS["gear"]
    text = gear.loops.read_text() + "independent_joints: [swing, elbow]\n"
    text += "actuated_joints: [rotor, elbow]\n"
    robot = load_robot(gear.urdf, text)
    tau = np.array([17.0, 3.0])  # swing and elbow
    efforts = dict(
        zip(robot.actuated_joint_names, robot.actuator_efforts([0.1, 0.2], tau), strict=True)
    )
    assert efforts == pytest.approx({"rotor": 17.0 / 8.5, "elbow": 3.0})


def test_wrench_on_a_floating_base_is_left_out():
    robot = MECHANISMS["belt_pair"].load()
    q = robot.tree.home
    on_base = np.concatenate([np.ones(6), np.zeros(robot.ny - 6)])
    assert not robot.actuator_efforts(q, on_base).any()
