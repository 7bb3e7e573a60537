"""Forward dynamics against Pinocchio's ABA, a dense solve with the loops, generalized_rbda."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    floating_robots,
    random_state,
    some_by_day,
)
from reference_data import REFERENCE_ROBOTS, reference

from rbda_ros import SingularityError, load_robot

MANY_STATES = {"panda", "ur5_robot", "solo12", "go2", "g1_29dof_rev_1_0", "talos_full_v2", "icub",
               "tiago_dual"}  # fmt: skip
MASSLESS_TIPS = {"romeo", "romeo_laas_small"}
"""Fingers without inertia: H is singular, and Pinocchio's ABA divides by zero."""


CASES = floating_robots() + some_by_day(distinct_robots(), floating_base=False)


@pytest.mark.parametrize(("name", "floating_base"), CASES)
def test_equals_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(1)
    for _ in range(20 if name in MANY_STATES else 5):
        q, qd, tau = random_state(robot, rng)
        if name in MASSLESS_TIPS:
            with pytest.raises(SingularityError, match="no inertia"):
                robot.forward_dynamics(q, qd, tau)
            return
        if robot.ny == robot.nv:
            expected = oracle.aba(q, qd, tau)
        else:  # mimic joints, which Pinocchio's ABA refuses
            G = explicit_jacobian(robot, q)
            H = G.T @ oracle.mass_matrix(q) @ G
            expected = np.linalg.solve(H, tau - G.T @ oracle.bias(q, qd))
        assert_close(robot.forward_dynamics(q, qd, tau), expected, 1e-8)


@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_a_dense_solve_with_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(2)
    for s in states:
        tau = rng.normal(size=robot.nv)
        ydd = robot.forward_dynamics(s.q, s.qd, tau)  # forces on dependent joints too
        expected = oracle.forward_dynamics(s.q, s.qd, tau)
        assert_close(ydd, expected[list(robot.tree.independent)], 1e-10)
        assert_close(robot.spanning_acceleration(s.q, s.qd, ydd), expected, 1e-10)


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_reference(name):
    ref = reference(name)
    robot, tilted = ref.robot, ref.load(ref.states[0]["alt_gravity"]["gravity"])
    for state in ref.states:
        q, qd, tau = ref.position(state), ref.velocity(state), ref.independent(state["tau"])
        ydd = robot.forward_dynamics(q, qd, tau)
        assert_close(ydd, ref.independent(state["fd_ydd"]), 1e-9)
        assert_close(robot.spanning_acceleration(q, qd, ydd), ref.acceleration(state), 1e-9)
        pushed = robot.forward_dynamics(q, qd, tau, ref.wrench(state))
        assert_close(pushed, ref.independent(state["fext"]["fd_ydd"]), 1e-9)
        alternative = ref.independent(state["alt_gravity"]["fd_ydd"])
        assert_close(tilted.forward_dynamics(q, qd, tau), alternative, 1e-9)


@pytest.mark.parametrize("friction", [False, True], ids=["smooth", "friction"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_inverts_inverse_dynamics(name, friction):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(3)
    links = [link.name for link in robot.description.links]
    for s in states:
        q, yd, ydd = s.q, s.yd, rng.normal(size=robot.ny)
        wrenches = {link: rng.normal(size=6) for link in links[::2]}
        tau = robot.inverse_dynamics(q, yd, ydd, wrenches, friction=friction)
        again = robot.forward_dynamics(q, yd, tau, wrenches, friction=friction)
        # H may be ill-conditioned: what is lost is eps cond(H), and forces of the size of tau.
        H = robot.mass_matrix(q)
        lost = 1e-14 * np.linalg.norm(np.linalg.inv(H), np.inf) * np.abs(tau).max()
        np.testing.assert_allclose(again, ydd, 0, max(1e-11, 100 * lost))


@pytest.mark.parametrize("name", MECHANISMS)
def test_spanning_forces_act_as_their_sum_on_y(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(4)
    for s in states[:3]:
        tau = rng.normal(size=robot.nv)
        on_y = robot.generalized_force(s.q, tau)
        assert_close(on_y, s.G.T @ tau, 1e-10)
        expected = robot.forward_dynamics(s.q, s.yd, on_y)
        assert_close(robot.forward_dynamics(s.q, s.yd, tau), expected, 1e-12)


def test_link_without_inertia_is_reported_not_nan():
    robot = load_robot(
        """<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">
        <parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""
    )
    with pytest.raises(SingularityError, match="no inertia"):
        robot.forward_dynamics([0.1], [0.2], [0.3])
