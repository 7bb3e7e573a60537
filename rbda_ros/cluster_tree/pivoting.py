"""Columns in the order of what each adds to those before it: QR with pivoting.

scipy has it, but importing its linear algebra takes a quarter of the time in which a node starts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rbda_ros.spatial import Array


def pivoted_columns(A: Array) -> tuple[NDArray[np.intp], Array]:
    """The order of the columns, the largest remainder first, and the remainders' lengths.

    By Householder reflections (Businger and Golub 1965), as LAPACK's dgeqp3.

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
