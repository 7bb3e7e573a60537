"""The search itself, on a planar arm that pen and paper solve."""

import numpy as np
import pytest

from rbda_ros.algorithms.inverse_kinematics import Problem, solve

LENGTHS = np.array([0.5, 0.3])


def tip(q):
    angles = np.cumsum(q)
    return np.array([LENGTHS @ np.cos(angles), LENGTHS @ np.sin(angles)])


def jacobian(q):
    angles = np.cumsum(q)
    x, y = LENGTHS * np.cos(angles), LENGTHS * np.sin(angles)
    return np.array([[-y.sum(), -y[1]], [x.sum(), x[1]]])


def arm(target, move=lambda q, dy: q + dy):
    return Problem(lambda q: target - tip(q), jacobian, move)


@pytest.mark.parametrize("seed", range(10))
def test_reaches_what_is_within_reach(seed):
    rng = np.random.default_rng(seed)
    target = tip(rng.uniform([-3, 0.2], [3, 2.9]))
    found = solve(arm(target), np.array([0.3, 0.5]), 1e-10, 200)
    assert found.reached
    np.testing.assert_allclose(tip(found.q), target, 0, 1e-10)
    assert np.abs(found.error).max() <= 1e-10


def test_stretches_towards_what_is_out_of_reach():
    target = np.array([1.2, 0.9])  # 1.5 m away; the arm is 0.8 m long
    found = solve(arm(target), np.array([0.1, 0.4]), 1e-10, 500)
    assert not found.reached
    assert np.linalg.norm(found.error) == pytest.approx(0.7, abs=1e-5)
    np.testing.assert_allclose(tip(found.q), 0.8 * target / 1.5, 0, 1e-2)


def test_nothing_to_do():
    start = np.array([0.3, 0.5])
    found = solve(arm(tip(start)), start, 1e-10, 200)
    assert (found.reached, found.iterations) == (True, 0)
    assert np.array_equal(found.q, start)


def test_starts_from_a_singular_position():
    found = solve(arm(np.array([0.0, 0.6])), np.array([0.1, 0.0]), 1e-10, 200)
    assert found.reached


def test_where_no_move_is_allowed_it_stays():
    start = np.array([0.3, 0.5])
    found = solve(arm(np.array([0.1, 0.6]), lambda q, dy: None), start, 1e-10, 200)
    assert not found.reached
    assert np.array_equal(found.q, start)


def test_never_leaves_the_allowed_range():
    def move(q, dy):
        moved = np.clip(q + dy, [-1.0, 0.0], [1.0, 1.0])
        visited.append(moved)
        return moved

    visited = []
    target = tip(np.array([0.9, 0.9]))
    assert solve(arm(target, move), np.array([-0.9, 0.1]), 1e-10, 200).reached
    assert np.all(np.abs(visited) <= 1.0)
