"""Filtered differences against what polynomials and sines really do."""

import math

import numpy as np
import pytest
from rbda_ros.node.stream.rates import FilteredRates

ALL = slice(None)


def stamps(count, rng, period=1e-3):
    """Irregular stamps [ns], now and then two alike."""
    steps = rng.uniform(0.2, 2.0, count) * period * 1e9
    steps[::7] = 0
    return np.cumsum(steps).astype(int) + 10**18


def test_straight_lines_are_exact_from_the_second_value_on():
    rates, rng = FilteredRates(3), np.random.default_rng(0)
    slope = np.array([1.0, -2.0, 0.5])
    times = stamps(50, rng)
    for k, time in enumerate(times):
        rates.update(ALL, slope * (time - times[0]) * 1e-9, int(time), 20.0, 0.1)
        if time == times[0]:
            assert np.isnan(rates.rates).all(), k
        else:
            np.testing.assert_allclose(rates.rates, slope, rtol=1e-6)


def test_one_value_makes_no_rate_however_long_a_gap_may_be():
    rates = FilteredRates(2)
    rates.update(ALL, np.array([1.0, 2.0]), 10**18, 20.0, math.inf)
    assert np.isnan(rates.rates).all()
    rates.update(ALL, np.array([1.0, 2.0]), 10**18 + 10**12, 20.0, math.inf)
    assert not rates.rates.any()


@pytest.mark.parametrize("frequency", [2.0, 20.0, 200.0])
def test_sines_come_through_as_the_low_pass_lets_them(frequency):
    """Gain of a first-order low-pass, 1 / sqrt(1 + (f / cutoff)^2), at irregular stamps."""
    cutoff, w = 20.0, 2.0 * math.pi * frequency
    rates, rng = FilteredRates(1), np.random.default_rng(1)
    times = stamps(20000, rng, period=1e-4)
    found = []
    for time in times:
        t = (time - times[0]) * 1e-9
        rates.update(ALL, np.array([math.sin(w * t) / w]), int(time), cutoff, 0.1)
        found.append(rates.rates[0])
    gain = np.abs(found[len(found) // 2 :]).max()
    assert gain == pytest.approx(1.0 / math.hypot(1.0, frequency / cutoff), rel=0.05)


def test_begins_anew_after_a_gap_or_where_time_went_back():
    for second in (10**18 + 2 * 10**8, 10**18 - 10**8):
        rates = FilteredRates(1)
        rates.update(ALL, np.array([0.0]), 10**18 - 10**6, 20.0, 0.1)
        rates.update(ALL, np.array([0.0]), 10**18, 20.0, 0.1)
        assert rates.rates[0] == 0.0
        rates.update(ALL, np.array([5.0]), second, 20.0, 0.1)
        assert np.isnan(rates.rates[0])
        rates.update(ALL, np.array([5.1]), second + 10**7, 20.0, 0.1)
        assert rates.rates[0] == pytest.approx(10.0)


def test_parts_go_by_their_own_times_and_recover_from_what_is_not_finite():
    rates = FilteredRates(2)
    first, second = np.array([0]), np.array([1])
    rates.update(first, np.array([0.0]), 10**18, 20.0, 0.1)
    rates.update(second, np.array([0.0]), 10**18 + 10**7, 20.0, 0.1)
    both = np.array([1.0, 1.0])
    rates.update(ALL, both, 10**18 + 2 * 10**7, 20.0, 0.1)
    np.testing.assert_allclose(rates.rates, [50.0, 100.0])
    rates.update(ALL, np.array([np.nan, 1.0]), 10**18 + 3 * 10**7, 20.0, 0.1)
    rates.update(ALL, both, 10**18 + 4 * 10**7, 20.0, 0.1)
    assert np.isnan(rates.rates[0])
    rates.update(ALL, both, 10**18 + 5 * 10**7, 20.0, 0.1)
    assert rates.rates[0] == 0.0
