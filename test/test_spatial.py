"""Transforms whose steps are joined, beside the same step by step."""

import casadi as ca
import numpy as np
import pytest

from rbda_ros.spatial import Transform, rpy_matrix

TILTED = rpy_matrix([0.3, -0.7, 1.1])
ABOUT_X = rpy_matrix([0.3, 0.0, 0.0])
FIRST, SECOND = ca.DM([0.1, -0.2, 0.3]), ca.DM([0.5, 0.4, -0.6])


def about_z(q):
    c, s = ca.cos(q), ca.sin(q)
    return ca.SX(ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 1)))


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (lambda q: ((ca.DM(TILTED), FIRST), (about_z(q), None)), 1),
        (lambda q: ((ca.DM(TILTED), FIRST), (about_z(q), SECOND)), 2),
        (lambda q: ((ca.sparsify(ca.DM(ABOUT_X)), FIRST), (about_z(q), None)), 2),
        (lambda q: ((None, FIRST), (about_z(q), None)), 2),
        (lambda q: ((ca.DM(TILTED), None), (None, SECOND), (about_z(q), None)), 3),
        (lambda q: ((ca.DM(TILTED), FIRST), (about_z(q), None), (ca.DM(TILTED), None)), 1),
        (lambda q: (), 0),
    ],
)
def test_joined_transforms_are_the_same(steps, left):
    q = ca.SX.sym("q")
    X = Transform(steps(q))
    joined = X.joined()
    assert len(joined.steps) == left
    motions = ca.DM(np.random.default_rng(1).normal(size=(6, 2)))
    compared = [(X @ motions, joined @ motions), (X.T @ motions, joined.T @ motions)]
    for expected, found in compared:
        evaluate = ca.Function("f", [q], [ca.SX(expected), ca.SX(found)])
        a, b = evaluate(0.8)
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=0, atol=1e-15 * 8)
