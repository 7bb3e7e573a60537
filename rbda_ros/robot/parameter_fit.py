"""Fit the parameters of inverse dynamics to measured efforts: physical, robust, with doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rbda_ros.errors import InputError
from rbda_ros.robot.fit_uncertainty import HUBER, uncertainty_of
from rbda_ros.robot.inertia_chart import InertiaChart
from rbda_ros.spatial import Array

MAD = 1.4826
"""Standard deviation of a normal distribution, in medians of absolute deviations."""
STEPS = 50
MAX_DAMPING = 1e6
ENOUGH = 1e-6
"""Square of the last step, in standard deviations of the unknowns, at which the fit has arrived."""
NOT_EXCITED = 0.9
"""Share of what was uncertain before that is left where the motion told nothing."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Unknowns of a fit: charts of bodies, and parameters that are just numbers.

    Attributes:
        charts: the first of ten columns, their chart, and the standard deviation of its
            coordinates before measuring: 0.1 says that masses are right to some 20 %.
        linear: columns of numbers.
        values: what these are before measuring.
        deviations: and how uncertain.
    """

    charts: Sequence[tuple[int, InertiaChart, float]]
    linear: Sequence[int]
    values: Array
    deviations: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters that explain efforts, and how far they can be trusted.

    Attributes:
        values: (parameters,) all of them, fitted or not.
        deviations: (parameters,) standard deviation of each; zero of those not fitted.
        before: (parameters,) standard deviations before measuring.
        intervals: (parameters, 2) that hold the true ones with 95 %, each.
        noise: (rows a sample,) standard deviation of the efforts around the model.
        correlation: (rows a sample,) of what is left of an effort with what was left before.
        weights: (samples, rows) from 0 for an outlier to 1.
        covariance: (parameters, parameters).
    """

    values: Array
    deviations: Array
    before: Array
    intervals: Array
    noise: Array
    correlation: Array
    weights: Array
    covariance: Array

    @property
    def excited(self) -> NDArray[np.bool_]:
        """(parameters,) whether the motion told anything of them."""
        return (self.before > 0.0) & (self.deviations < NOT_EXCITED * self.before)


def fit_parameters(A: Array, efforts: Array, nominal: Array, unknowns: Unknowns) -> Fit:
    """The most likely parameters, by Gauss-Newton with Huber's weights.

    Minimises ``sum rho((e - A p(theta)) / sigma) + |(theta - theta0) / s|^2 / 2``, with sigma of
    each row found along the way; the second term is what is known beforehand.

    Args:
        A: (samples, rows, parameters) regressors in the units of the efforts.
        efforts: (samples, rows) measured.
        nominal: (parameters,) the model's own.
        unknowns: what is fitted, around these.

    Raises:
        InputError: too few samples, or numbers that are not finite.
    """
    problem = _Problem(A, efforts, nominal, unknowns)
    theta = problem.start()
    sigma, damping = problem.noise(theta), 1e-6
    for _ in range(STEPS):
        H, g = problem.normal(theta, sigma)
        step = np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
        if not problem.cost(theta + step, sigma) <= problem.cost(theta, sigma):  # nor if NaN
            damping *= 10.0
            if damping > MAX_DAMPING:
                break
            continue
        theta, damping = theta + step, max(damping / 10.0, 1e-12)
        before, sigma = sigma, problem.noise(theta)
        if step @ H @ step <= ENOUGH and np.abs(sigma / before - 1.0).max() <= 1e-3:
            break
    return problem.fit(theta, sigma)


def expected_information(
    A: Array, nominal: Array, unknowns: Unknowns, noise: Array
) -> tuple[float, Array, Array]:
    """Information of a motion about the unknowns, before it is measured.

    Args:
        A: (samples, rows, parameters) regressors in the units of the efforts.
        nominal: (parameters,) the model's own.
        unknowns: what would be fitted.
        noise: (rows,) standard deviation of the efforts.

    Returns:
        Information [nat]: half the logarithm by how much the volume of what is uncertain shrinks;
        (parameters,) standard deviations before, and after.
    """
    problem = _Problem(A, A @ nominal, nominal, unknowns)
    H, _ = problem.normal(problem.start(), noise)
    gained = np.linalg.slogdet(H / np.outer(problem.prior, problem.prior))[1] / 2
    D, C = problem.jacobian(problem.start()), np.linalg.inv(H)
    after = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", D, C, D), 0.0))
    return float(gained), np.sqrt(((D / problem.prior) ** 2).sum(axis=1)), after


