"""The choice of independent coordinates, from Jacobians alone."""

import numpy as np
import pytest

from rbda_ros.cluster_tree.closing.independent import (
    AssemblyError,
    Wishes,
    choose_independent,
    null_space,
)

NAMES = ("a", "b", "c")
WISHES = Wishes(frozenset(), frozenset(range(3)), frozenset(), listed=False)
GOOD = np.array([[0.9, 0.1, 0.4], [0.1, 0.7, 0.7]])
STRAY = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
"""At a position on another branch: no two columns are independent, whatever y is."""


def choice(jacobians):
    return choose_independent(jacobians, 1, WISHES, NAMES, constant=False)


def test_one_stray_position_of_eight_has_no_veto():
    assert choice([GOOD] * 7 + [STRAY]) == choice([GOOD] * 7)


def test_where_most_positions_are_singular_the_choice_is_refused():
    with pytest.raises(AssemblyError, match="no choice of independent joints"):
        choice([GOOD] * 3 + [STRAY] * 5)


@pytest.mark.parametrize("rows", [0, 2, 3])
def test_null_space_is_that_of_the_singular_value_decomposition(rows):
    rng = np.random.default_rng(rows)
    K = rng.normal(size=(rows, 2)) @ rng.normal(size=(2, 5)) if rows else np.zeros((0, 5))
    rank = min(rows, 2)
    N = null_space(K, rank)
    assert N.shape == (5, 5 - rank)
    expected = np.linalg.svd(K)[2][rank:]
    np.testing.assert_allclose(N @ N.T, expected.T @ expected, atol=1e-14)
