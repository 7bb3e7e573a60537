"""Coordinates of physically possible inertias: log-Cholesky, relative to a nominal inertia.

A body's mass, first moment and second moments form the pseudo-inertia (4 x 4), ``[[Sigma, h], [h',
m]]`` with ``Sigma = tr(I)/2 1 - I``. An inertia is physically possible if and only if this matrix
is positive definite (Wensing 2018). With a nominal ``U0 U0'`` every other one is ``U0 L L' U0'``,
where L is upper triangular with the exponentials of four coordinates on its diagonal (Rucker 2022,
relative to the nominal). The ten coordinates have no unit and are zero at the nominal inertia;
every value of them gives a possible inertia.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbda_ros.spatial import Array

CLEARLY = 1e-9
"""Least eigenvalue of a pseudo-inertia that is scaled to a unit diagonal. Thin rods and point
masses are below: inertias near them are not all possible."""
_UPPER = tuple((i, j) for i in range(4) for j in range(i + 1, 4))


def pseudo_inertia(parameters: Array) -> Array:
    """(4, 4) of ten inertial parameters (m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)."""
    m, x, y, z, xx, xy, yy, xz, yz, zz = parameters
    half = (xx + yy + zz) / 2
    return np.array(
        [
            [half - xx, -xy, -xz, x],
            [-xy, half - yy, -yz, y],
            [-xz, -yz, half - zz, z],
            [x, y, z, m],
        ]
    )


def parameters_of(J: Array) -> Array:
    """The ten inertial parameters (..., 10) of pseudo-inertias (..., 4, 4)."""
    trace = J[..., 0, 0] + J[..., 1, 1] + J[..., 2, 2]
    return np.stack(
        [
            J[..., 3, 3], J[..., 0, 3], J[..., 1, 3], J[..., 2, 3],
            trace - J[..., 0, 0], -J[..., 0, 1], trace - J[..., 1, 1],
            -J[..., 0, 2], -J[..., 1, 2], trace - J[..., 2, 2],
        ],
        axis=-1,
    )  # fmt: skip


def is_body(parameters: Array) -> bool:
    """Whether the parameters (10,) are those of a body that is extended in every direction."""
    J = pseudo_inertia(np.asarray(parameters, float))
    size = np.sqrt(np.abs(np.diag(J)))
    if not (size > 0.0).all():
        return False
    return bool(np.linalg.eigvalsh(J / np.outer(size, size)).min() > CLEARLY)


@dataclass(frozen=True, eq=False)
class InertiaChart:
    """Ten inertial parameters as a function of unbounded coordinates.

    Attributes:
        nominal: (10,) the parameters at zero coordinates.
        size: number of coordinates: 10; 1, a common scale, if the nominal is not extended in every
            direction; 0 if it is zero.
    """

    nominal: Array
    size: int

    @classmethod
    def around(cls, nominal: Array) -> InertiaChart:
        """The chart around ten parameters (10,)."""
        nominal = np.asarray(nominal, float)
        size = 10 if is_body(nominal) else 1 if nominal.any() else 0
        return cls(nominal, size)

    def parameters(self, theta: Array) -> Array:
        """The parameters (..., 10) at coordinates (..., size)."""
        if self.size < 10:
            return self.nominal * np.exp(theta.sum(axis=-1, keepdims=True))
        U = self._root() @ _triangle(theta)
        return parameters_of(U @ np.swapaxes(U, -1, -2))

    def jacobian(self, theta: Array) -> Array:
        """Derivatives (10, size) of the parameters."""
        if self.size < 10:
            return self.parameters(theta)[:, None][:, : self.size]
        root, L = self._root(), _triangle(theta)
        columns = []
        for k in range(10):
            dL = np.zeros((4, 4))
            if k < 4:
                dL[k, k] = L[k, k]
            else:
                dL[_UPPER[k - 4]] = 1.0
            half = root @ dL @ L.T @ root.T
            columns.append(parameters_of(half + half.T))
        return np.column_stack(columns)

    def _root(self) -> Array:
        """U0, upper triangular, with ``U0 U0'`` the nominal."""
        flipped = pseudo_inertia(self.nominal)[::-1, ::-1]
        return np.asarray(np.linalg.cholesky(flipped)[::-1, ::-1], float)


def _triangle(theta: Array) -> Array:
    """L (..., 4, 4) at coordinates (..., 10)."""
    L = np.zeros((*theta.shape[:-1], 4, 4))
    for k in range(4):
        L[..., k, k] = np.exp(theta[..., k])
    for k, (i, j) in enumerate(_UPPER, start=4):
        L[..., i, j] = theta[..., k]
    return L
