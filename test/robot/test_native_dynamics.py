"""Inverse dynamics as one C function against the methods of the robot."""

import ctypes

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import example_robots

from rbda_ros import load_robot


@pytest.fixture(autouse=True)
def compiled(virtual_machine, monkeypatch):
    """Here it is about machine code."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")


def load(name):
    mechanism = MECHANISMS[name]
    return load_robot(mechanism.urdf, mechanism.loops, floating_base=mechanism.floating_base)


def function(robot):
    """The C function, taking arrays; tau and efforts, or None where it returns false."""
    native = robot.native_inverse_dynamics()
    signature = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_void_p] * 5)

    def solve(*motion):
        tau, efforts = np.zeros(robot.ny), np.zeros(len(robot.actuated_joint_names))
        arrays = [*(np.array(values, float) for values in motion), tau, efforts]
        good = signature(native.address)(*(array.ctypes.data for array in arrays))
        return (tau, efforts) if good else None

    return solve


@pytest.mark.parametrize("name", ["gear", "four_bar", "slider_crank", "over_actuated"])
def test_forces_are_those_of_the_robot_to_the_last_bit(name):
    robot = load(name)
    solve, rng, answered = function(robot), np.random.default_rng(2), 0
    states = closed_states(MECHANISMS[name], 20)
    for q in states:
        y, (yd, ydd) = robot.independent_position(q), rng.normal(size=(2, robot.ny))
        forces = solve(y, yd, ydd)
        if forces is not None:  # else one search from the assembly is not enough
            efforts, tau = robot.inverse_dynamics_efforts(robot.close(y), yd, ydd)
            assert [f.tolist() for f in forces] == [tau.tolist(), efforts.tolist()]
            answered += 1
    assert answered >= len(states) // 4


@pytest.fixture(scope="module")
def arm():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
        yield load_robot(example_robots()["ur5_robot"])


def test_a_robot_without_loops(arm):
    solve, rng = function(arm), np.random.default_rng(3)
    for _ in range(20):
        y, yd, ydd = rng.normal(size=(3, 6))
        tau = arm.inverse_dynamics(y, yd, ydd)
        assert [f.tolist() for f in solve(y, yd, ydd)] == [tau.tolist()] * 2


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_nothing_is_answered_from_numbers_that_are_not_finite(arm, which, bad):
    """Not even in the first joint, whose position no force depends on."""
    solve = function(arm)
    for joint in range(6):
        motion = np.full((3, 6), 0.1)
        motion[which, joint] = bad
        assert solve(*motion) is None
    assert solve(*np.full((3, 6), 0.1)) is not None


def test_nothing_is_answered_where_loops_do_not_close():
    mechanism = MECHANISMS["four_bar"]
    text = mechanism.loops.read_text() + "independent_joints: [rocker, flag]\n"
    robot = load_robot(mechanism.urdf, text)
    solve, zero = function(robot), np.zeros(robot.ny)
    assert solve(robot.independent_position(robot.tree.home), zero, zero) is not None
    assert solve([2.5, 0.0], zero, zero) is None


def test_there_is_none_without_machine_code_or_without_a_position_of_y(monkeypatch):
    assert load("ball_joint_loop").native_inverse_dynamics() is None
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    assert load("gear").native_inverse_dynamics() is None
