"""Charts of inertias: every point is a body, and derivatives are derivatives."""

import numpy as np
import pytest

from rbda_ros.robot.inertia_chart import InertiaChart, is_body, parameters_of, pseudo_inertia


def points(seed=0, count=6):
    """Parameters of some point masses: what a body is."""
    rng = np.random.default_rng(seed)
    mass, place = rng.uniform(0.1, 1.0, count), rng.normal(size=(count, 3))
    J = sum(m * np.outer([*p, 1.0], [*p, 1.0]) for m, p in zip(mass, place, strict=True))
    return parameters_of(np.array(J))


def test_point_masses_have_the_inertia_of_the_textbook():
    m, c = 2.0, np.array([0.1, -0.3, 0.5])
    pi = parameters_of(m * np.outer([*c, 1.0], [*c, 1.0]))
    I = m * (c @ c * np.eye(3) - np.outer(c, c))
    expected = [m, *(m * c), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    np.testing.assert_allclose(pi, expected, atol=1e-15)
    np.testing.assert_allclose(parameters_of(pseudo_inertia(pi)), pi, atol=1e-15)
    assert not is_body(pi) and is_body(points())


def test_every_point_of_a_chart_is_a_body_and_zero_is_the_nominal():
    nominal = points()
    chart = InertiaChart.around(nominal)
    assert chart.size == 10
    np.testing.assert_allclose(chart.parameters(np.zeros(10)), nominal, rtol=1e-12)
    rng = np.random.default_rng(1)
    together = rng.normal(0.0, 1.0, (200, 10))
    for theta, parameters in zip(together, chart.parameters(together), strict=True):
        assert np.linalg.eigvalsh(pseudo_inertia(parameters)).min() > 0.0
        np.testing.assert_allclose(parameters, chart.parameters(theta), rtol=1e-12)


@pytest.mark.parametrize("nominal", [points(), np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 5e-4])])
def test_derivatives_are_differences(nominal):
    chart = InertiaChart.around(nominal)
    theta = np.random.default_rng(2).normal(0.0, 0.3, chart.size)
    step = 1e-6
    for k, column in enumerate(chart.jacobian(theta).T):
        ahead, behind = theta.copy(), theta.copy()
        ahead[k] += step
        behind[k] -= step
        slope = (chart.parameters(ahead) - chart.parameters(behind)) / (2 * step)
        np.testing.assert_allclose(column, slope, atol=1e-8 * np.abs(nominal).max())


def test_what_is_no_body_is_scaled_and_nothing_stays_nothing():
    spin = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 5e-4])
    chart = InertiaChart.around(spin)
    np.testing.assert_allclose(chart.parameters(np.array([0.1])), spin * np.exp(0.1))
    nothing = InertiaChart.around(np.zeros(10))
    assert nothing.size == 0
    np.testing.assert_array_equal(nothing.parameters(np.zeros(0)), np.zeros(10))
    assert nothing.jacobian(np.zeros(0)).shape == (10, 0)
