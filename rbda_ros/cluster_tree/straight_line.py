"""Linear algebra without branches, so that it can be traced; and QR with pivoting, in numbers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.spatial import Array, Matrix, constant, mirrored


def least_squares(A: Matrix, B: Matrix) -> Matrix:
    """X (n x p) that minimises |A X - B|, for A (m x n) of full column rank, B (m x p).

    A square A is first permuted to block-triangular form, so that a gear beside a four-bar is
    not drawn into its factorization.
    """
    if not A.columns() or not B.columns():
        return ca.DM(A.columns(), B.columns())
    if not ca.symvar(ca.SX(A)) and not ca.symvar(ca.SX(B)):
        a, b = np.asarray(ca.DM(ca.densify(A))), np.asarray(ca.DM(ca.densify(B)))
        return constant(_tidy(np.linalg.lstsq(a, b, rcond=None)[0]))
    if A.rows() != A.columns():
        return _by_orthogonalization(A, B)
    _, rows, columns, row_ends, column_ends, _, _ = A.sparsity().btf()
    A, B = A[rows, columns], B[rows, :]
    X: Matrix = ca.DM(0, B.columns())
    # CasADi's form is lower block-triangular: the first block stands alone.
    for r, c in zip(itertools.pairwise(row_ends), itertools.pairwise(column_ends), strict=True):
        rows_k, known = slice(*r), slice(0, c[0])
        rest = B[rows_k, :] - A[rows_k, known] @ X if c[0] else B[rows_k, :]
        X = ca.vertcat(X, _by_orthogonalization(A[rows_k, slice(*c)], rest))
    return X[np.argsort(columns).tolist(), :]


@dataclass(frozen=True, eq=False)
class SymmetricFactor:
    """``A = L diag(d) L'`` of a positive definite A, with unit lower triangular L."""

    L: Matrix
    d: Matrix

    def forward(self, B: Matrix) -> Matrix:
        """``L^-1 B``."""
        rows: list[Matrix] = []
        for i in range(self.L.rows()):
            rows.append(B[i, :] - sum((self.L[i, j] * rows[j] for j in range(i)), 0))
        return ca.vertcat(ca.DM(0, B.columns()), *rows)

    def solve(self, B: Matrix) -> Matrix:
        """``A^-1 B``."""
        Y = self.forward(B) / ca.repmat(self.d, 1, B.columns())
        n = self.L.rows()
        rows: list[Matrix] = [None] * n
        for i in reversed(range(n)):
            rows[i] = Y[i, :] - sum((self.L[j, i] * rows[j] for j in range(i + 1, n)), 0)
        return ca.vertcat(ca.DM(0, B.columns()), *rows)

    def quadratic(self, B: Matrix) -> Matrix:
        """``B' A^-1 B``, symmetric."""
        Y = self.forward(B)
        return mirrored(Y.T @ (Y / ca.repmat(self.d, 1, B.columns())))


def factor_symmetric(A: Matrix) -> SymmetricFactor:
    """Factor a positive definite A (n x n), of which the upper triangle is read.

    No pivots and no square roots; stable because A is positive definite.
    """
    n = A.rows()
    L: list[list[Matrix]] = [[0] * n for _ in range(n)]
    d: list[Matrix] = []
    for i in range(n):
        L[i][i] = 1
        scaled = [L[i][j] * d[j] for j in range(i)]
        for j in range(i):
            # L[i][j] d[j] = A[j, i] - sum over earlier columns
            scaled[j] = A[j, i] - sum((scaled[k] * L[j][k] for k in range(j)), 0)
            L[i][j] = scaled[j] / d[j]
        d.append(A[i, i] - sum((scaled[k] * L[i][k] for k in range(i)), 0))
    rows = [ca.horzcat(*row) for row in L]
    return SymmetricFactor(ca.vertcat(ca.DM(0, n), *rows), ca.vertcat(ca.DM(0, 1), *d))


def _by_orthogonalization(A: Matrix, B: Matrix) -> Matrix:
    """Modified Gram-Schmidt on [A B], then back substitution.

    Carried on to the right-hand side, it is as stable as Householder's QR (Bjorck 1967), and it
    needs no signs or pivots.
    """
    columns = ca.horzsplit(A)
    n = len(columns)
    if n == 1 and A.rows() == 1:
        return B / A
    R: dict[tuple[int, int], Matrix] = {}
    C = []
    for j in range(n):
        R[j, j] = ca.sqrt(ca.sumsqr(columns[j]))
        e = columns[j] / R[j, j]
        for l in range(j + 1, n):
            R[j, l] = ca.dot(e, columns[l])
            columns[l] = columns[l] - R[j, l] * e
        c = e.T @ B
        B = B - e @ c
        C.append(c)
    X: list[Matrix] = [None] * n
    for j in reversed(range(n)):
        X[j] = (C[j] - sum((R[j, l] * X[l] for l in range(j + 1, n)), 0)) / R[j, j]
    return ca.vertcat(*X)


def conditioning(A: Matrix, B: Matrix) -> Matrix:
    """A number in [0, 1] that is near 0 where A hardly determines x in ``A x = B y``.

    The smallest diagonal entry of R in a QR factorization of A, with rows of ``[A B]`` of unit
    length, over the largest or one: cheap, and free of the rows' scales. A row that vanishes in A
    alone counts too; columns should be of like sizes.
    """
    # Squares throughout: one root is taken in the end, and rows count by 1 / length^2.
    weights = 1.0 / ca.fmax(ca.sum2(A * A) + ca.sum2(B * B), 1e-300)
    columns = ca.horzsplit(A)
    squares: list[Matrix] = []
    for j, column in enumerate(columns):
        weighted = weights * column
        squares.append(ca.dot(weighted, column))
        along = weighted / ca.fmax(squares[j], 1e-300)
        for l in range(j + 1, len(columns)):
            columns[l] = columns[l] - ca.dot(along, columns[l]) * column
    smallest, largest = squares[0], squares[0]
    for square in squares[1:]:
        smallest, largest = ca.fmin(smallest, square), ca.fmax(largest, square)
    return ca.sqrt(smallest / ca.fmax(largest, 1.0))


def _tidy(array: np.ndarray) -> np.ndarray:
    """Gear ratios such as 6 come out of the factorization as 6.000000000000001."""
    nearest = np.round(array, 12)
    return np.where(
        np.abs(array - nearest) < 1e-13 * np.maximum(1.0, np.abs(array)), nearest, array
    )


def pivoted_columns(A: Array) -> tuple[NDArray[np.intp], Array]:
    """The order of the columns, the largest remainder first, and the remainders' lengths.

    By Householder reflections (Businger and Golub 1965), as LAPACK's dgeqp3. scipy has it, but
    importing its linear algebra takes a quarter of the time in which a node starts.

    Args:
        A: (rows, columns).

    Returns:
        All columns (columns); what is left of each when it is its turn (min(rows, columns)), which
        is the diagonal of R without its signs.
    """
    R, order = np.array(A, float), np.arange(A.shape[1])
    lengths = np.zeros(min(R.shape))
    for k in range(len(lengths)):
        remaining = np.linalg.norm(R[k:, k:], axis=0)
        j = k + int(np.argmax(remaining))
        R[:, [k, j]], order[[k, j]] = R[:, [j, k]], order[[j, k]]
        lengths[k] = remaining[j - k]
        if not lengths[k] > 0.0:
            break  # all that is left is zero
        v = R[k:, k].copy()
        v[0] += np.copysign(lengths[k], v[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= np.outer(2.0 * v, v @ R[k:, k:])
    return order, lengths
