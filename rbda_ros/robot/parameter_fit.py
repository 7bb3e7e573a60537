"""Fit the parameters of inverse dynamics to measured efforts, or the payload of one link alone.

Parameters stay physical, outliers count less, and results have confidence intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rbda_ros.errors import InputError
from rbda_ros.robot.effort_evidence import Evidence, Motion, gather
from rbda_ros.robot.inertia_chart import InertiaChart
from rbda_ros.robot.payloads import Payload
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

HUBER = 1.345
"""Residuals beyond so many standard deviations count less. Without outliers the estimate is 95 % as
efficient as least squares."""
CLIPPED_VARIANCE = (
    math.erf(HUBER / math.sqrt(2))
    - HUBER * math.sqrt(2 / math.pi) * math.exp(-(HUBER**2) / 2)
    + HUBER**2 * math.erfc(HUBER / math.sqrt(2))
)
"""Mean square of a standard normal number that is clipped at `HUBER`."""
LINEAR = math.erf(HUBER / math.sqrt(2)) ** 2 / CLIPPED_VARIANCE
"""Share of that mean square from the linear Hermite polynomial. Nearly all of the rest is from the
cubic one."""
SHARE = 0.95
"""Share of intervals that contain the true value."""
DRAWS = 4000
"""Random draws of the parameters, whose quantiles are the intervals."""
CORRECTIONS = 3
"""Steps that correct each draw."""
MAX_CORRELATED = 0.99
MOMENT_STEPS = 6
"""Iterations that match noise and correlation to the residuals."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Uncertainty of the unknowns of a fit.

    Attributes:
        noise: (rows,) standard deviation of the efforts around the model.
        correlation: (rows,) of the residuals of an effort with those one sample before.
        covariance: (unknowns, unknowns).
        freedom: degrees of freedom of the estimate of the noise.
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
        """95 % confidence interval of each parameter, (parameters, 2).

        The intervals are quantiles of the parameters at unknowns drawn from Student's t around the
        fit. This takes into account that the noise is estimated, and that parameters are nonlinear
        in the unknowns. Each draw is moved until it fits efforts and prior as well as it would if
        parameters were linear. Otherwise combinations that efforts determine precisely would
        spread with the nonlinearity (randomize, then optimize: Bardsley 2014).

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
    """Uncertainty of the unknowns from the residuals of a fit by Huber's weights.

    The fit's error is ``H^-1 (sum_t b_t psi(e_t) - P d)``, where d is the distance of the true
    unknowns from their prior mean. Its covariance is ``H^-1 (M + P) H^-1``, where M is the
    covariance of the sum. Residuals of one effort follow an autoregressive process of first order
    (Huber 1981, Sec. 7.6; Newey and West 1987 for the sum).

    Args:
        left: (samples, rows) measured minus model.
        B: (samples, rows, unknowns) derivatives of the model.
        prior: (unknowns,) one over the standard deviations before measuring.
        sigma: (rows,) initial guess of the noise.
    """
    samples, rows, _ = B.shape
    P = np.diag(prior**2)
    noise, correlation, squares = _noise_model(left, B, P, sigma)
    scaled = B / noise[:, None]
    inner = (np.abs(left / noise) <= HUBER).mean(axis=0)
    variance = (np.clip(left / noise, -HUBER, HUBER) ** 2).sum(axis=0) / squares
    H, M = P.copy(), P.copy()
    for row in range(rows):
        b = scaled[:, row]
        H += inner[row] * b.T @ b
        M += variance[row] * b.T @ _correlated_clipped(b, correlation[row])
    C = np.linalg.solve(H, np.linalg.solve(H, M).T)
    samples_worth = samples * (1 - correlation**2) / (1 + correlation**2)
    taken = samples - _expected(scaled, P, np.zeros(rows))[0]  # by the unknowns, of each effort
    freedom = max(float((samples_worth - taken).min()), 3.0)
    weights = inner / noise**2
    return Uncertainty(noise, correlation, (C + C.T) / 2, freedom, weights, prior)


def _noise_model(left: Array, B: Array, P: Array, sigma: Array) -> tuple[Array, Array, Array]:
    """Noise and correlation (rows,) for which expected residuals of a fit match the actual ones.

    Also the expected sum of squared residuals (rows,) of such noise, in variances of the noise.
    """
    noise, correlation = sigma, np.zeros(len(sigma))
    for _ in range(MOMENT_STEPS):
        squares, neighbours = _expected(B / noise[:, None], P, correlation)
        squares = np.maximum(squares, 1.0)
        noise = _noise(left, sigma, squares)
        clipped = np.clip(left / noise, -HUBER, HUBER)
        size = np.maximum((clipped**2).sum(axis=0), 1e-12)
        correlation += (clipped[1:] * clipped[:-1]).sum(axis=0) / size - neighbours / squares
        correlation = np.clip(correlation, -MAX_CORRELATED, MAX_CORRELATED)
    return noise, correlation, squares


def _noise(left: Array, sigma: Array, free: Array) -> Array:
    """(rows,) standard deviations for which clipped residuals have the expected variance.

    Huber's second proposal: as robust as the fit, and nearly as efficient as the sample variance.
    """
    floor = 1e-3 * sigma
    for _ in range(50):
        clipped = np.clip(left / sigma, -HUBER, HUBER)
        ratio = np.sqrt((clipped**2).sum(axis=0) / (free * CLIPPED_VARIANCE))
        sigma = np.maximum(sigma * ratio, floor)
        if np.abs(ratio - 1.0).max() < 1e-6:
            break
    return sigma


def _expected(scaled: Array, P: Array, correlation: Array) -> tuple[Array, Array]:
    """Expected sums (rows,) of squared residuals, and of products of neighbouring residuals.

    For (clipped) noise e with unit variance and covariance R the residuals of the fit are
    ``(I - B N B') e`` with ``N = (B'B + P)^-1``. Their covariance is
    ``R - B N B'R - R B N B' + B N (B'R B) N B'``: the unknowns absorb more of correlated noise than
    of independent noise.

    Args:
        scaled: (samples, rows, unknowns) derivatives, in standard deviations of the noise.
        P: (unknowns, unknowns) information before measuring.
        correlation: (rows,) of the noise with that of the sample before.
    """
    samples, rows, _ = scaled.shape
    B = [scaled[:, row] for row in range(rows)]
    RB = [_correlated_clipped(b, c) for b, c in zip(B, correlation, strict=True)]
    N = np.linalg.inv(sum((b.T @ b for b in B), P))
    NMN = N @ sum(b.T @ rb for b, rb in zip(B, RB, strict=True)) @ N
    squares, neighbours = np.zeros((2, rows))
    next_to = LINEAR * correlation + (1.0 - LINEAR) * correlation**3
    for row, (b, rb) in enumerate(zip(B, RB, strict=True)):
        bN, bNMN = b @ N, b @ NMN
        squares[row] = samples + (bNMN * b - 2.0 * bN * rb).sum()
        neighbours[row] = (samples - 1) * next_to[row] + (
            bNMN[:-1] * b[1:] - bN[:-1] * rb[1:] - bN[1:] * rb[:-1]
        ).sum()
    return squares, neighbours


def _correlated_clipped(b: Array, correlation: float) -> Array:
    """``sum_s r_|s - t| b_s`` of (samples, unknowns), where r is the correlation of clipped noise.

    The part of clipped noise that is cubic in the noise decorrelates with the third power.
    """
    linear, rest = (_correlated(b, c) for c in (correlation, correlation**3))
    return LINEAR * linear + (1.0 - LINEAR) * rest


def _correlated(b: Array, correlation: float) -> Array:
    """``sum_s correlation^|s - t| b_s`` of (samples, unknowns)."""
    from scipy.signal import lfilter  # not above: the node would start later

    decay = [0.0, correlation], [1.0, -correlation]
    later = lfilter(*decay, b[::-1], axis=0)[::-1]
    return np.asarray(b + lfilter(*decay, b, axis=0) + later, float)


def _weighted_square(A: Array, weights: Array) -> Array:
    """``sum_tr weight_r a_tr a_tr'`` of (samples, rows, parameters)."""
    rows = (A[:, r] for r in range(A.shape[1]))
    return sum((w * a.T @ a for w, a in zip(weights, rows, strict=True)), np.zeros(2 * A.shape[2:]))


def _sane(moved: Array, steps: Array) -> NDArray[np.bool_]:
    """(n, 1) whether the corrections of a draw converge, rather than run away."""
    far = np.abs(moved - steps).max(axis=1, keepdims=True)
    return np.isfinite(far) & (far <= 1.0 + np.abs(steps).max(axis=1, keepdims=True))


def _root(covariance: Array) -> Array:
    """R with ``R R'`` the covariance, which may be of less than full rank."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), float)


MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
STEPS = 50
MAX_DAMPING = 1e6
ENOUGH = 1e-6
"""Square of a step, in standard deviations of the unknowns, below which the fit has converged."""
NOT_EXCITED = 0.9
"""Standard deviation after over before measuring, above which the motion did not excite a
parameter."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Unknowns of a fit: charts of the inertias of bodies, and other parameters.

    Attributes:
        charts: for each body the first of its ten columns, the chart, and the standard deviation
            of its coordinates before measuring; 0.1 means that masses are right to some 20 %.
        linear: columns of the other parameters.
        values: their values before measuring.
        deviations: their standard deviations before measuring.
    """

    charts: Sequence[tuple[int, InertiaChart, float]]
    linear: Sequence[int]
    values: Array
    deviations: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted parameters and their uncertainty.

    Attributes:
        values: (parameters,) all of them, fitted or not.
        deviations: (parameters,) standard deviations; zero for those not fitted.
        before: (parameters,) standard deviations before measuring.
        intervals: (parameters, 2) 95 % confidence intervals.
        noise: (rows a sample,) standard deviation of the efforts around the model.
        correlation: (rows a sample,) of the residuals of an effort with those one sample before.
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
        """(parameters,) whether the motion determined them better than before."""
        return (self.before > 0.0) & (self.deviations < NOT_EXCITED * self.before)


def fit_parameters(A: Array, efforts: Array, nominal: Array, unknowns: Unknowns) -> Fit:
    """The most likely parameters, by Gauss-Newton with Huber's weights.

    Minimises ``sum rho((e - A p(theta)) / sigma) + |(theta - theta0) / s|^2 / 2``. The noise sigma
    of each row is estimated in the same iterations; the second term is the prior.

    Args:
        A: (samples, rows, parameters) regressors in the units of the efforts.
        efforts: (samples, rows) measured.
        nominal: (parameters,) the model's own.
        unknowns: what is fitted.

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
        Information [nat]: half the logarithm of the ratio by which the determinant of the
        covariance shrinks; (parameters,) standard deviations before, and after.
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
        """The prior mean of the unknowns."""
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


PAYLOAD_SPREAD = 1.0
"""Standard deviation of the coordinates of a payload before measuring: its mass may be seven times
the first guess, or a seventh."""
LIGHTEST = 1e-3
"""Least mass of the first guess of a payload [kg]."""
PAYLOAD_SIZE = 0.05
"""Radius of the ball that is the first guess of a payload [m]."""


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A payload and its uncertainty.

    Attributes:
        payload: what the link carries in addition to the model.
        mass_deviation: standard deviation of its mass [kg].
        com_deviation: (3,) of its centre of mass [m].
        nominal_rms, loaded_rms: (actuated,) of measured minus model without and with it [N m, N].
    """

    payload: Payload
    mass_deviation: float
    com_deviation: Array
    nominal_rms: Array
    loaded_rms: Array


def estimate_payload(
    robot: Robot, motions: Sequence[Motion], link: str, cutoff: float = 10.0
) -> PayloadEstimate:
    """Estimate the payload of a link from measured motions and efforts.

    Args:
        robot: the model, with the payloads that are known.
        motions: of the robot.
        link: that carries the payload.
        cutoff: of the averages that are fitted [Hz].

    Raises:
        InputError: a link that does not move, a floating base, or too little motion.
    """
    evidence = gather(robot, motions, link, cutoff)
    parameters = robot.parameters(payload=link)
    start = len(parameters.names) - 10
    chart = payload_chart(evidence, parameters.values, start)
    unknowns = Unknowns([(start, chart, PAYLOAD_SPREAD)], [], np.zeros(0), np.zeros(0))
    fit = fit_parameters(evidence.A, evidence.efforts, parameters.values, unknowns)
    payload = payload_of_parameters(link, fit.values[start:])
    # The centre of mass is h / m.
    by_m = -np.array(payload.com)[:, None] / payload.mass
    D = np.hstack([by_m, np.eye(3) / payload.mass])
    C = fit.covariance[start : start + 4, start : start + 4]
    before, after = (
        np.sqrt(((evidence.efforts - evidence.A @ values) ** 2).mean(axis=0))
        for values in (parameters.values, fit.values)
    )
    return PayloadEstimate(
        payload,
        float(fit.deviations[start]),
        np.sqrt(np.maximum(np.diag(D @ C @ D.T), 0.0)),
        before,
        after,
    )


def payload_chart(evidence: Evidence, values: Array, start: int) -> InertiaChart:
    """A chart around a ball with the mass and centre that a linear fit of the efforts gives.

    Args:
        evidence: with ten columns for the payload.
        values: (parameters,) of the model without the payload.
        start: the first of the ten columns.
    """
    left = (evidence.efforts - evidence.A @ values).ravel()
    A = evidence.A[:, :, start : start + 4].reshape(-1, 4)
    mass, *moment = np.linalg.lstsq(A, left, rcond=1e-6)[0]
    m = max(float(mass), LIGHTEST)
    com = np.clip(np.array(moment) / m, -1.0, 1.0)
    rotational = m * (
        0.4 * PAYLOAD_SIZE**2 * np.eye(3) + com @ com * np.eye(3) - np.outer(com, com)
    )
    xx, xy, xz, yy, yz, zz = rotational[np.triu_indices(3)]
    return InertiaChart.around(np.array([m, *(m * com), xx, xy, yy, xz, yz, zz]))


def payload_of_parameters(link: str, parameters: Array) -> Payload:
    """The payload with inertial parameters (10,) in the frame of its link."""
    mass, (x, y, z), (xx, xy, xz, yy, yz, zz) = about_com(parameters)
    return Payload(link, mass, (x, y, z), (xx, xy, xz, yy, yz, zz))


def about_com(parameters: Array) -> tuple[float, list[float], list[float]]:
    """Mass, centre of mass, and moments about it, in the order of URDFs."""
    m, *moment = parameters[:4]
    com = np.array(moment) / m if m else np.zeros(3)
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_com = about_origin - m * (com @ com * np.eye(3) - np.outer(com, com))
    return float(m), com.tolist(), about_com[np.triu_indices(3)].tolist()
