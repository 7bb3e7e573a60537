"""The leg in MuJoCo against our model, and outside forces found there."""

import numpy as np
import pytest

from rbda_ros import MomentumObserver
from rbda_ros.demo.open_chain import OpenChain

pytest.importorskip("mujoco")

from rbda_ros.demo.closed_loop import MIDDLE, PERIOD, exact, wanted
from rbda_ros.demo.mujoco_leg import MujocoLeg

FORCE = np.array([10.0, -5.0, 30.0])  # on the foot, in world axes


def observed(leg, observer, joints, efforts, ratio=None):
    """One more estimate: from the motors' efforts, or from these times gear ratios."""
    robot = leg.robot
    if ratio is None:
        tau = np.zeros(robot.nv)
        tau[list(robot.tree.actuated)] = efforts
    else:
        tau = efforts * ratio
    return observer.update(leg.time, leg.positions(joints), leg.velocities(joints), tau)


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


def test_a_known_force_is_found_to_two_percent():
    leg = MujocoLeg(MIDDLE)
    observer = MomentumObserver(leg.robot, 50.0)
    joints = leg.robot.independent_joint_names
    for _ in range(2000):
        leg.push("foot", FORCE)  # where the foot is by now
        efforts = exact(leg, MIDDLE, np.zeros(4), np.zeros(4))
        leg.step(efforts, PERIOD)
        observed(leg, observer, joints, efforts)
    found = observer.wrench("foot", linear_only=True)[:3]
    np.testing.assert_allclose(found, FORCE, atol=0.02 * np.linalg.norm(FORCE))


def test_the_open_chain_raises_a_false_alarm():
    """Nothing touches the leg, which moves fast: the exact model says so."""
    leg, chain = MujocoLeg(MIDDLE), OpenChain()
    with_loops, without = MomentumObserver(leg.robot, 50.0), MomentumObserver(chain.robot, 50.0)
    joints, motors = leg.robot.independent_joint_names, leg.robot.actuated_joint_names
    ratio = 1.0 / np.array([chain.on_motors(np.ones(4))[name] for name in motors])
    largest = np.zeros(2)
    for k in range(1500):
        efforts = exact(leg, *wanted(k * PERIOD))
        leg.step(efforts, PERIOD)
        estimates = (
            observed(leg, with_loops, joints, efforts),
            observed(leg, without, joints, efforts, ratio),
        )
        largest = np.maximum(largest, [np.abs(estimate).max() for estimate in estimates])
    assert largest[0] < 1.5  # [N m]
    assert largest[1] > 4.0 * largest[0]
