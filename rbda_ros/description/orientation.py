"""Rotation matrices from roll, pitch and yaw as URDF writes them, from quaternions and axes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbda_ros.description.model import Pose, Vector3, vector3
from rbda_ros.spatial import cross_matrix


def to_rpy(R: NDArray[np.float64]) -> Vector3:
    """Roll, pitch and yaw [rad] of a rotation (3, 3), to the last digits also at pitch 90 deg."""
    across = math.hypot(R[0, 0], R[1, 0])
    yaw = math.atan2(R[1, 0], R[0, 0]) if across > 1e-12 else 0.0
    s, c = math.sin(yaw), math.cos(yaw)
    pitch = math.atan2(-R[2, 0], across)
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return (roll, pitch, yaw)


def to_pose(R: NDArray[np.float64], p: NDArray[np.float64]) -> Pose:
    """The frame with axes R (3, 3) and origin p (3,) [m]."""
    return Pose(vector3(p), to_rpy(R))


def about(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """(3, 3) the rotation by an angle [rad] about a unit axis."""
    W = cross_matrix(np.asarray(axis, dtype=float))
    return np.eye(3) + math.sin(angle) * W + 2.0 * math.sin(0.5 * angle) ** 2 * W @ W


def turn_onto(first: Vector3, second: Vector3) -> NDArray[np.float64]:
    """(3, 3) the shortest rotation that takes one unit vector onto another."""
    a, b = np.array(first), np.array(second)
    v, c = np.cross(a, b), float(a @ b)
    if c < -1.0 + 1e-12:  # half a turn, about any axis across
        across = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        across /= np.linalg.norm(across)
        return 2.0 * np.outer(across, across) - np.eye(3)
    V = cross_matrix(v)
    return np.eye(3) + V + V @ V / (1.0 + c)


def from_quaternion(wxyz: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) the rotation of a quaternion w x y z of any length but zero."""
    quaternion = np.asarray(wxyz, dtype=float)
    w, *v = quaternion / math.hypot(*quaternion)
    V = cross_matrix(np.array(v))
    return np.asarray(np.eye(3) + 2.0 * w * V + 2.0 * V @ V)


def to_quaternion(R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit quaternions w x y z (..., 4) of rotations (..., 3, 3)."""
    from scipy.spatial.transform import Rotation  # the node does without SciPy

    return np.asarray(Rotation.from_matrix(R).as_quat()[..., [3, 0, 1, 2]])
