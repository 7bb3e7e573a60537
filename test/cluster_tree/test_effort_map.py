"""Efforts on actuated joints: power balance, minimum norm, passive and redundant actuators."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import explicit_jacobian

from rbda_ros import Robot, load_robot

# Every joint of each cluster actuated, so that all but plain joints are over-actuated.
ALL = "all joints"


def load(name: str, actuated: list[str] | str) -> Robot:
    mechanism = MECHANISMS[name]
    loops = {} if mechanism.loops is None else yaml.safe_load(mechanism.loops.read_text())
    if actuated == ALL:
        actuated = list(mechanism.load().joint_names)
    loops["actuated_joints"] = actuated
    # Keep y as it is, so that positions of the table's mechanism fit.
    names = mechanism.load().independent_joint_names
    loops["independent_joints"] = list(dict.fromkeys(name.split(".")[0] for name in names))
    if name == "ball_joint_loop":
        del loops["independent_joints"]
    return load_robot(mechanism.urdf, loops, floating_base=mechanism.floating_base)


def actuation_matrix(robot: Robot, q: np.ndarray) -> np.ndarray:
    """W (actuated, ny): velocities of the actuated coordinates per unit of yd."""
    names = robot.tree.velocity_names
    rows = [names.index(name) for name in robot.actuated_joint_names]
    return explicit_jacobian(robot, q)[rows]


@pytest.mark.parametrize("name", MECHANISMS)
def test_efforts_do_the_work_of_the_generalized_force(name):
    """tau' yd = efforts' qd_actuated, for every force that the actuators can give."""
    mechanism = MECHANISMS[name]
    robot = mechanism.load()
    rng = np.random.default_rng(1)
    for q in closed_states(mechanism, 20)[:5]:
        W = actuation_matrix(robot, q)
        tau = W.T @ rng.normal(size=len(W))
        yd = rng.normal(size=robot.ny)
        efforts = robot.actuator_efforts(q, tau)
        assert efforts.shape == (len(robot.actuated_joint_names),)
        power = tau @ yd
        scale = np.abs(tau).max(initial=1) * np.abs(yd).max()
        assert efforts @ (W @ yd) == pytest.approx(power, abs=1e-10 * scale)


@pytest.mark.parametrize("actuated", [None, ALL], ids=["as described", "all joints"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_efforts_are_the_smallest(name, actuated):
    mechanism = MECHANISMS[name]
    if actuated and name in ("ball_joint_loop", "ball_rod", "parallel_ankle"):
        pytest.skip("y would change with the actuated joints")
    robot = load(name, actuated) if actuated else mechanism.load()
    assert robot.independent_joint_names == mechanism.load().independent_joint_names
    rng = np.random.default_rng(2)
    for q in closed_states(mechanism, 20)[:5]:
        W = actuation_matrix(robot, q)
        tau = rng.normal(size=robot.ny)
        expected = np.linalg.pinv(W.T, rcond=1e-9) @ tau
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(robot.actuator_efforts(q, tau), expected, 0, 1e-9 * scale)


def test_efforts_default_to_the_independent_joints():
    robot = MECHANISMS["gear"].load()
    assert robot.actuated_joint_names == robot.independent_joint_names
    q = closed_states(MECHANISMS["gear"], 20)[0]
    np.testing.assert_allclose(robot.actuator_efforts(q, [1.0, 2.0]), [1.0, 2.0], atol=1e-15)


def test_a_motor_behind_a_gear_feels_a_fraction():
    robot = load("gear", ["rotor", "elbow"])
    q = closed_states(MECHANISMS["gear"], 20)[0]
    rotor = robot.actuated_joint_names.index("rotor")
    assert robot.actuator_efforts(q, [8.5, 0.0])[rotor] == pytest.approx(1.0, abs=1e-14)


def test_two_motors_share_the_work_of_a_differential():
    """tau = W' efforts with left = 3 tilt + 2 roll, right = 3 tilt - 2 roll."""
    robot = MECHANISMS["differential"].load()
    q = closed_states(MECHANISMS["differential"], 20)[0]
    tau = np.array([0, 0, 0, 0, 0, 0, 6.0, 4.0])
    np.testing.assert_allclose(robot.actuator_efforts(q, tau), [2.0, 0.0], atol=1e-13)


def test_over_actuated_four_bar_shares_among_three_motors():
    robot = MECHANISMS["over_actuated"].load()
    assert len(robot.actuated_joint_names) == 3
    assert robot.independent_joint_names == ("crank", "tail")
    for q in closed_states(MECHANISMS["over_actuated"], 20)[:5]:
        efforts = robot.actuator_efforts(q, np.eye(robot.ny)[6])
        column = actuation_matrix(robot, q)[:, 6]
        np.testing.assert_allclose(efforts, column / (column @ column), atol=1e-12)


def test_passive_joints_get_nothing_and_the_rest_what_it_needs():
    """The tail has no motor: its force is left out, the crank's is not disturbed."""
    robot = MECHANISMS["over_actuated"].load()
    q = closed_states(MECHANISMS["over_actuated"], 20)[0]
    with_tail = robot.actuator_efforts(q, np.eye(robot.ny)[6] + np.eye(robot.ny)[7])
    without = robot.actuator_efforts(q, np.eye(robot.ny)[6])
    np.testing.assert_array_equal(with_tail, without)


def test_a_robot_without_motors_has_no_efforts():
    robot = load("slider_crank", [])
    q = closed_states(MECHANISMS["slider_crank"], 20)[0]
    assert robot.actuated_joint_names == ()
    assert robot.actuator_efforts(q, [1.0]).shape == (0,)


@pytest.mark.parametrize("actuated", [["left", "tilt"], ["left"], ["tilt"]])
def test_motors_that_pull_the_same_way_leave_the_rest_out(actuated):
    """Rank-deficient actuation: two motors on one shaft, none on the other."""
    mechanism = MECHANISMS["differential"]
    loops = {
        "independent_joints": ["tilt", "roll"],
        "actuated_joints": actuated,
        "constraints": [
            {"name": "a", "type": "coupling", "terms": {"left": 1.0, "tilt": -3.0}},
            {"name": "b", "type": "coupling", "terms": {"right": 1.0, "roll": -2.0, "tilt": 1.0}},
        ],
    }
    robot = load_robot(mechanism.urdf, loops)
    q = robot.close([0.1, 0.2])
    W = actuation_matrix(robot, q)
    tau = np.array([1.0, 5.0])
    efforts = robot.actuator_efforts(q, tau)
    np.testing.assert_allclose(efforts, np.linalg.pinv(W.T) @ tau, atol=1e-13)
    np.testing.assert_allclose(W.T @ efforts, [1.0, 0.0], atol=1e-13)  # the roll has no motor
