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


def _above(parent: list[int], k: int) -> list[int]:
    """The coordinates that support one, nearest first."""
    above = []
    while (k := parent[k]) >= 0:
        above.append(k)
    return above
