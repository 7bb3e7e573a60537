"""Every operation of a program, compiled for one state and for batches, against math and numpy."""

import math
from collections import Counter
from fractions import Fraction

import casadi as ca
import numpy as np
import pytest

from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.program import (
    OPERATIONS,
    Port,
    Program,
    UnsupportedOperationError,
    read_program,
)

EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 1e-310, 1e300, -1e300]
EDGES += [math.inf, -math.inf, math.nan]

UNARY = {
    "neg": (lambda x: -x, np.negative),
    "sq": (lambda x: x**2, np.square),
    "twice": (lambda x: 2 * x, lambda x: x + x),
    "inv": (lambda x: 1 / x, lambda x: 1.0 / x),
    "sqrt": (ca.sqrt, np.sqrt),
    "fabs": (ca.fabs, np.abs),
    "sign": (ca.sign, lambda x: np.where(x == 0, x, np.sign(x))),
    "floor": (ca.floor, np.floor),
    "ceil": (ca.ceil, np.ceil),
    "not": (ca.logic_not, lambda x: (x == 0).astype(float)),
    "sin": (ca.sin, np.sin),
    "cos": (ca.cos, np.cos),
    "tan": (ca.tan, np.tan),
    "asin": (ca.asin, np.arcsin),
    "acos": (ca.acos, np.arccos),
    "atan": (ca.atan, np.arctan),
    "sinh": (ca.sinh, np.sinh),
    "cosh": (ca.cosh, np.cosh),
    "tanh": (ca.tanh, np.tanh),
    "asinh": (ca.asinh, np.arcsinh),
    "acosh": (ca.acosh, np.arccosh),
    "atanh": (ca.atanh, np.arctanh),
    "exp": (ca.exp, np.exp),
    "expm1": (ca.expm1, np.expm1),
    "log": (ca.log, np.log),
    "log1p": (ca.log1p, np.log1p),
    "erf": (ca.erf, np.vectorize(math.erf)),
}
BINARY = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "pow": (lambda x, y: x**y, np.power),
    "fmin": (ca.fmin, np.fmin),
    "fmax": (ca.fmax, np.fmax),
    "lt": (lambda x, y: x < y, np.less),
    "le": (lambda x, y: x <= y, np.less_equal),
    "eq": (lambda x, y: x == y, np.equal),
    "ne": (lambda x, y: x != y, np.not_equal),
    "and": (ca.logic_and, lambda x, y: (x != 0) & (y != 0)),
    "or": (ca.logic_or, lambda x, y: (x != 0) | (y != 0)),
    "if_else_zero": (lambda x, y: ca.if_else(x, y, 0), lambda x, y: np.where(x != 0, y, 0.0)),
    "copysign": (ca.copysign, np.copysign),
    "atan2": (ca.atan2, np.arctan2),
    "hypot": (ca.hypot, np.hypot),
    "fmod": (ca.fmod, np.fmod),
    "remainder": (ca.remainder, np.vectorize(lambda x, y: _remainder(x, y))),
}


def _remainder(x, y):
    try:
        return math.remainder(x, y)
    except ValueError:  # numpy and C say NaN
        return math.nan


def test_every_operation_is_tested():
    assert set(UNARY) | set(BINARY) == set(OPERATIONS)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    symbolic, numeric = UNARY[name]
    x = ca.SX.sym("x")
    rng = np.random.default_rng(2)
    given = np.concatenate([EDGES, rng.uniform(-1, 1, 50), rng.normal(size=50) * 100])
    _compare(name, ca.Function("f", [x], [symbolic(x)]), numeric, given)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    symbolic, numeric = BINARY[name]
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    rng = np.random.default_rng(3)
    pairs = [(a, b) for a in EDGES for b in EDGES] + list(rng.normal(size=(50, 2)) * 10)
    pairs += [(a, a) for a in rng.normal(size=5)]
    _compare(name, ca.Function("f", [x, y], [symbolic(x, y)]), numeric, *np.array(pairs).T)


def _compare(name, function, numeric, *columns):
    assert [i.operation for i in read_program(function).instructions] == [name]
    kernel = Kernel(function)
    assert kernel.compile(batch=True)
    with np.errstate(all="ignore"):
        expected = np.asarray(numeric(*columns), dtype=float)
    one_by_one = [
        kernel.call(*(np.array([v]) for v in row))[0][0] for row in zip(*columns, strict=True)
    ]
    (together,) = kernel.batch(*(column[:, None] for column in columns))
    interpreted = Kernel(function, compiled=False).batch(*(column[:, None] for column in columns))
    for result in (np.array(one_by_one), together[:, 0], interpreted[0][:, 0]):
        np.testing.assert_allclose(result, expected, rtol=5e-16, atol=0)
        if name not in ("fmin", "fmax"):  # where C leaves the sign of zero open
            ordered = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(result[ordered]), np.signbit(expected[ordered])
            )


