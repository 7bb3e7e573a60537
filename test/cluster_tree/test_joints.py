"""jcalc of every joint type against finite differences of its own transform."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from force_subspaces import constraint_basis

from rbda_ros.cluster_tree.joints import AXIS_TYPES, JOINT_MODELS, integrate

PITCH = 0.07
STEP = 1e-5
# Central differences: truncation STEP^2 = 1e-10, rounding 1e-16 / STEP = 1e-11, both times O(10).
TOLERANCE = 3e-9
TYPES = sorted(JOINT_MODELS)


def dense(matrix) -> np.ndarray:
    return np.asarray(ca.DM(ca.densify(matrix)))


def random_position(joint_type: str, rng: np.random.Generator) -> np.ndarray:
    model = JOINT_MODELS[joint_type]
    return integrate(joint_type, np.array(model.neutral), rng.normal(size=model.nv))


def pose(joint_type: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes R (child to parent) and origin p of the body in the joint frame."""
    X, _, _ = JOINT_MODELS[joint_type].jcalc(ca.DM(q), ca.DM(JOINT_MODELS[joint_type].nv, 1), PITCH)
    R, p = X.pose()
    return dense(R), dense(p).ravel()


def subspace(joint_type: str, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _, S, ring_S = JOINT_MODELS[joint_type].jcalc(ca.DM(q), ca.DM(qd), PITCH)
    return dense(S), dense(ring_S)


def rate(joint_type: str, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return dense(JOINT_MODELS[joint_type].rate(ca.DM(q), ca.DM(qd))).ravel()


def samples(joint_type: str, count: int = 10):
    rng = np.random.default_rng(TYPES.index(joint_type))
    for _ in range(count):
        yield random_position(joint_type, rng), rng.normal(size=JOINT_MODELS[joint_type].nv)


@pytest.mark.parametrize("joint_type", TYPES)
def test_neutral_position_is_the_joint_frame(joint_type):
    R, p = pose(joint_type, np.array(JOINT_MODELS[joint_type].neutral))
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_array_equal(p, np.zeros(3))


@pytest.mark.parametrize("joint_type", TYPES)
def test_subspace_gives_the_velocity_of_the_transform(joint_type):
    for q, qd in samples(joint_type):
        ahead = pose(joint_type, integrate(joint_type, q, STEP * qd))
        behind = pose(joint_type, integrate(joint_type, q, -STEP * qd))
        R, _ = pose(joint_type, q)
        spin = R.T @ (ahead[0] - behind[0]) / (2 * STEP)  # R' dR/dt is skew(w) in child axes
        w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        v = R.T @ (ahead[1] - behind[1]) / (2 * STEP)
        S, _ = subspace(joint_type, q, qd)
        np.testing.assert_allclose(S @ qd, np.concatenate([w, v]), atol=TOLERANCE)


@pytest.mark.parametrize("joint_type", TYPES)
def test_ring_subspace_is_the_rate_of_the_subspace(joint_type):
    for q, qd in samples(joint_type):
        ahead, _ = subspace(joint_type, integrate(joint_type, q, STEP * qd), qd)
        behind, _ = subspace(joint_type, integrate(joint_type, q, -STEP * qd), qd)
        _, ring_S = subspace(joint_type, q, qd)
        np.testing.assert_allclose(ring_S, (ahead - behind) / (2 * STEP), atol=TOLERANCE)


@pytest.mark.parametrize("joint_type", TYPES)
def test_motion_and_constraint_force_subspaces_complete_each_other(joint_type):
    T_c = constraint_basis(joint_type, PITCH)
    for q, qd in samples(joint_type):
        S, _ = subspace(joint_type, q, qd)
        assert np.linalg.matrix_rank(S) == S.shape[1] == JOINT_MODELS[joint_type].nv
        assert T_c.shape == (6, 6 - S.shape[1])
        assert not T_c.size or np.linalg.matrix_rank(T_c) == T_c.shape[1]
        np.testing.assert_allclose(S.T @ T_c, 0.0, atol=1e-15)


@pytest.mark.parametrize("joint_type", TYPES)
def test_integration_follows_the_rate(joint_type):
    for q, qd in samples(joint_type):
        ahead = integrate(joint_type, q, STEP * qd)
        behind = integrate(joint_type, q, -STEP * qd)
        np.testing.assert_allclose(
            rate(joint_type, q, qd), (ahead - behind) / (2 * STEP), atol=TOLERANCE
        )
        np.testing.assert_array_equal(integrate(joint_type, q, 0 * qd), q)


@pytest.mark.parametrize("joint_type", ["spherical", "floating"])
def test_quaternions_keep_their_length(joint_type):
    for q, qd in samples(joint_type):
        assert np.linalg.norm(integrate(joint_type, q, 3 * qd)[-4:]) == pytest.approx(1, abs=1e-15)
        # A rate along the quaternion would change its length.
        assert q[-4:] @ rate(joint_type, q, qd)[-4:] == pytest.approx(0, abs=1e-15)


def test_a_turn_of_a_ball_joint_is_exact_however_large():
    half = integrate("spherical", np.array([0.0, 0.0, 0.0, 1.0]), np.array([np.pi, 0.0, 0.0]))
    np.testing.assert_allclose(half, [1, 0, 0, 0], atol=1e-15)
    R, _ = pose("spherical", half)
    np.testing.assert_allclose(R, np.diag([1, -1, -1]), atol=1e-15)


@pytest.mark.parametrize("joint_type", sorted(AXIS_TYPES - {"planar"}))
def test_joints_with_an_axis_leave_it_where_it_is(joint_type):
    for q, _ in samples(joint_type):
        R, p = pose(joint_type, q)
        np.testing.assert_allclose(R[:, 2], [0, 0, 1], atol=0)
        np.testing.assert_allclose(p[:2], 0, atol=0)
