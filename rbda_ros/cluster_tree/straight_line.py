"""Linear algebra without branches, so that it can be traced."""

from __future__ import annotations

import casadi as ca
import numpy as np

from rbda_ros.spatial import Matrix, constant


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
    solved = [ca.DM(0, B.columns())] * (len(row_ends) - 1)
    # Upper block-triangular: the last block stands alone.
    for block in reversed(range(len(row_ends) - 1)):
        r, c = slice(*row_ends[block : block + 2]), slice(*column_ends[block : block + 2])
        known = ca.vertcat(*solved[block + 1 :])
        rest = B[r, :] - A[r, column_ends[block + 1] :] @ known if known.rows() else B[r, :]
        solved[block] = _by_orthogonalization(A[r, c], rest)
    return ca.vertcat(*solved)[np.argsort(columns).tolist(), :]


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


def _tidy(array: np.ndarray) -> np.ndarray:
    """Gear ratios such as 6 come out of the factorization as 6.000000000000001."""
    nearest = np.round(array, 12)
    return np.where(
        np.abs(array - nearest) < 1e-13 * np.maximum(1.0, np.abs(array)), nearest, array
    )
