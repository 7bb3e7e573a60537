"""Derivatives against central differences along the constraint manifold."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close, example_robots, random_state

from rbda_ros import load_robot

ROBOTS = example_robots()
STEP = 1e-5


def differences(robot, function, q, yd, third):
    """By y, along the manifold and the base's twist; by yd; by the third argument."""

    def moved(i, h):
        step = robot.spanning_velocity(q, h * np.eye(robot.ny)[i])
        return robot.close(robot.tree.integrate(q, step), guess=q)

    def central(at):
        columns = [(at(i, STEP) - at(i, -STEP)) / (2 * STEP) for i in range(robot.ny)]
        return np.array(columns).T

    e = np.eye(robot.ny)
    return (
        central(lambda i, h: function(moved(i, h), yd, third)),
        central(lambda i, h: function(q, yd + h * e[i], third)),
        central(lambda i, h: function(q, yd, third + h * e[i])),
    )


def check(robot, q, yd, third):
    pairs = (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives),
    )
    for function, derivatives in pairs:
        got = derivatives(q, yd, third)
        value = function(q, yd, third)
        expected = differences(robot, function, q, yd, third)
        for mine, theirs in zip((got.position, got.velocity, got.third), expected, strict=True):
            # A difference loses the digits of the value over the step.
            assert_close(mine, theirs, 1e-6, size=max(1.0, np.abs(value).max()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    for s in states[:2]:
        check(robot, s.q, s.yd, rng.normal(size=robot.ny))


@pytest.mark.parametrize(("name", "floating"), [("panda", False), ("solo12", True)])
def test_trees(name, floating):
    robot = load_robot(ROBOTS[name], floating_base=floating)
    q, qd, tau = random_state(robot, np.random.default_rng(2))
    check(robot, q, qd[list(robot.tree.independent)], tau)


@pytest.mark.parametrize("name", ["gear", "four_bar", "spherical_cut"])
def test_inverse_and_forward_are_inverses(name):
    robot, _, states = mechanism_states(name)
    s, ydd = states[0], np.ones(robot.ny)
    tau = robot.inverse_dynamics(s.q, s.yd, ydd)
    of_id = robot.inverse_dynamics_derivatives(s.q, s.yd, ydd)
    of_fd = robot.forward_dynamics_derivatives(s.q, s.yd, tau)
    assert_close(of_id.third, robot.mass_matrix(s.q), 1e-14)
    assert_close(of_fd.third @ of_id.third, np.eye(robot.ny), 1e-10)
    assert_close(of_id.third @ of_fd.position, -of_id.position, 1e-10)
    assert_close(of_id.third @ of_fd.velocity, -of_id.velocity, 1e-10)
