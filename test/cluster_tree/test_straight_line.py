"""Branch-free linear algebra on symbols against numpy on numbers."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rbda_ros.cluster_tree.straight_line import least_squares


def solve_traced(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """X by least_squares, traced on symbols with the sparsity of the numbers."""
    sparse = ca.sparsify(ca.DM(a))
    A, B = ca.SX.sym("A", sparse.sparsity()), ca.SX.sym("B", *b.shape)
    return np.asarray(ca.Function("X", [A, B], [ca.densify(least_squares(A, B))])(sparse, b))


def sparse_square(size: int, rng: np.random.Generator) -> np.ndarray:
    """A regular matrix with a random pattern of zeros."""
    while True:
        pattern = rng.random((size, size)) < rng.uniform(0.1, 0.7)
        pattern[np.arange(size), rng.permutation(size)] = True
        a = np.where(pattern, rng.normal(size=(size, size)), 0.0)
        if np.linalg.cond(a) < 1e3:
            return a


@pytest.mark.parametrize("size", range(1, 9))
def test_solves_square_systems_of_every_sparsity(size):
    """Block-triangular permutation and all: lower, upper, diagonal, full."""
    rng = np.random.default_rng(size)
    for _ in range(60):
        a, b = sparse_square(size, rng), rng.normal(size=(size, 2))
        # Gram-Schmidt is backward stable: error is rounding times the condition number.
        np.testing.assert_allclose(solve_traced(a, b), np.linalg.solve(a, b), atol=1e-9)


@pytest.mark.parametrize("triangle", [np.tril, np.triu], ids=["lower", "upper"])
def test_solves_triangular_systems(triangle):
    a = triangle(np.arange(1.0, 17.0).reshape(4, 4)) + np.eye(4)
    b = np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(solve_traced(a, b), np.linalg.solve(a, b), atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (4, 2), (6, 5)])
def test_minimises_tall_systems(rows, columns):
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 3))
    np.testing.assert_allclose(solve_traced(a, b), np.linalg.lstsq(a, b)[0], atol=1e-12)


def test_stays_accurate_where_columns_are_nearly_parallel():
    """Normal equations would lose all digits here; orthogonalization keeps half of them."""
    a = np.array([[1.0, 1.0], [1e-8, 0.0], [0.0, 1e-8]])
    x = np.array([[2.0], [-1.0]])
    np.testing.assert_allclose(solve_traced(a, a @ x), x, atol=1e-6)


def test_numbers_are_folded_and_gear_ratios_come_out_clean():
    X = least_squares(ca.DM([[3.0]]), ca.DM([[18.0]]))
    assert isinstance(X, ca.DM)
    assert float(X) == 6.0


def test_empty_systems_have_empty_solutions():
    assert least_squares(ca.SX(0, 0), ca.SX(0, 2)).shape == (0, 2)
    assert least_squares(ca.SX(3, 0), ca.SX(3, 2)).shape == (0, 2)
