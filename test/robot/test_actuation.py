"""Motors seen from joints: W, reflected inertia and limits against dense oracles."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from loop_oracle import LoopOracle, mechanism_states
from mechanism_table import MECHANISMS
from scipy.optimize import linprog

from rbda_ros import InputError, Robot, load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.robot.actuation import _limits

LEG_URDF = share_file("config/robots/demo_leg.urdf")
LEG_LOOPS = share_file("config/robots/demo_leg_loops.yaml")
Y = np.array([0.1, 0.2, 0.9, 0.1])


@functools.cache
def leg() -> Robot:
    return load_robot(LEG_URDF, LEG_LOOPS)


def limited(robot: Robot, effort: float, velocity: float):
    """The same actuation with limits on every motor."""
    found = robot.actuation(robot.close(Y))
    motors = len(found.motor_names)
    e, v = np.full(motors, effort), np.full(motors, velocity)
    names = ("torque_limit", "torque_limit_alone", "velocity_limit", "velocity_limit_alone")
    limits = dict(zip(names, _limits(found.W, found.groups, e, v), strict=True))
    return replace(found, motor_effort_limit=e, motor_velocity_limit=v, **limits)


@pytest.mark.parametrize("name", MECHANISMS)
def test_w_is_the_motors_part_of_g(name):
    robot, _, states = mechanism_states(name)
    for s in states[:5]:
        W = s.G[list(robot.tree.actuated), robot.coordinates.base_nv :]
        found = robot.actuation(s.q)
        np.testing.assert_allclose(found.W, W, rtol=1e-9, atol=1e-9 * np.abs(W).max())
        tau = robot.ny - robot.coordinates.base_nv
        assert found.torque_limit.shape == (tau,)
        assert not np.isnan(found.torque_limit).any()
        assert not np.isnan(found.velocity_limit).any()
        assert not np.isnan(found.condition)


def test_w_of_other_joints_is_solved_for():
    robot = leg()
    q = robot.close(Y)
    x = ["hip_abduction", "hip_flexion", "knee", "ankle_pulley"]
    G = LoopOracle(robot).explicit(q, np.zeros(robot.nv))[0]
    rows = [robot.tree.velocity_names.index(name) for name in x]
    wanted = G[list(robot.tree.actuated)] @ np.linalg.inv(G[rows])
    np.testing.assert_allclose(robot.actuation(q, x).W, wanted, rtol=1e-10, atol=1e-10)


def pinocchio_mass_matrix(robot: Robot) -> np.ndarray:
    """G' M G at Y."""
    oracle, q = LoopOracle(robot), robot.close(Y)
    G = oracle.explicit(q, np.zeros(robot.nv))[0]
    return G.T @ oracle.mass_matrix(q) @ G


def test_reflected_inertia_is_the_mass_matrix_that_motors_on_the_ground_add():
    """The hip's motor is on the stand: with and without it, the mass matrices differ by this."""
    with_motor = leg()
    text = LEG_LOOPS.read_text().replace(
        "hip_abduction: {ratio: 9.0, inertia: 6.0e-5}",
        "hip_abduction: {ratio: 9.0, inertia: 1e-12}",
    )
    without = load_robot(LEG_URDF, text)
    added = pinocchio_mass_matrix(with_motor) - pinocchio_mass_matrix(without)
    found = with_motor.actuation(Y)
    only = found.W[:1].T @ np.diag(found.motor_inertia[:1]) @ found.W[:1]
    np.testing.assert_allclose(added, only, rtol=1e-6, atol=1e-9)
    assert found.reflected_inertia[0, 0] == pytest.approx(81.0 * 6.0e-5)


def test_reflected_inertia_is_the_motors_energy():
    found = leg().actuation(Y)
    xd = np.array([1.0, -2.0, 0.5, 3.0])
    energy = found.motor_inertia @ (found.W @ xd) ** 2
    assert xd @ found.reflected_inertia @ xd == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(found.motor_inertia, [6e-5, 6e-5, 6e-5, 2.5e-5])


def test_motors_that_are_the_joints_have_no_inertia_to_reflect():
    robot = leg()
    found = robot.actuation(Y, robot.actuated_joint_names)
    np.testing.assert_allclose(found.W, np.eye(4), atol=1e-12)
    assert not found.reflected_inertia.any()


