"""Sine and cosine of our own against the 80-bit ones of the C library."""

import casadi as ca
import numpy as np
import pytest

from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.sincos import LARGEST

WIDE = np.finfo(np.longdouble).nmant >= 63


@pytest.fixture(scope="module")
def kernel():
    x = ca.SX.sym("x", 5)  # not a multiple of the lanes
    kernel = Kernel(ca.Function("sincos", [x], [ca.sin(x), ca.cos(x)]))
    assert kernel.compile(batch=True)
    return kernel


def evaluate(kernel, x):
    """Sine and cosine of many numbers, from batches; those of single calls must be the same."""
    rows = np.resize(x, (-(-x.size // 5), 5))
    results = kernel.batch(rows)
    for k in range(0, len(rows), max(1, len(rows) // 50)):
        for one, many in zip(kernel.call(rows[k]), results, strict=True):
            np.testing.assert_array_equal(one, many[k])
    return [result.ravel()[: x.size] for result in results]


def units(result, x, function):
    """Largest error in units in the last place of the right result."""
    exact = function(x.astype(np.longdouble))
    return np.max(np.abs(result - exact) / np.spacing(np.abs(exact.astype(float))))


def sweeps():
    rng = np.random.default_rng(5)
    near = np.arange(-650_000, 650_001, 13) * (np.pi / 2)
    return {
        "small": rng.uniform(-np.pi, np.pi, 200_000),
        "turns": rng.uniform(-1e5, 1e5, 200_000),
        "limit": rng.uniform(-LARGEST, LARGEST, 200_000),
        "every size": np.exp(rng.uniform(-700, 13, 100_000)) * rng.choice([-1, 1], 100_000),
        "near zeros": np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf)]),
        "beyond": np.exp(rng.uniform(13, 700, 5_000)),
        "mixed": rng.uniform(-1, 1, 5_000) * np.resize([1.0, 1e9, 1e300], 5_000),
    }


@pytest.mark.skipif(not WIDE, reason="long double has no more bits than double here")
@pytest.mark.parametrize("sweep", sweeps())
def test_error_is_below_one_unit(kernel, sweep):
    x = sweeps()[sweep]
    sine, cosine = evaluate(kernel, x)
    assert units(sine, x, np.sin) < 0.9
    assert units(cosine, x, np.cos) < 0.9


def test_edges(kernel):
    x = np.array([0.0, -0.0, 5e-324, -1e-310, np.inf, -np.inf, np.nan, 1e-8, LARGEST, -1e22])
    sine, cosine = evaluate(kernel, x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(sine, np.sin(x), rtol=3e-16)
        np.testing.assert_allclose(cosine, np.cos(x), rtol=3e-16)
    np.testing.assert_array_equal(np.signbit(sine[:4]), [False, True, False, True])
