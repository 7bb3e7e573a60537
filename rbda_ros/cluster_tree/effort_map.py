"""Which coordinates actuators drive (Chignoli 2024, footnotes 3 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.cluster_tree.pivoting import pivoted_columns
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.spatial import Matrix


def driven_coordinates(G: NDArray[np.float64], actuated: Sequence[int]) -> tuple[int, ...]:
    """Columns of W = G[actuated] that are a basis of all its columns.

    Args:
        G: (nv, ny) of the cluster at a regular position.
        actuated: velocity coordinates that actuators act on.
    """
    W = G[list(actuated)]
    if not W.size:
        return ()
    order, sizes = pivoted_columns(W)
    return tuple(sorted(int(j) for j in order[: int(np.sum(sizes > 1e-9 * sizes[0]))]))


def minimum_norm_efforts(W: Matrix, driven: Sequence[int], tau: Matrix) -> Matrix:
    """Efforts (actuated) with ``W' efforts = tau``: ``pinv(W') tau``, by straight-line code.

    With B the driven columns of W and W = B M, both of full rank, pinv(W) = pinv(M) pinv(B).
    Over-actuated clusters get the smallest efforts; what no actuator can give is left out.
    """
    pinv_B = least_squares(W[:, list(driven)], ca.DM.eye(W.rows()))
    if len(driven) == W.columns():
        return pinv_B.T @ tau
    pinv_M = least_squares((pinv_B @ W).T, ca.DM.eye(W.columns())).T
    return pinv_B.T @ (pinv_M.T @ tau)
