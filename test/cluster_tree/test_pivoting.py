"""Pivoted columns beside LAPACK's dgeqp3, which scipy has."""

import numpy as np
import pytest
import scipy.linalg

from rbda_ros.cluster_tree.straight_line import pivoted_columns

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("shape", [(1, 1), (3, 8), (8, 3), (6, 6), (40, 25)])
def test_as_lapack(shape):
    for _ in range(20):
        A = RNG.normal(size=shape) * 10.0 ** RNG.uniform(-3, 3, shape[1])
        _, R, order = scipy.linalg.qr(A, mode="economic", pivoting=True)
        found, lengths = pivoted_columns(A)
        assert found.tolist() == order.tolist()
        np.testing.assert_allclose(lengths, np.abs(np.diag(R)), rtol=1e-12)


def test_lengths_tell_the_rank():
    A = RNG.normal(size=(9, 4)) @ RNG.normal(size=(4, 7))
    order, lengths = pivoted_columns(A)
    assert (lengths > 1e-9 * lengths[0]).sum() == np.linalg.matrix_rank(A) == 4
    assert np.linalg.matrix_rank(A[:, order[:4]]) == 4
    assert sorted(order.tolist()) == list(range(7))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 3)])
def test_nothing_to_choose_from(shape):
    order, lengths = pivoted_columns(np.zeros(shape))
    assert order.tolist() == list(range(shape[1]))
    assert not lengths.any()


def test_leaves_its_argument_alone():
    A = RNG.normal(size=(4, 4))
    before = A.copy()
    pivoted_columns(A)
    np.testing.assert_array_equal(A, before)
