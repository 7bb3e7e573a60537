"""Spatial (6-D) vector algebra: the few functions of Featherstone 2010, Table 1.

Spatial vectors are angular first: motion ``[w; v]``, force ``[n; f]``. Every function takes
CasADi matrices (SX for tracing, DM for numbers); constants may be numpy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers."""
Matrix = Any
"""A CasADi SX or DM matrix (CasADi ships no types of its own)."""

SNAP = 1e-10
"""Entries of constant rotations this close to 0 or +-1 are meant to be 0 or +-1: URDFs write
pi/2 with twelve digits. Torques stay within 1e-10 of those of the unrounded numbers."""


def constant(array: Any) -> ca.DM:
    """A numpy array as a CasADi constant whose zeros are structural; symbols stay as they are."""
    if isinstance(array, ca.SX):
        return array
    return ca.sparsify(ca.DM(np.asarray(array, dtype=float)))


def skew(r: Matrix) -> Matrix:
    """The 3x3 matrix with ``skew(r) @ x = r x x``."""
    return ca.skew(r)


def cross_matrix(r: Array) -> Array:
    """The numbers of `skew`: (..., 3, 3) of vectors (..., 3)."""
    upper = np.zeros((*r.shape, 3))
    upper[..., 0, 1], upper[..., 0, 2], upper[..., 1, 2] = -r[..., 2], r[..., 1], -r[..., 0]
    return upper - np.swapaxes(upper, -1, -2)


def cross_force(v: Matrix, f: Matrix) -> Matrix:
    """``v x* f`` (6): the rate of a force vector f that moves with velocity v."""
    w, vo = v[:3], v[3:]
    return ca.vertcat(ca.cross(w, f[:3]) + ca.cross(vo, f[3:]), ca.cross(w, f[3:]))


def spatial_inertia(mass: float, com: Array, rotational: Array) -> Array:
    """The 6x6 inertia about a frame's origin (Featherstone 2010, Table 1, ``mcI``).

    Args:
        mass: [kg].
        com: (3,) centre of mass in the frame [m].
        rotational: (3, 3) inertia about the centre of mass, in the frame's axes [kg m^2].
    """
    c = cross_matrix(com)
    about_origin = rotational - mass * c @ c
    # Symmetric to the last digit: entries that differ by rounding are two constants of a program.
    about_origin = (about_origin + about_origin.T) / 2
    return np.block([[about_origin, mass * c], [-mass * c, mass * np.eye(3)]])


