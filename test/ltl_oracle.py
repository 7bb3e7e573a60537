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


def invert(parent: list[int], H: Array) -> Array | None:
    """H^-1 (..., n, n) as ``W' D^-1 W``, with ``H = L' D L``, ``W = L^-1``; None if singular."""
    L, n = H.copy(), len(parent)
    outward = sorted(range(n), key=lambda k: len(_above(parent, k)))
    D_inverse = np.empty_like(H[..., 0])
    for k in reversed(outward):
        if not (L[..., k, k] > 0.0).all():
            return None
        D_inverse[..., k] = 1.0 / L[..., k, k]
        above = _above(parent, k)
        for i in above:
            times = L[..., k, i] * D_inverse[..., k]
            for j in (i, *_above(parent, i)):
                L[..., i, j] -= times * L[..., k, j]
        for i in above:
            L[..., k, i] *= D_inverse[..., k]
    W, inverse = np.zeros_like(H), np.empty_like(H)
    for k in outward:
        W[..., k, k] = 1.0
        for j in reversed(_above(parent, k)):
            W[..., k, :k] -= L[..., k, j, None] * W[..., j, :k]
    scaled = W * D_inverse[..., None, :]
    for k in range(n):
        row = W[..., k, k, None] * scaled[..., : k + 1, k]
        for j in reversed(_above(parent, k)):
            row += W[..., k, j, None] * scaled[..., : k + 1, j]
        inverse[..., k, : k + 1] = inverse[..., : k + 1, k] = row
    return inverse


def _above(parent: list[int], k: int) -> list[int]:
    """The coordinates that support one, nearest first."""
    above = []
    while (k := parent[k]) >= 0:
        above.append(k)
    return above
