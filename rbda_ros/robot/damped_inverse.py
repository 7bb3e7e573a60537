"""The inverse of a symmetric matrix that may be singular, such as the inverse OSIM."""

from __future__ import annotations

import numpy as np

from rbda_ros.spatial import Array

RANK_TOLERANCE = 1e-9
"""Eigenvalues below this share of the largest count as zero."""


def damped_inverse(A: Array, damping: float) -> Array:
    """``(A + damping)^-1`` (m, m); without damping, where A is singular, the pseudo-inverse.

    By the factor ``L' L`` where A is regular for sure, else by eigenvalues.
    """
    M = A.copy()
    M[np.diag_indices(len(M))] += damping
    inverse = _by_factor(M)
    if inverse is not None and RANK_TOLERANCE * _trace(M) * _trace(inverse) < 1.0:
        return inverse
    values, vectors = np.linalg.eigh(A)
    regular = values > RANK_TOLERANCE * values.max(initial=0.0)
    damped = values + damping
    reciprocal = np.divide(1.0, damped, where=regular | (damping > 0.0), out=0.0 * values)
    return (vectors * reciprocal) @ vectors.T


def _by_factor(M: Array) -> Array | None:
    """``M^-1``; None where it is not positive definite.

    The factorization of `engine/ltl_factorization.c` for one branch, in the same order.
    """
    L, X, n = M.copy(), np.eye(len(M)), len(M)
    for k in reversed(range(n)):
        if not L[k, k] > 0.0:
            return None
        L[k, k] = np.sqrt(L[k, k])
        L[k, :k] /= L[k, k]
        L[:k, :k] -= np.outer(L[k, :k], L[k, :k])
    for k in reversed(range(n)):
        X[k] *= 1.0 / L[k, k]
        X[:k] -= np.outer(L[k, :k], X[k])
    for k in range(n):
        for i in reversed(range(k)):
            X[k] -= L[k, i] * X[i]
        X[k] *= 1.0 / L[k, k]
    return X


def _trace(M: Array) -> float:
    """The sum of the diagonal: no eigenvalue is larger, nor the smallest below that of M^-1."""
    return float(sum(M.diagonal().tolist()))
