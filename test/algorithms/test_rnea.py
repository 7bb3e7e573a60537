"""Inverse dynamics against Pinocchio's RNEA and generalized_rbda, fixed and floating."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    example_robots,
    explicit_jacobian,
    floating_robots,
    random_state,
    some_by_day,
)
from reference_data import REFERENCE_ROBOTS, reference

from rbda_ros import load_robot

ROBOTS = example_robots()


CASES = floating_robots() + some_by_day(distinct_robots(), floating_base=False)


@pytest.mark.parametrize(("name", "floating_base"), CASES)
def test_equals_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, qd, ydd = random_state(robot, rng)
        spanning = oracle.rnea(q, qd, robot.spanning_acceleration(q, qd, ydd))
        expected = explicit_jacobian(robot, q).T @ spanning  # mimic joints are loops
        tolerance = 1e-10 * np.abs(spanning).max(initial=1.0)
        np.testing.assert_allclose(robot.inverse_dynamics(q, qd, ydd), expected, 0, tolerance)


@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_pinocchio_projected_onto_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(2)
    for s in states:
        ydd = rng.normal(size=robot.ny)
        expected = s.G.T @ oracle.rnea(s.q, s.qd, s.G @ ydd + s.g)
        assert_close(robot.inverse_dynamics(s.q, s.yd, ydd), expected, 1e-10)
        assert_close(robot.bias_force(s.q, s.yd), s.G.T @ oracle.rnea(s.q, s.qd, s.g), 1e-10)
        still = oracle.bias(s.q, np.zeros(robot.nv))
        assert_close(robot.gravity_force(s.q), s.G.T @ still, 1e-10)


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_reference(name):
    ref = reference(name)
    tilted = ref.load(ref.states[0]["alt_gravity"]["gravity"])
    for state in ref.states:
        q, qd = ref.position(state), ref.velocity(state)
        tau = ref.robot.inverse_dynamics(q, qd, ref.independent(state["id_ydd_in"]))
        assert_close(tau, ref.independent(state["id_tau"]), 1e-9)
        assert_close(ref.robot.bias_force(q, qd), ref.independent(state["C"]), 1e-9)
        alternative = ref.independent(state["alt_gravity"]["C"])
        assert_close(tilted.bias_force(q, qd), alternative, 1e-9)


@pytest.mark.parametrize("name", MECHANISMS)
def test_bias_and_gravity_force_are_special_cases(name):
    robot, _, states = mechanism_states(name)
    zero = np.zeros(robot.ny)
    for s in states[:3]:
        assert_close(robot.bias_force(s.q, s.yd), robot.inverse_dynamics(s.q, s.yd, zero), 1e-13)
        assert_close(robot.gravity_force(s.q), robot.inverse_dynamics(s.q, zero, zero), 1e-13)


@pytest.mark.parametrize("name", MECHANISMS)
def test_wrenches_act_through_the_jacobians_of_their_links(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(4)
    links = [link.name for link in robot.description.links]
    for s in states[:3]:
        q, yd, ydd = s.q, s.yd, rng.normal(size=robot.ny)
        wrenches = {link: rng.normal(size=6) for link in links}  # the fixed base's included
        expected = robot.inverse_dynamics(q, yd, ydd)
        for link, wrench in wrenches.items():
            R = robot.frame_pose(q, link)[:3, :3]
            in_world = np.concatenate([R @ wrench[:3], R @ wrench[3:]])
            expected = expected - robot.jacobian(q, link).T @ in_world
        assert_close(robot.inverse_dynamics(q, yd, ydd, wrenches), expected, 1e-12)


def test_no_gravity_no_motion_no_force():
    robot = load_robot(ROBOTS["panda"], gravity=(0, 0, 0))
    assert not robot.gravity_force(np.full(robot.nq, 0.3)).any()
