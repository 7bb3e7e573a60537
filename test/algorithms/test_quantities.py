"""Quantities that every dynamics library has, against Pinocchio's, projected onto the loops.

Over all mechanisms of the table, and robots of example-robot-data with and without a floating base.
"""

import numpy as np
import pytest
from loop_oracle import STENCIL, mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    BY_DAY,
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    random_state,
)

from rbda_ros import SingularityError, load_robot

EXAMPLES = [
    pytest.param(name, floating, marks=[pytest.mark.nightly] * (name not in BY_DAY))
    for name in distinct_robots()
    for floating in (False, True)
]
FLOATING_TOO = [name for name, each in MECHANISMS.items() if not each.floating_base]


def check(robot, oracle, q, qd, ydd, G, g, G_rate):
    """Every quantity at one state, as Pinocchio has it for the spanning tree."""
    yd, qdd = qd[list(robot.independent_coordinates)], G @ ydd + g
    size = robot.mass
    assert_close(robot.center_of_mass(q), oracle.center_of_mass(q), 1e-10)
    assert_close(robot.center_of_mass_jacobian(q), oracle.center_of_mass_jacobian(q) @ G, 1e-10)
    bias = robot.center_of_mass_bias_acceleration(q, qd)
    assert_close(bias, oracle.center_of_mass_acceleration(q, qd, g), 1e-10)
    A = robot.centroidal_momentum_matrix(q)
    assert_close(A, oracle.centroidal_momentum_matrix(q) @ G, 1e-10, size)
    assert_close(robot.centroidal_momentum(q, qd), oracle.centroidal_momentum(q, qd), 1e-10, size)
    assert_close(A @ yd, oracle.centroidal_momentum(q, qd), 1e-10, size)
    rate = robot.centroidal_momentum_rate(q, qd, ydd)
    assert_close(rate, oracle.centroidal_momentum_rate(q, qd, qdd), 1e-10, size)
    assert_close(robot.energy(q, qd), oracle.energy(q, qd), 1e-10)
    C = robot.coriolis_matrix(q, qd)
    expected = G.T @ (oracle.coriolis_matrix(q, qd) @ G + oracle.mass_matrix(q) @ G_rate)
    assert_close(C, expected, 1e-10, np.abs(expected).max())
    forces = robot.bias_force(q, qd) - robot.gravity_force(q)
    assert_close(C @ yd, forces, 1e-10)
    inverse = np.linalg.inv(G.T @ oracle.mass_matrix(q) @ G)
    assert_close(robot.mass_matrix_inverse(q), inverse, 1e-10 * np.linalg.cond(inverse) ** 0.5)
    check_frames(robot, oracle, q, qd, ydd, qdd, G)
    check_manifold(robot, oracle, q, qd)


def check_frames(robot, oracle, q, qd, ydd, qdd, G):
    poses = robot.frame_poses(q)
    assert poses.shape == (len(robot.frames), 4, 4)
    for frame in {robot.frames[0], robot.frames[-1], robot.frames[len(robot.frames) // 2]}:
        at = robot.frames.index(frame)
        assert_close(poses[at], oracle.frame_pose(q, frame), 1e-10)
        for place in (frame, (frame, (0.1, -0.2, 0.3))):
            velocity = oracle.jacobian(q, place) @ qd
            assert_close(robot.frame_velocity(q, qd, place), velocity, 1e-10)
            acceleration = oracle.frame_acceleration(q, qd, qdd, place)
            assert_close(robot.frame_acceleration(q, qd, ydd, place), acceleration, 1e-10)


def check_manifold(robot, oracle, q, qd):
    for dt in (1e-12, 1e-3, 0.4):
        reached = robot.integrate(q, qd, dt)
        assert_close(oracle.position(reached), oracle.integrate(q, dt * qd), 1e-10)
        assert_close(robot.difference(q, reached), oracle.difference(q, reached), 1e-10)
        assert_close(robot.difference(q, reached), dt * qd, 1e-10)


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_equal_pinocchio(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(3)
    for s in states[:4]:
        check(robot, oracle, s.q, s.qd, rng.normal(size=robot.ny), s.G, s.g, G_rate(robot, s))


def G_rate(robot, s):
    """dG/dt (nv, ny) along the motion: by differences along an arc, closed and nearly straight."""
    h = 2e-3 / np.abs(s.qd).max(initial=1.0)

    def G(t):
        q = robot.tree.integrate(s.q, t * s.qd + t**2 / 2 * s.g)
        return explicit_jacobian(robot, robot.close(q, q) if robot.has_loops else q)

    return sum(c * (G(i * h) - G(-i * h)) for i, c in STENCIL.items()) / h


@pytest.mark.parametrize(("name", "floating_base"), EXAMPLES)
def test_example_robots_equal_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(4)
    for _ in range(2):
        q, qd, ydd = random_state(robot, rng)
        G = explicit_jacobian(robot, q) if robot.nv != robot.ny else np.eye(robot.nv)
        check(robot, oracle, q, qd, ydd, G, np.zeros(robot.nv), np.zeros_like(G))
