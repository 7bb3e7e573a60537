"""jcalc: motion of each tree joint (Featherstone 2010, Sec. "Joint Models").

Body frames have z on the joint axis, so one model serves every axis. For each type:

=========  =======================================  ==============================================
type       position q                               velocity qd
=========  =======================================  ==============================================
revolute   angle [rad]                              its rate (``continuous`` joints are the same)
prismatic  travel [m]                               its rate
helical    angle [rad]; travels pitch [m/rad] * q   its rate
planar     x, y [m], yaw [rad] in the joint frame   their rates
spherical  quaternion qx qy qz qw, child to parent  angular velocity in the child's axes [rad/s]
floating   x y z [m], then qx qy qz qw              linear, then angular, in the child's axes
=========  =======================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from rbda_ros.spatial import Matrix, Transform, constant

JCalc = tuple[Transform, Matrix, Matrix]
"""X_J (joint frame to body frame), S (6 x nv), and ring-S (6 x nv), the derivative of S in a
frame that moves with the body."""


@dataclass(frozen=True)
class JointModel:
    """Sizes and kinematics of one joint type.

    Attributes:
        coordinates: suffix of each velocity coordinate's name; empty for one-DoF joints.
        neutral: the position at zero.
        jcalc: ``(q, qd, pitch) -> X_J, S, ring-S``.
        rate: ``(q, qd) -> dq/dt``.
    """

    coordinates: tuple[str, ...]
    neutral: tuple[float, ...]
    jcalc: Callable[[Matrix, Matrix, float], JCalc]
    rate: Callable[[Matrix, Matrix], Matrix]

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return len(self.neutral)

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return len(self.coordinates)


def rotation_z(angle: Matrix) -> Matrix:
    """(3x3) coordinate transform to a frame turned by ``angle`` about z."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 1))


def rotation_from_quaternion(quaternion: Matrix) -> Matrix:
    """(3x3) child-to-parent rotation of a unit quaternion (qx, qy, qz, qw)."""
    return ca.vertcat(*(ca.horzcat(*row) for row in _rotation_rows(*ca.vertsplit(quaternion))))


def _rotation_rows(x: Any, y: Any, z: Any, w: Any) -> tuple[tuple[Any, Any, Any], ...]:
    """Rows of that rotation, of scalars or of numbers."""
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def quaternion_rate(quaternion: Matrix, w: Matrix) -> Matrix:
    """Rate of a quaternion (qx, qy, qz, qw) under angular velocity w in the child's axes."""
    vector, scalar = quaternion[:3], quaternion[3]
    return ca.vertcat(scalar * w + ca.cross(vector, w), -ca.dot(vector, w)) / 2


def _unit(*rows: int) -> NDArray[np.float64]:
    return np.eye(6)[:, rows]


def _itself(q: Matrix, qd: Matrix) -> Matrix:
    return qd


def _revolute(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    return Transform(((rotation_z(q), None),)), constant(_unit(2)), ca.DM(6, 1)


def _prismatic(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    return Transform(((None, ca.vertcat(0, 0, q)),)), constant(_unit(5)), ca.DM(6, 1)


def _helical(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    X = Transform(((rotation_z(q), ca.vertcat(0, 0, pitch * q)),))
    return X, constant([[0], [0], [1], [0], [0], [pitch]]), ca.DM(6, 1)


def _planar(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    E = rotation_z(q[2])
    c, s = E[0, 0], E[0, 1]
    S = ca.vertcat(
        ca.DM(2, 3),
        ca.horzcat(0, 0, 1),
        ca.horzcat(c, s, 0),
        ca.horzcat(-s, c, 0),
        ca.DM(1, 3),
    )
    ring_S = ca.vertcat(
        ca.DM(3, 3),
        ca.horzcat(-s * qd[2], c * qd[2], 0),
        ca.horzcat(-c * qd[2], -s * qd[2], 0),
        ca.DM(1, 3),
    )
    return Transform(((E, ca.vertcat(q[0], q[1], 0)),)), S, ring_S


def _spherical(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    X = Transform(((rotation_from_quaternion(q).T, None),))
    return X, constant(_unit(0, 1, 2)), ca.DM(6, 3)


def _floating(q: Matrix, qd: Matrix, pitch: float) -> JCalc:
    X = Transform(((rotation_from_quaternion(q[3:]).T, q[:3]),))
    return X, constant(_unit(3, 4, 5, 0, 1, 2)), ca.DM(6, 6)


def _floating_rate(q: Matrix, qd: Matrix) -> Matrix:
    position_rate = rotation_from_quaternion(q[3:]) @ qd[:3]
    return ca.vertcat(position_rate, quaternion_rate(q[3:], qd[3:]))


_REVOLUTE = JointModel(("",), (0.0,), _revolute, _itself)
JOINT_MODELS: dict[str, JointModel] = {
    "revolute": _REVOLUTE,
    "continuous": _REVOLUTE,
    "prismatic": JointModel(("",), (0.0,), _prismatic, _itself),
    "helical": JointModel(("",), (0.0,), _helical, _itself),
    "planar": JointModel(("x", "y", "yaw"), (0.0,) * 3, _planar, _itself),
    "spherical": JointModel(("wx", "wy", "wz"), (0.0, 0.0, 0.0, 1.0), _spherical, quaternion_rate),
    "floating": JointModel(
        ("vx", "vy", "vz", "wx", "wy", "wz"), (0.0,) * 6 + (1.0,), _floating, _floating_rate
    ),
}
AXIS_TYPES = frozenset({"revolute", "continuous", "prismatic", "helical", "planar"})
"""Types with an axis, whose body frame has z on it; the others keep the link's frame."""


def integrate(joint_type: str, q: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray:
    """The position reached from q (nq,) by moving with velocity ``step`` (nv,) for unit time."""
    if joint_type == "spherical":
        return _turn(q, step)
    if joint_type == "floating":
        R = np.array(_rotation_rows(*q[3:].tolist()))
        return np.concatenate([q[:3] + R @ step[:3], _turn(q[3:], step[3:])])
    return q + step


def _turn(quaternion: NDArray[np.float64], angle: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quaternion turned by the rotation vector ``angle`` (3,) in the child's axes."""
    size = float(np.linalg.norm(angle))
    axis = angle / size if size > 0.0 else angle
    v = np.sin(size / 2) * axis
    s = np.cos(size / 2)
    u, w = quaternion[:3], quaternion[3]
    turned = np.concatenate([w * v + s * u + np.cross(u, v), [w * s - u @ v]])
    return turned / np.linalg.norm(turned)