def test_limits_against_every_corner():
    found = limited(leg(), 2.0, 100.0)
    corners = np.array(list(itertools.product((-2.0, 2.0), repeat=4)))
    torques = corners @ found.W
    np.testing.assert_allclose(found.torque_limit, torques.max(axis=0), rtol=1e-12)
    speeds = np.linalg.solve(found.W, 50.0 * corners.T).T
    np.testing.assert_allclose(found.velocity_limit, speeds.max(axis=0), rtol=1e-12)
    for j in range(4):
        alone = np.eye(4)[j]
        motor = np.linalg.solve(found.W.T, alone * found.torque_limit_alone[j])
        assert np.abs(motor).max() == pytest.approx(2.0)
        fast = found.W @ (alone * found.velocity_limit_alone[j])
        assert np.abs(fast).max() == pytest.approx(100.0)


def test_corners_of_the_coupled_knee_and_ankle():
    found = limited(leg(), 2.0, 100.0)
    group = next(k for k, (joints, _) in enumerate(found.groups) if len(joints) == 2)
    joints, motors = found.groups[group]
    W = found.W[np.ix_(motors, joints)]
    torques, speeds = found.torque_vertices(group), found.velocity_vertices(group)
    assert torques.shape == speeds.shape == (4, 2)
    np.testing.assert_allclose(np.abs(np.linalg.solve(W.T, torques.T)), 2.0, rtol=1e-9)
    np.testing.assert_allclose(np.abs(W @ speeds.T), 100.0, rtol=1e-9)


def test_more_motors_than_joints_help_each_other():
    robot = MECHANISMS["over_actuated"].load()
    found = robot.actuation(robot.tree.home)
    assert len(found.motor_names) > len(found.joint_names)
    for j, name in enumerate(found.joint_names):
        assert found.torque_limit_alone[j] <= found.torque_limit[j] * (1 + 1e-9), name


def largest(objective, most, equal=None):
    """The largest ``objective . x`` with ``|most[0] x| <= most[1]`` and ``equal x = 0``."""
    A = np.vstack([most[0], -most[0]])
    rows = {} if equal is None else {"A_eq": equal, "b_eq": np.zeros(len(equal))}
    bounds = [(None, None)] * len(objective)
    found = linprog(-objective, A, np.concatenate([most[1]] * 2), bounds=bounds, **rows)
    return np.inf if found.status == 3 else -found.fun


def test_limits_of_more_motors_than_joints_are_those_of_linear_programs():
    robot = MECHANISMS["over_actuated"].load()
    found = robot.actuation(robot.tree.home)
    effort, speed = np.array([2.0, 1.0, 3.0]), np.array([4.0, 9.0, 5.0])
    torque, torque_alone, rate, rate_alone = _limits(found.W, found.groups, effort, speed)
    joints, W = range(found.W.shape[1]), found.W
    for j in joints:
        others = np.delete(W.T, j, axis=0)
        efforts = np.eye(3), effort
        assert torque[j] == pytest.approx(largest(W[:, j], efforts), abs=1e-9)
        assert torque_alone[j] == pytest.approx(largest(W[:, j], efforts, others), abs=1e-9)
        alone = np.delete(np.eye(len(joints)), j, axis=0)
        assert rate[j] == pytest.approx(largest(np.eye(len(joints))[j], (W, speed)), rel=1e-9)
        assert rate_alone[j] == pytest.approx(
            largest(np.eye(len(joints))[j], (W, speed), alone), rel=1e-9
        )


def test_a_batch_is_as_one_after_the_other():
    robot = leg()
    y = Y + 0.1 * np.random.default_rng(0).normal(size=(5, 4))
    batch = robot.actuation(y)
    for k, row in enumerate(y):
        one = robot.actuation(row)
        for field in ("W", "reflected_inertia", "torque_limit", "velocity_limit", "condition"):
            np.testing.assert_allclose(
                getattr(batch, field)[k], getattr(one, field), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize(
    ("joints", "says"),
    [
        (["knee"], "hip_abduction"),
        (["hip_abduction", "hip_flexion", "knee", "knee"], "name each once"),
        (["hip_abduction", "hip_flexion", "knee", "ankle", "knee_rotor"], "knee_rotor follow"),
        (["hip_abduction", "hip_flexion", "knee", "toe"], "no moving joint toe"),
    ],
)
def test_mistakes_are_named(joints, says):
    with pytest.raises(InputError, match=says):
        leg().actuation(Y, joints)


def test_a_joint_whose_name_has_a_dot_is_no_coordinate_of_another():
    urdf = """<robot name="arm"><link name="world"/><link name="fore">
        <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
        </inertial></link>
        <joint name="elbow.pitch" type="revolute"><parent link="world"/><child link="fore"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint></robot>"""
    robot = load_robot(urdf)
    found = robot.actuation(robot.neutral())
    assert found.groups == (((0,), (0,)),)
    assert (found.torque_limit, found.velocity_limit) == (5.0, 3.0)
