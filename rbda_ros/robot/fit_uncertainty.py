"""How far fitted parameters can be trusted: covariance of a robust fit, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rbda_ros.spatial import Array

HUBER = 1.345
"""Residuals beyond so many standard deviations count less: 95 % as good as squares without
outliers."""
CLIPPED_VARIANCE = (
    math.erf(HUBER / math.sqrt(2))
    - HUBER * math.sqrt(2 / math.pi) * math.exp(-(HUBER**2) / 2)
    + HUBER**2 * math.erfc(HUBER / math.sqrt(2))
)
"""Mean square of a standard normal number that is clipped there."""
SHARE = 0.95
"""Of intervals that hold the true value."""
DRAWS = 4000
"""Parameters that might be the true ones, by whose quantiles intervals are told."""
CORRECTIONS = 3
"""Steps by which these are moved."""
MOST_CORRELATED = 0.99


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Of the unknowns of a fit.

    Attributes:
        noise: (rows,) standard deviation of the efforts around the model.
        correlation: (rows,) of what is left of an effort with what was left one sample before.
        covariance: (unknowns, unknowns).
        freedom: degrees of freedom of the noise: how well it is known itself.
        weights: (rows,) of squares of residuals, in the fit.
        prior: (unknowns,) one over the standard deviations before measuring.
    """

    noise: Array
    correlation: Array
    covariance: Array
    freedom: float
    weights: Array
    prior: Array

    def intervals(
        self, theta: Array, parameters: Callable[[Array], Array], D: Array, A: Array
    ) -> Array:
        """(parameters, 2) that hold the true ones with 95 %, each.

        Quantiles of parameters at unknowns drawn from Student's t around the fit, so that neither
        the noise being guessed nor the curvature of the parameters is neglected. A draw is moved
        until it fits efforts and prior as well as it would if parameters were linear in the
        unknowns: where they are curved, what efforts tell exactly would be lost otherwise
        (randomize, then optimize: Bardsley 2014).

        Args:
            theta: (unknowns,) the fit.
            parameters: gives (n, parameters) at (n, unknowns).
            D: (parameters, unknowns) derivatives of these at the fit.
            A: (samples, rows, parameters) regressors of the efforts.
        """
        rng = np.random.default_rng(0)
        steps = rng.normal(size=(DRAWS // 2, len(theta))) @ _root(self.covariance).T
        steps *= np.sqrt(self.freedom / rng.chisquare(self.freedom, size=(DRAWS // 2, 1)))
        steps = np.concatenate([steps, -steps])
        fitted = np.flatnonzero(D.any(axis=1))
        told = D[fitted].T @ _weighted_square(A[..., fitted], self.weights)
        inverse = np.linalg.inv(told @ D[fitted] + np.diag(self.prior**2))
        linear = parameters(theta)[fitted] + steps @ D[fitted].T
        moved, leads = steps, np.ones((len(steps), 1), bool)
        for _ in range(CORRECTIONS):
            beyond = parameters(theta + moved)[:, fitted] - linear
            gradient = beyond @ told.T + (moved - steps) * self.prior**2
            further = moved - gradient @ inverse
            leads &= _sane(further, steps)
            moved = np.where(leads, further, steps)
        drawn = parameters(theta + moved)
        tails = (1.0 - SHARE) / 2, (1.0 + SHARE) / 2
        return np.quantile(drawn, tails, axis=0).T


def uncertainty_of(left: Array, B: Array, prior: Array, sigma: Array) -> Uncertainty:
    """What the residuals of a fit by Huber's weights say of its unknowns.

    The fit's error is ``H^-1 (sum_t b_t psi(e_t) - P d)``, with d the distance of the truth from
    what was known beforehand. Its covariance is ``H^-1 (M + P) H^-1``: M that of the sum, where
    residuals of one effort depend on those before as in an autoregressive process of first order
    (Huber 1981, Sec. 7.6; Newey and West 1987 for the sum).

    Args:
        left: (samples, rows) measured minus model.
        B: (samples, rows, unknowns) derivatives of the model.
        prior: (unknowns,) one over the standard deviations before measuring.
        sigma: (rows,) a first guess of the noise.
    """
    samples, rows, _ = B.shape
    P = np.diag(prior**2)
    scaled = B / sigma[:, None]
    together = scaled.reshape(-1, len(prior))
    projected = scaled @ np.linalg.inv(together.T @ together + P)
    taken = (projected * scaled).sum(axis=(0, 2))  # by the unknowns, of each effort
    taken_later = (projected[1:] * scaled[:-1]).sum(axis=(0, 2))
    free = np.maximum(samples - taken, 1.0)
    noise = _noise(left, sigma, free)
    scaled = B / noise[:, None]
    clipped = np.clip(left / noise, -HUBER, HUBER)
    inner = (np.abs(left / noise) <= HUBER).mean(axis=0)
    variance = (clipped**2).sum(axis=0) / free
    neighbours = (clipped[1:] * clipped[:-1]).sum(axis=0) / np.maximum(variance, 1e-12)
    # What is left of independent noise goes together by as much as the unknowns took of it.
    correlation = (neighbours + taken_later) / max(samples - 1, 1)
    correlation = np.clip(correlation, -MOST_CORRELATED, MOST_CORRELATED)
    H, M = P.copy(), P.copy()
    for row in range(rows):
        b = scaled[:, row]
        H += inner[row] * b.T @ b
        M += variance[row] * _correlated_sum(b, correlation[row])
    C = np.linalg.solve(H, np.linalg.solve(H, M).T)
    samples_worth = samples * (1 - correlation**2) / (1 + correlation**2)
    freedom = max(float((samples_worth - taken).min()), 3.0)
    weights = inner / noise**2
    return Uncertainty(noise, correlation, (C + C.T) / 2, freedom, weights, prior)


def _noise(left: Array, sigma: Array, free: Array) -> Array:
    """(rows,) standard deviations at which clipped residuals have the variance that they should.

    Huber's second proposal: as robust as the fit, and nearly as good as squares.
    """
    floor = 1e-3 * sigma
    for _ in range(50):
        clipped = np.clip(left / sigma, -HUBER, HUBER)
        ratio = np.sqrt((clipped**2).sum(axis=0) / (free * CLIPPED_VARIANCE))
        sigma = np.maximum(sigma * ratio, floor)
        if np.abs(ratio - 1.0).max() < 1e-6:
            break
    return sigma


def _correlated_sum(b: Array, correlation: float) -> Array:
    """``sum_st correlation^|s - t| b_s b_t'`` of (samples, unknowns)."""
    from scipy.signal import lfilter  # not above: the node would start later

    earlier = lfilter([0.0, correlation], [1.0, -correlation], b, axis=0)
    cross = b.T @ earlier
    return np.asarray(b.T @ b + cross + cross.T, float)


def _weighted_square(A: Array, weights: Array) -> Array:
    """``sum_tr weight_r a_tr a_tr'`` of (samples, rows, parameters)."""
    rows = (A[:, r] for r in range(A.shape[1]))
    return sum((w * a.T @ a for w, a in zip(weights, rows, strict=True)), np.zeros(2 * A.shape[2:]))


def _sane(moved: Array, steps: Array) -> Array:
    """(n, 1) whether moving has led anywhere; not where parameters are curved too much."""
    far = np.abs(moved - steps).max(axis=1, keepdims=True)
    return np.isfinite(far) & (far <= 1.0 + np.abs(steps).max(axis=1, keepdims=True))


def _root(covariance: Array) -> Array:
    """R with ``R R'`` the covariance, which may be of less than full rank."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), float)
