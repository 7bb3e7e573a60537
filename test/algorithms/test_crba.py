"""The mass matrix against Pinocchio's CRBA, inverse dynamics and generalized_rbda."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    random_state,
    some_by_day,
)
from reference_data import REFERENCE_ROBOTS, reference

from rbda_ros import load_robot

ROBOTS = distinct_robots()


# H of a fixed base is a block of that of a floating one: every robot floats, two are fixed too.
CASES = some_by_day(ROBOTS, floating_base=True) + [
    (name, False) for name in ("panda", "talos_full_v2")
]


@pytest.mark.parametrize(("name", "floating_base"), CASES)
def test_equals_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, _, _ = random_state(robot, rng)
        G = explicit_jacobian(robot, q) if robot.nv != robot.ny else np.eye(robot.nv)
        assert_close(robot.mass_matrix(q), G.T @ oracle.mass_matrix(q) @ G, 1e-10)


@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_pinocchio_projected_onto_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    for s in states:
        expected = s.G.T @ oracle.mass_matrix(s.q) @ s.G
        H = robot.mass_matrix(s.q)
        assert_close(H, expected, 1e-10, size=np.abs(expected).max())
        assert np.array_equal(H, H.T)
        assert np.linalg.eigvalsh(H)[0] > 0.0


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_reference(name):
    ref = reference(name)
    for state in ref.states:
        expected = ref.matrix(state["H"])
        size = np.abs(expected).max()
        assert_close(ref.robot.mass_matrix(ref.position(state)), expected, 1e-9, size)


@pytest.mark.parametrize("name", MECHANISMS)
def test_columns_are_forces_of_unit_accelerations(name):
    robot, _, states = mechanism_states(name)
    zero = np.zeros(robot.ny)
    for s in states[:5]:
        still = robot.gravity_force(s.q)
        columns = [robot.inverse_dynamics(s.q, zero, e) - still for e in np.eye(robot.ny)]
        assert_close(robot.mass_matrix(s.q), np.array(columns).T, 1e-12)


def test_branches_do_not_feel_each_other():
    robot = load_robot(ROBOTS["solo12"])
    H = robot.mass_matrix(np.full(robot.nq, 0.3))
    assert np.count_nonzero(H) == 4 * 9  # four legs of three joints


@pytest.mark.parametrize("name", MECHANISMS)
def test_factor_gives_the_mass_matrix(name):
    robot, _, states = mechanism_states(name)
    for s in states[:5]:
        H, L = robot.mass_matrix(s.q), robot.mass_matrix_factor(s.q)
        assert_close(L.T @ L, H, 1e-12, size=np.abs(H).max())
        assert np.array_equal(L, np.tril(L))


def test_factor_fills_in_no_zero():
    robot = load_robot(ROBOTS["solo12"], floating_base=True)
    q = np.concatenate([[0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8], np.full(12, 0.4)])
    H, L = robot.mass_matrix(q), robot.mass_matrix_factor(q)
    assert_close(L.T @ L, H, 1e-12, size=np.abs(H).max())
    legs = L[6:, 6:].copy()  # below the floating base
    for leg in range(0, 12, 3):
        legs[leg : leg + 3, leg : leg + 3] = 0.0
    assert not legs.any()
