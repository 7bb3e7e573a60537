"""The regressor against inverse dynamics, Pinocchio's regressor, and energy; base parameters."""

import numpy as np
import pinocchio as pin
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import example_robot, random_state
from reference_data import SHARED_ROBOTS, shared_robot

from rbda_ros import InputError, load_robot
from rbda_ros.cluster_tree.spanning_tree import (
    Frame,
    inertial_parameters,
    parameter_map,
    spatial_inertia_of,
)
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import rpy_matrix

TREES = ["ur5_robot", "solo12"]
# One of each kind of joint and loop that the shared robots do not have; all of them by night.
KINDS = {"ball_joint_loop", "planar_joint_loop", "screw", "cam", "universal_cut", "rotors"}
BY_NIGHT = [
    name if name in KINDS else pytest.param(name, marks=pytest.mark.nightly) for name in MECHANISMS
]


def equals_inverse_dynamics(robot, q, qd, ydd):
    tau = robot.regressor(q, qd, ydd) @ robot.parameters().values
    expected = robot.inverse_dynamics(q, qd, ydd, friction=True)
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", SHARED_ROBOTS)
def test_times_parameters_is_inverse_dynamics_of_shared_robots(name):
    robot = load_robot(shared_robot(name))
    rng = np.random.default_rng(0)
    for q in robot.random_positions(rng, 2):
        equals_inverse_dynamics(robot, q, *rng.normal(size=(2, robot.ny)))


@pytest.mark.parametrize("name", BY_NIGHT)
def test_times_parameters_is_inverse_dynamics_of_mechanisms(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    for s in states:
        equals_inverse_dynamics(robot, s.q, s.yd, rng.normal(size=robot.ny))


@pytest.mark.parametrize("name", TREES)
def test_equals_pinocchio_column_by_column(name):
    """Its ten columns of a joint are about the joint's frame, ours about the link's: the same."""
    robot, oracle = example_robot(name, name == "solo12")
    rng = np.random.default_rng(2)
    q, qd, ydd = random_state(robot, rng)
    state = oracle.position(q), oracle.velocity(qd), oracle.velocity(ydd)
    theirs = pin.computeJointTorqueRegressor(oracle.model, oracle.data, *state)
    Y = robot.regressor(q, qd, ydd)
    for place, body in enumerate(robot.tree.spanning.bodies):
        joint = "root_joint" if body.joint.type == "floating" else body.joint.name
        column = 10 * (oracle.model.getJointId(joint) - 1)
        expected = theirs[oracle.velocity_index, column : column + 10]
        ours = Y[:, 10 * place : 10 * place + 10]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_friction_of_a_rotor_counts_on_its_side_of_the_gear():
    robot = MECHANISMS["gear"].load()
    parameters = robot.parameters()
    q, yd = robot.tree.home, np.array([0.7, -0.4])
    Y = robot.regressor(q, yd, np.zeros(2))
    qd = robot.spanning_velocity(q, yd)
    damping = [parameters.names.index(f"{name}.damping") for name in robot.joint_names]
    expected = robot.generalized_force(q, qd)  # damping of one everywhere
    np.testing.assert_allclose(Y[:, damping].sum(axis=1), expected, atol=1e-14)


def test_payload_columns_equal_a_robot_that_carries_it():
    robot, _, states = mechanism_states("geared_four_bar")
    link = robot.clusters[-1].links[-1]
    payload = Payload(link, 1.5, (0.1, -0.05, 0.2), (0.02, 0.001, -0.002, 0.03, 0.003, 0.025))
    loaded = robot.with_payloads({"box": payload})
    carried = load_robot(
        '<robot name="box"><link name="world"/><link name="box"><inertial><mass value="1.5"/>'
        '<origin xyz="0.1 -0.05 0.2"/><inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" '
        'iyz="0.003" izz="0.025"/></inertial></link><joint name="j" type="floating"><parent '
        'link="world"/><child link="box"/></joint></robot>'
    ).parameters()
    values = np.concatenate([robot.parameters().values, carried.values[:10]])
    assert robot.parameters(payload=link).names[-10:][0] == "payload.m"
    for s in states:
        Y = robot.regressor(s.q, s.yd, np.ones(robot.ny), payload=link)
        expected = loaded.inverse_dynamics(s.q, s.yd, np.ones(robot.ny), friction=True)
        np.testing.assert_allclose(Y @ values, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("link", ["nowhere", "base"])
def test_refuses_a_payload_where_none_can_be(link):
    robot = MECHANISMS["gear"].load()
    root = robot.description.root
    with pytest.raises(InputError, match="payload: "):
        robot.parameters(payload=root if link == "base" else link)


def test_batch_equals_single_calls():
    robot, _, states = mechanism_states("four_bar")
    q = np.array([s.q for s in states])
    yd = np.array([s.yd for s in states])
    ydd = np.random.default_rng(3).normal(size=yd.shape)
    batch = robot.regressor(q, yd, ydd)
    for k in range(len(q)):
        np.testing.assert_allclose(batch[k], robot.regressor(q[k], yd[k], ydd[k]), atol=1e-12)


@pytest.mark.parametrize("name", ["gear", "four_bar", "belt_pair", "mimic_chain"])
def test_base_parameters_say_all_that_forces_can_tell(name):
    robot, _, states = mechanism_states(name)
    base = robot.base_parameters()
    p = robot.parameters().values
    rng = np.random.default_rng(4)
    ydd = rng.normal(size=(len(states), robot.ny))
    Y = np.array([robot.regressor(s.q, s.yd, a) for s, a in zip(states, ydd, strict=True)])
    expected = Y @ p
    tau = Y[..., list(base.columns)] @ (base.combine @ p)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    W = Y[..., list(base.columns)].reshape(-1, base.rank)
    assert base.rank < len(p)
    if len(W) >= base.rank:
        assert np.linalg.matrix_rank(W) == base.rank


def test_base_parameters_of_a_pendulum_are_those_of_the_textbook():
    """About z under gravity along -y a pendulum feels mx, my, Izz; and its joint's friction."""
    robot = load_robot(
        '<robot name="pendulum"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        '</inertial></link><joint name="hinge" type="continuous"><parent link="base"/><child '
        'link="arm"/><axis xyz="0 0 1"/></joint></robot>',
        gravity=(0, -9.81, 0),
    )
    base = robot.base_parameters()
    names = robot.parameters().names
    assert [names[c] for c in base.columns] == [
        "arm.mx", "arm.my", "arm.Izz", "hinge.damping", "hinge.friction",
    ]  # fmt: skip
    assert "arm.m" in base.unfelt


def test_parameters_are_maps_of_inertia():
    rng = np.random.default_rng(5)
    pi = rng.normal(size=10)
    np.testing.assert_array_equal(inertial_parameters(spatial_inertia_of(pi)), pi)
    frame = Frame(rpy_matrix((0.3, -0.2, 1.1)), np.array([0.1, 0.5, -0.4]))
    back = parameter_map(frame.inverse()) @ (parameter_map(frame) @ pi)
    np.testing.assert_allclose(back, pi, atol=1e-14)