class _Problem:
    """Residuals and their derivatives in the coordinates that are fitted."""

    def __init__(self, A: Array, efforts: Array, nominal: Array, unknowns: Unknowns) -> None:
        samples, rows, _ = A.shape
        if not (np.isfinite(A).all() and np.isfinite(efforts).all()):
            raise InputError("the motion, or the efforts, are not finite")
        self._A, self._efforts, self._unknowns = A, efforts, unknowns
        self._p0 = np.array(nominal, float)
        self._p0[list(unknowns.linear)] = unknowns.values
        sizes = [chart.size for _, chart, _ in unknowns.charts]
        self._size = sum(sizes) + len(unknowns.linear)
        if samples * rows <= self._size:
            raise InputError(
                f"{samples} samples of {rows} efforts for {self._size} unknowns; record for longer"
            )
        spreads = [np.full(chart.size, spread) for _, chart, spread in unknowns.charts]
        self.prior = 1.0 / np.concatenate([*spreads, np.asarray(unknowns.deviations, float)])
        self._ends = np.cumsum([0, *sizes])

    def start(self) -> Array:
        """Coordinates of what is known beforehand."""
        return np.zeros(self._size)

    def parameters(self, theta: Array) -> Array:
        """(..., parameters) at coordinates (..., unknowns)."""
        p = np.broadcast_to(self._p0, (*theta.shape[:-1], len(self._p0))).copy()
        for k, (column, chart, _) in enumerate(self._unknowns.charts):
            place = slice(self._ends[k], self._ends[k + 1])
            p[..., column : column + 10] = chart.parameters(theta[..., place])
        p[..., list(self._unknowns.linear)] += theta[..., self._ends[-1] :]
        return p

    def jacobian(self, theta: Array) -> Array:
        """(parameters, unknowns)."""
        D = np.zeros((len(self._p0), self._size))
        for k, (column, chart, _) in enumerate(self._unknowns.charts):
            place = slice(self._ends[k], self._ends[k + 1])
            D[column : column + 10, place] = chart.jacobian(theta[place])
        D[list(self._unknowns.linear), np.arange(self._ends[-1], self._size)] = 1.0
        return D

    def left(self, theta: Array) -> Array:
        """(samples, rows) measured minus model."""
        return self._efforts - self._A @ self.parameters(theta)

    def noise(self, theta: Array) -> Array:
        """(rows,) robust standard deviations; never zero."""
        left = self.left(theta)
        sigma = MAD * np.median(np.abs(left - np.median(left, axis=0)), axis=0)
        floor = 1e-9 * max(1e-9, float(np.abs(self._efforts).max(initial=0.0)))
        return np.maximum(sigma, floor)

    def residuals(self, theta: Array, sigma: Array) -> tuple[Array, Array]:
        """(samples, rows) in standard deviations, and Huber's weights of them."""
        r = self.left(theta) / sigma
        size = np.abs(r)
        return r, np.where(size <= HUBER, 1.0, HUBER / np.maximum(size, HUBER))

    def cost(self, theta: Array, sigma: Array) -> float:
        """The cost that is minimised."""
        r, _ = self.residuals(theta, sigma)
        size = np.abs(r)
        rho = np.where(size <= HUBER, size**2 / 2, HUBER * size - HUBER**2 / 2)
        return float(rho.sum() + ((self.prior * theta) ** 2).sum() / 2)

    def normal(self, theta: Array, sigma: Array) -> tuple[Array, Array]:
        """The normal equations ``H step = g``."""
        r, weights = self.residuals(theta, sigma)
        B = (self.derivatives(theta) / sigma[:, None]).reshape(-1, self._size)
        r, w = r.ravel(), weights.ravel()
        H = B.T @ (w[:, None] * B) + np.diag(self.prior**2)
        return H, B.T @ (w * r) - self.prior**2 * theta

    def derivatives(self, theta: Array) -> Array:
        """(samples, rows, unknowns) of the model's efforts."""
        D = self.jacobian(theta)
        fitted = np.flatnonzero(D.any(axis=1))
        return self._A[..., fitted] @ D[fitted]

    def fit(self, theta: Array, sigma: Array) -> Fit:
        """The result, and its uncertainty."""
        found = uncertainty_of(self.left(theta), self.derivatives(theta), self.prior, sigma)
        D = self.jacobian(theta)
        covariance = D @ found.covariance @ D.T
        D0 = self.jacobian(self.start()) / self.prior
        return Fit(
            values=self.parameters(theta),
            deviations=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
            before=np.sqrt((D0**2).sum(axis=1)),
            intervals=found.intervals(theta, self.parameters, D, self._A),
            noise=found.noise,
            correlation=found.correlation,
            weights=self.residuals(theta, found.noise)[1],
            covariance=covariance,
        )