def test_powers_with_constant_exponent():
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [x**2.5, x**3, 0.3**x]))
    assert kernel.compile()
    results = [result[0] for result in kernel.call(np.array([1.7]))]
    np.testing.assert_allclose(results, [1.7**2.5, 1.7**3, 0.3**1.7], rtol=1e-15)


def test_outputs_may_be_inputs_constants_or_sines():
    x = ca.SX.sym("x", 3)
    function = ca.Function("f", [x], [ca.vertcat(x[1], 3.5, ca.sin(x[2]), x[1]), ca.SX(0, 1)])
    kernel = Kernel(function)
    assert kernel.compile(batch=True)
    given = np.array([1.0, 2.0, 3.0])
    expected = [2.0, 3.5, np.sin(3.0), 2.0]
    results, nothing = kernel.call(given)
    np.testing.assert_allclose(results, expected, rtol=1e-15)
    assert nothing.shape == (0,)
    rows, nothing = kernel.batch(np.tile(given, (5, 1)))
    np.testing.assert_allclose(rows, np.tile(expected, (5, 1)), rtol=1e-15)
    assert nothing.shape == (5, 0)


def test_sines_of_sines_and_of_multiples():
    x = ca.SX.sym("x", 2)
    angle = ca.sin(x[0]) + x[1]
    outputs = [ca.sin(-6 * x[0]) * ca.cos(-6 * x[0]), ca.cos(angle), ca.sin(angle)]
    kernel = Kernel(ca.Function("f", [x], outputs))
    assert kernel.compile(batch=True)
    a, b = 0.3, 1.9
    expected = [np.sin(-1.8) * np.cos(-1.8), np.cos(np.sin(a) + b), np.sin(np.sin(a) + b)]
    np.testing.assert_allclose(np.ravel(kernel.call([a, b])), expected, rtol=1e-15)
    np.testing.assert_allclose(np.ravel(kernel.batch([[a, b]])), expected, rtol=1e-15)


def test_equal_instructions_are_one():
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [x[0] * x[1] + ca.SX(2), x[0] * x[1]])
    program = read_program(function)
    assert [i.operation for i in program.instructions] == ["mul", "add"]
    assert program.inputs == (Port("i0", 2),)
    assert program.constants == (2.0,)
    assert isinstance(program, Program)


def test_an_unknown_operation_is_named_and_interpreted(caplog):
    x = ca.SX.sym("x")
    function = ca.Function("odd", [x], [ca.erfinv(x)])
    with pytest.raises(UnsupportedOperationError, match="odd has the operation erfinv"):
        read_program(function)
    kernel = Kernel(function)
    assert not kernel.compile()
    assert not kernel.compile()
    assert isinstance(kernel.error, UnsupportedOperationError)
    assert [record.message for record in caplog.records].count(caplog.records[0].message) == 1
    np.testing.assert_allclose(kernel.call([0.5])[0], 0.4769362762044699, rtol=1e-8)


def test_no_matrix_graphs():
    x = ca.MX.sym("x", 2)
    with pytest.raises(UnsupportedOperationError, match="no SX function"):
        read_program(ca.Function("f", [x], [ca.sin(x)]))


def test_fused_products_round_once():
    """Against exact fractions, for one state and for many."""
    x = ca.SX.sym("x", 8)
    a, b, c, d = (x[2 * i : 2 * i + 2] for i in range(4))
    fused = [a[0] ** 2 + d[0], b[0] * d[0] - c[1], c[1] - a[1] * b[1]]
    read_twice = [a[0] * b[0] - c[0], a[0] * b[0] + c[0], a[1] * d[1], 2 - a[1] * d[1]]
    function = ca.Function("f", [x], [ca.vertcat(*fused, *read_twice)])
    operations = Counter(each.operation for each in read_program(function).instructions)
    assert operations == {"fma": 1, "fms": 1, "fnma": 1, "mul": 2, "sub": 2, "add": 1}
    kernel = Kernel(function)
    assert kernel.compile(batch=True)
    for given in np.random.default_rng(5).normal(size=(50, 8)):
        (a, A), (b, B), (c, C), (d, D) = np.vectorize(Fraction)(given).reshape(4, 2)
        ab, AD = Fraction(float(a * b)), Fraction(float(A * D))
        exact = [a * a + d, b * d - C, C - A * B, ab - c, ab + c, AD, 2 - AD]
        expected = [float(each) for each in exact]
        assert kernel.call(given)[0].tolist() == expected
        assert kernel.batch(given[None])[0][0].tolist() == expected


def test_fused_products_only_without_roots_and_comparisons():
    x = ca.SX.sym("x", 2)
    difference = x[0] * x[0] - x[1] * x[1]
    kernel = Kernel(ca.Function("f", [x], [ca.sqrt(difference)]))
    assert kernel.compile(batch=True)
    for value in np.random.default_rng(4).normal(size=100):
        assert kernel.call([value, value])[0] == 0.0
