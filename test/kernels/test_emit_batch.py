"""Batches of outputs that have values several times: mirrored matrices, zeros, plain inputs."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from rbda_ros.kernels.emit_batch import make_tiling
from rbda_ros.kernels.kernel import Kernel
from rbda_ros.kernels.llvm_text import Lanes
from rbda_ros.kernels.plan import make_plan
from rbda_ros.kernels.program import read_program


def mirrored(size: int) -> ca.Function:
    """A symmetric matrix with zeros, and an output that is one input three times."""
    x = ca.SX.sym("x", size)
    matrix = ca.SX.zeros(size, size)
    for i in range(size):
        matrix[i, i] = ca.sin(x[i]) + 2.0
        if i:
            matrix[i, 0] = matrix[0, i] = x[0] * x[i]
    thrice = ca.vertcat(x[0], x[0], x[0])
    return ca.Function("mirrored", [x], [matrix, thrice], ["x"], ["matrix", "thrice"])


def expected(x: np.ndarray) -> np.ndarray:
    matrix = np.diag(np.sin(x) + 2.0)
    matrix[0, 1:] = matrix[1:, 0] = x[0] * x[1:]
    return matrix


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("states", [1, 2, 5, 8, 9, 67, 300])
def test_every_entry_is_where_it_belongs(size, states):
    x = np.random.default_rng(states).normal(size=(states, size))
    matrices, thrice = np.full((states, size, size), np.nan), np.full((states, 3), np.nan)
    kernel = Kernel(mirrored(size))
    assert kernel.compile(batch=True)
    kernel.native.batch(x, matrices.reshape(states, -1), thrice)
    np.testing.assert_allclose(matrices, [expected(row) for row in x], rtol=1e-15, atol=0.0)
    assert (thrice == x[:, :1]).all()


def test_a_tile_has_what_is_equal_once():
    size = 7
    tiling = make_tiling(make_plan(read_program(mirrored(size))), Lanes(4))
    matrix, thrice = tiling.places
    assert len(matrix) == size * size
    assert len(set(matrix)) == 2 * size  # a diagonal, a row that is mirrored, and a zero
    assert set(thrice) == {0}
    assert tiling.outputs[1] - tiling.outputs[0] == 2 * size


def test_outputs_with_rows_of_zeros():
    """A mass matrix has many; between them are other constants, inputs and results."""
    x = ca.SX.sym("x", 2)
    entries = [0, 0, x[0], 0, 3.5, -0.0, 0, x[0] * x[1], *([0] * 20), x[1], 0]
    kernel = Kernel(ca.Function("zeros", [x], [ca.vertcat(*entries), ca.densify(ca.SX(7, 1))]))
    assert kernel.compile(batch=True)
    given = np.array([[2.0, 5.0], [-1.0, 4.0], [7.0, 0.5]])
    a, b = given.T
    expected = np.zeros((3, len(entries)))
    expected[:, 2], expected[:, 4], expected[:, 7], expected[:, -2] = a, 3.5, a * b, b
    dirty = kernel.bind()
    for k, one in enumerate(given):
        dirty.inputs[0][:] = one
        dirty.outputs[0][:], dirty.outputs[1][:] = np.nan, np.nan
        dirty()
        for result, batch, right in zip(
            dirty.outputs, kernel.batch(given), (expected, np.zeros((3, 7))), strict=True
        ):
            np.testing.assert_array_equal(result, right[k])
            np.testing.assert_array_equal(batch, right)