def rpy_matrix(rpy: tuple[float, float, float]) -> Array:
    """(3, 3) child-to-parent rotation of URDF's fixed-axis roll, pitch, yaw [rad]: Rz Ry Rx."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return rz @ ry @ rx


def snap(array: Array) -> Array:
    """Rotations, or unit vectors, without the rounding of URDFs.

    Entries within SNAP of 0 become 0; those within SNAP of +-1 become +-1 where all others of
    their row are 0. (A turn by 1e-5 has a cosine nearer to 1 than SNAP, but is no rounding.)
    """
    zero = np.abs(array) < SNAP
    unit = (np.abs(np.abs(array) - 1.0) < SNAP) & (zero.sum(axis=-1, keepdims=True) == 2)
    return np.where(zero, 0.0, np.where(unit, np.sign(array), array))


def cross(a: Array, b: Array) -> Array:
    """(3,) ``a x b``; of single vectors `numpy.cross` takes ten times as long."""
    ax, ay, az = a.tolist()
    bx, by, bz = b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def align_z(axis: Array) -> Array:
    """(3, 3) rotation whose third column is the unit vector ``axis``.

    For an axis along +-x, +-y or +-z it is a signed permutation, so that products with it cost
    no arithmetic.
    """
    axis = snap(axis / np.linalg.norm(axis))
    x = np.zeros(3)
    x[(int(np.argmax(np.abs(axis))) + 1) % 3] = 1.0
    x = x - (x @ axis) * axis
    x = snap(x / np.linalg.norm(x))
    return np.column_stack([x, snap(cross(axis, x)), axis])


@dataclass(frozen=True)
class Transform:
    """A Pluecker transform B_X_A, kept as steps and applied one after the other.

    Each step (E, r) is ``rot(E) @ xlt(r)``: r (3) the new origin in old axes, E (3x3) the old
    axes to new axes rotation; None stands for nothing to do. Applying "translate, then turn
    about z" step by step costs less than multiplying by the 6x6 matrix of both.
    """

    steps: tuple[tuple[Matrix | None, Matrix | None], ...]

    def __matmul__(self, other: Any) -> Any:
        """Compose with a Transform, or take motion vectors (6 x n) from A to B coordinates."""
        if isinstance(other, Transform):
            return Transform(other.steps + self.steps)
        angular, linear = other[:3, :], other[3:, :]
        for E, r in self.steps:
            if r is not None:
                linear = linear - skew(r) @ angular
            if E is not None:
                angular, linear = E @ angular, E @ linear
        return ca.vertcat(angular, linear)

    @property
    def T(self) -> TransposedTransform:
        """The transpose, which takes forces from B to A coordinates."""
        return TransposedTransform(self)

    @property
    def rotation(self) -> Transform:
        """The transform without its translations."""
        return Transform(tuple((E, None) for E, _ in self.steps))

    def joined(self) -> Transform:
        """The same, where a rotation with two zeros at most and the one that follows are one step.

        That takes less where several vectors are turned.
        """
        steps = list(self.steps[:1])
        for E, r in self.steps[1:]:
            before, at = steps[-1]
            if r is None and E is not None and before is not None and before.nnz() >= 7:
                steps[-1] = E @ before, at
            else:
                steps.append((E, r))
        return Transform(tuple(steps))

    def congruence(self, inertia: Matrix) -> Matrix:
        """``X' I X`` of a symmetric I (6 x 6): an inertia from B to A coordinates.

        Only the upper triangle of I is read, and only that of the result computed.
        """
        A, B, C = inertia[:3, :3], inertia[:3, 3:], inertia[3:, 3:]
        for E, r in reversed(self.steps):
            if E is not None:
                A, B, C = turned(E, mirrored(A)), turned(E, B), turned(E, mirrored(C))
            if r is not None:
                moment = skew(r)
                half = B + moment @ mirrored(C)
                A, B = mirrored(A) + moment @ B.T + (moment @ half.T).T, half
        return mirrored(ca.vertcat(ca.horzcat(A, B), ca.horzcat(B.T, C)))

    def pose(self) -> tuple[Matrix, Matrix]:
        """Rotation (3x3, B axes to A axes) and origin (3) of frame B in frame A."""
        R, p = ca.DM.eye(3), ca.DM.zeros(3)
        for E, r in self.steps:
            if r is not None:
                p = p + R @ r
            if E is not None:
                R = R @ E.T
        return R, p


@dataclass(frozen=True)
class TransposedTransform:
    """``X.T``: force vectors (6 x n) from B to A coordinates."""

    X: Transform

    def __matmul__(self, other: Matrix) -> Matrix:
        angular, linear = other[:3, :], other[3:, :]
        for E, r in reversed(self.X.steps):
            if E is not None:
                angular, linear = E.T @ angular, E.T @ linear
            if r is not None:
                angular = angular + skew(r) @ linear
        return ca.vertcat(angular, linear)


def mirrored(A: Matrix) -> Matrix:
    """A symmetric matrix of which only the upper triangle is read."""
    return ca.triu2symm(ca.triu(A))


def _about_z(E: Matrix) -> bool:
    """Whether a rotation is one about z that is not a constant."""
    fixed = E[2, 2].is_one() if isinstance(E, ca.SX) else False
    return bool(fixed) and all(E[i, j].is_zero() for i, j in ((0, 2), (1, 2), (2, 0), (2, 1)))


def turned(E: Matrix, B: Matrix) -> Matrix:
    """``E' B E`` of any B (3 x 3).

    About z, the 2x2 corner is turned by way of the difference of its diagonal and the sum of its
    other entries, whose own difference stays: half the work of two products.
    """
    if not _about_z(E):
        return E.T @ B @ E
    c, s = E[0, 0], E[0, 1]
    change = s * (B[0, 0] - B[1, 1]) + c * (B[0, 1] + B[1, 0])
    along, across = s * change, c * change
    column, row = E[:2, :2].T @ B[:2, 2], (E[:2, :2].T @ B[2, :2].T).T
    return ca.vertcat(
        ca.horzcat(B[0, 0] - along, across - B[1, 0], column[0]),
        ca.horzcat(across - B[0, 1], B[1, 1] + along, column[1]),
        ca.horzcat(row, B[2, 2]),
    )


def frame_transform(R: Array, p: Array) -> Transform:
    """Transform to a frame with axes R (3, 3, its axes to ours) and origin p (3) in ours."""
    E = None if np.array_equal(R, np.eye(3)) else constant(R.T)
    r = None if not np.any(p) else constant(p)
    return Transform(((E, r),))
