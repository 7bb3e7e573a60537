"""Forward dynamics with constraints of any rank: Gauss' principle by singular values.

Proximal algorithms need ever more iterations the closer constraints come to a singularity, and find
no forces where constraints contradict each other. Here the Jacobian is factored itself, not
``J H^-1 J'``, whose condition is the square: twice as many digits are left near a singularity. It
costs some 50 times as much as the recursive algorithms, which go first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbda_ros.spatial import Array

RANK_TOLERANCE = 1e-11
"""Singular values below this, relative to the largest, count as zero."""
NOISE = 1e-14
"""Entries of J that are no more than rounding [1, 1/m]: of a link that cannot move."""
RESOLVED = (1e-13, 3e-8)
"""Relative singular values between these leave fewer than seven digits of the motion, whether they
count as zero or not: two ways to compute it were seen to differ by 1e-15 over the smallest one."""


@dataclass(frozen=True, eq=False)
class LeastSquaresMotion:
    """A motion under constraints.

    Attributes:
        ydd: (ny) independent acceleration.
        f: (m) forces along the rows; of all that give this motion, those of least norm.
        missing: (m) ``b - J ydd``; not zero where the rows contradict each other.
        rank: number of independent rows.
        resolved: whether the motion is known to seven digits: no singular value is in doubt.
    """

    ydd: Array
    f: Array
    missing: Array
    rank: int
    resolved: bool


def least_squares_motion(
    L: Array, free: Array, J: Array, b: Array, weights: Array | None = None
) -> LeastSquaresMotion:
    """Of all ydd that minimise ``|J ydd - b|_W``, the one that minimises ``|ydd - free|_H``.

    With ``x = L ydd`` and ``A = W^1/2 J L^-1`` it is ``x = L free + A^+ W^1/2 (b - J free)``, and
    the forces are ``f = W^1/2 (A A')^+ W^1/2 (b - J free)`` (Sathya 2024, Eqs. 2, 8 and Remark 2).

    Args:
        L: (ny, ny) factor of the mass matrix, ``H = L' L``.
        free: (ny) acceleration without constraints.
        J: (m, ny) rows.
        b: (m) accelerations wanted along them.
        weights: (m) how much each row counts where they contradict each other; None for one.
    """
    root = np.sqrt(np.ones(len(J)) if weights is None else weights)
    A = np.linalg.solve(L.T, (root[:, None] * J).T).T
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    largest, noise = s.max(initial=0.0), NOISE * root.max(initial=0.0) / np.abs(np.diag(L)).min()
    s[s < noise] = 0.0
    relative = s / (largest or 1.0)
    rank = int(np.sum(relative > RANK_TOLERANCE))
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    along, ydd = np.zeros(rank), free
    for _ in range(2):  # the second time for what rounding left of a motion much smaller than free
        step = (U.T @ (root * (b - J @ ydd))) / s
        along, ydd = along + step, ydd + np.linalg.solve(L, Vt.T @ step)
    f = root * (U @ (along / s))
    low, high = RESOLVED
    resolved = not np.any((relative > low) & (relative < high))
    return LeastSquaresMotion(ydd, f, b - J @ ydd, rank, resolved)
