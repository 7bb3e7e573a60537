"""Linear equations with a mass matrix, along the branches of its robot, in numbers.

H = L' L has no entry for coordinates on different branches, and neither has L (Featherstone,
"Efficient Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees", 2005).
`rbda_ros/engine/ltl_factorization.c` does the same, operation by operation: the bits are the same.
"""

from __future__ import annotations

import numpy as np

from rbda_ros.spatial import Array


def factor(parent: list[int], H: Array) -> Array | None:
    """L (..., n, n), lower triangular, of mass matrices H (..., n, n); None if one is singular."""
    L = H.copy()
    for k in reversed(range(len(parent))):
        if not (L[..., k, k] > 0.0).all():
            return None
        L[..., k, k] = np.sqrt(L[..., k, k])
        above = _above(parent, k)
        for i in above:
            L[..., k, i] /= L[..., k, k]
        for i in above:
            for j in (i, *_above(parent, i)):
                L[..., i, j] -= L[..., k, i] * L[..., k, j]
    return L


def from_rows(parent: list[int], rows: Array) -> Array:
    """The lower half of H (..., n, n) from its entries with all that carry each coordinate."""
    H = np.zeros((*rows.shape[:-1], len(parent), len(parent)))
    entries = ((k, i) for k in range(len(parent)) for i in (*reversed(_above(parent, k)), k))
    for at, (k, i) in enumerate(entries):
        H[..., k, i] = rows[..., at]
    return H


def solve(parent: list[int], L: Array, B: Array) -> Array:
    """``H^-1 B`` (..., n, m) of a factored H."""
    X = B.copy()
    for k in reversed(range(len(parent))):  # L' Z = B
        X[..., k, :] *= 1.0 / L[..., k, k, None]
        for i in _above(parent, k):
            X[..., i, :] -= L[..., k, i, None] * X[..., k, :]
    for k in range(len(parent)):  # L X = Z
        for i in _above(parent, k):
            X[..., k, :] -= L[..., k, i, None] * X[..., i, :]
        X[..., k, :] *= 1.0 / L[..., k, k, None]
    return X


def invert(parent: list[int], H: Array) -> Array | None:
    """X = H^-1 (..., n, n) from ``L X = D^-1 L'^-1``, with ``H = L' D L``; None if singular."""
    LD, L, n = H.copy(), H.copy(), len(parent)
    X, D_inverse = np.zeros_like(H), np.empty_like(H[..., 0])
    for k in reversed(range(n)):
        own = [k, *_above(parent, k)]
        for below in reversed(range(k + 1, n)):
            if k in _above(parent, below):
                for i in own:
                    LD[..., k, i] -= LD[..., below, k] * L[..., below, i]
        if not (LD[..., k, k] > 0.0).all():
            return None
        D_inverse[..., k] = 1.0 / LD[..., k, k]
        for i in own:
            L[..., k, i] = LD[..., k, i] * D_inverse[..., k]
    for k in range(n):
        X[..., k, k] = D_inverse[..., k]
        for j in range(k + 1):
            for i in reversed(_above(parent, k)):
                X[..., k, j] -= L[..., k, i] * X[..., i, j]
            X[..., j, k] = X[..., k, j]
    return X


def _above(parent: list[int], k: int) -> list[int]:
    """The coordinates that support one, nearest first."""
    above = []
    while (k := parent[k]) >= 0:
        above.append(k)
    return above
