"""Covariances and intervals of a robust fit, against sums written out and repeated trials."""

import numpy as np
from scipy.linalg import block_diag, toeplitz
from scipy.stats import norm, t

from rbda_ros.robot.parameter_fit import (
    CLIPPED_VARIANCE,
    HUBER,
    LINEAR,
    Uncertainty,
    _correlated,
    _correlated_clipped,
    _expected,
    uncertainty_of,
)


def test_correlated_sums_are_those_of_the_whole_matrix():
    b = np.random.default_rng(0).normal(size=(40, 3))
    dense = b.T @ toeplitz(0.7 ** np.arange(40)) @ b
    np.testing.assert_allclose(b.T @ _correlated(b, 0.7), dense, rtol=1e-12)


def test_what_a_fit_leaves_of_correlated_noise_is_that_of_the_whole_matrix():
    """Two efforts whose noise is independent of each other, and of different correlation."""
    B, P = np.random.default_rng(2).normal(size=(40, 2, 3)), np.diag([1.0, 2.0, 3.0])
    together = np.concatenate([B[:, 0], B[:, 1]])
    R = block_diag(*(_correlated_clipped(np.eye(40), c) for c in (0.8, -0.3)))
    hat = np.eye(80) - together @ np.linalg.inv(together.T @ together + P) @ together.T
    left = hat @ R @ hat.T
    squares, neighbours = _expected(B, P, np.array([0.8, -0.3]))
    of_each = left[:40, :40], left[40:, 40:]
    np.testing.assert_allclose(squares, [np.trace(each) for each in of_each], rtol=1e-12)
    np.testing.assert_allclose(neighbours, [np.trace(each, 1) for each in of_each], rtol=1e-12)


def test_the_variance_of_clipped_numbers_is_that_of_many():
    clipped = np.clip(norm.ppf((np.arange(200_000) + 0.5) / 200_000), -HUBER, HUBER)
    np.testing.assert_allclose((clipped**2).mean(), CLIPPED_VARIANCE, rtol=1e-4)


def test_clipped_numbers_go_together_as_many_do():
    """Of pairs of normal numbers, by a quadrature in both."""
    x, weight = np.polynomial.hermite_e.hermegauss(200)
    for correlation in (0.3, 0.8):
        y = correlation * x[:, None] + np.sqrt(1 - correlation**2) * x
        both = np.clip(x, -HUBER, HUBER)[:, None] * np.clip(y, -HUBER, HUBER)
        mean = weight @ both @ weight / weight.sum() ** 2
        expected = LINEAR * correlation + (1 - LINEAR) * correlation**3
        np.testing.assert_allclose(mean / CLIPPED_VARIANCE, expected, atol=3e-3)


def test_intervals_are_those_of_students_t_and_follow_curved_parameters():
    known = np.ones(1), np.zeros(1), np.array([[0.04]]), 10.0
    of_one = Uncertainty(*known, np.zeros(1), np.array([5.0]))  # by what was known before alone
    A = np.ones((1, 1, 1))
    (straight,) = of_one.intervals(np.array([1.0]), lambda theta: theta, np.eye(1), A)
    reach = 0.2 * t.ppf(0.975, 10.0)
    np.testing.assert_allclose(straight, [1.0 - reach, 1.0 + reach], atol=0.03)
    (curved,) = of_one.intervals(np.array([1.0]), np.exp, np.exp(np.eye(1)), A)
    np.testing.assert_allclose(curved, np.exp(straight), rtol=1e-6)


def test_what_efforts_tell_exactly_is_not_lost_where_parameters_are_curved():
    """A radius is measured to 1 %, the direction not at all: the square of x is some of both."""

    def parameters(theta):
        x, y = np.moveaxis(theta, -1, 0)
        return np.stack([np.exp(x) * np.cos(y), np.exp(x) * np.sin(y), np.exp(x)], axis=-1)

    theta, prior = np.zeros(2), np.array([1e-3, 5.0])
    D = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    A = np.array([[[1.0, 0.0, 0.0]]])  # the first of them is measured
    C = np.diag([1e-4, 0.04])
    found = Uncertainty(np.ones(1), np.zeros(1), C, 1e6, np.array([1e4]), prior)
    intervals = found.intervals(theta, parameters, D, A)
    np.testing.assert_allclose(intervals[0], [1 - 0.0196, 1 + 0.0196], atol=2e-3)


def test_deviations_are_those_of_repeated_fits():
    """Of the mean of correlated noise, whose error is three times that of independent noise."""
    rng, count, correlation = np.random.default_rng(1), 400, 0.8
    B, prior = np.ones((count, 1, 1)), np.array([1e-6])
    told, means = [], []
    for _ in range(300):
        noise = rng.normal(size=count) * np.sqrt(1 - correlation**2)
        noise[0] /= np.sqrt(1 - correlation**2)
        for k in range(1, count):
            noise[k] += correlation * noise[k - 1]
        means.append(noise.mean())
        left = (noise - noise.mean())[:, None]
        told.append(np.sqrt(uncertainty_of(left, B, prior, np.ones(1)).covariance[0, 0]))
    np.testing.assert_allclose(np.mean(told), np.std(means), rtol=0.12)
    assert np.std(means) > 2.5 / np.sqrt(count)
