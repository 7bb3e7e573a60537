"""Positions as a manifold: where a velocity leads, and which velocity leads from one to another.

Of joints whose position is a vector, these are sum and difference. Quaternions are turned by
rotation vectors, and floating joints moved by screws, in the axes of the child: exponential and
logarithm of Sola, "A micro Lie theory for state estimation in robotics" (2018), Eqs. 144 to 174.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from rbda_ros.algorithms.loop_motion import spanning_velocity
from rbda_ros.cluster_tree.joints import rotation_from_quaternion
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

SERIES = 0.1
"""Angle [rad] below which quotients with its powers are series; what these leave out is below
1e-16."""
SMALL = 1e-8
"""Sine of half an angle below which the rotation vector is twice the quaternion's vector."""


def integrate(tree: ClusterTree, q: Matrix, yd: Matrix, dt: Matrix) -> Matrix:
    """The position (nq) reached from q with the velocity ``G yd``, kept for dt [s].

    Loops are satisfied to first order.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        dt: time [s].
    """
    qd = spanning_velocity(tree, q, yd)
    reached: list[Matrix] = [ca.DM(0, 1)]
    for kind, q_i, step in _by_joint(tree, q, dt * qd):
        if kind == "floating":
            v, w = step[:3], step[3:]
            R = rotation_from_quaternion(q_i[3:])
            _, b, c = _exponential(w)
            moved = v + b * ca.cross(w, v) + c * ca.cross(w, ca.cross(w, v))
            reached += [q_i[:3] + R @ moved, _turned(q_i[3:], w)]
        else:
            reached.append(_turned(q_i, step) if kind == "spherical" else q_i + step)
    return ca.vertcat(*reached)


def difference(tree: ClusterTree, q: Matrix, q1: Matrix) -> Matrix:
    """The spanning velocity (nv) that leads from q to q1 in unit time.

    Args:
        q: (nq) spanning position.
        q1: (nq) another; its quaternions need not be normalized.
    """
    steps: list[Matrix] = [ca.DM(0, 1)]
    for kind, q_i, to in _by_joint(tree, q, q1, positions=True):
        if kind == "floating":
            w, c = _turn_between(q_i[3:], to[3:])
            moved = rotation_from_quaternion(q_i[3:]).T @ (to[:3] - q_i[:3])
            across = ca.cross(w, moved)
            steps += [moved - across / 2 + c * ca.cross(w, across), w]
        else:
            steps.append(_turn_between(q_i, to)[0] if kind == "spherical" else to - q_i)
    return ca.vertcat(*steps)


def _by_joint(
    tree: ClusterTree, q: Matrix, other: Matrix, positions: bool = False
) -> Iterator[tuple[str, Matrix, Matrix]]:
    """Type and position of each tree joint, and its part of a velocity, or of another position."""
    in_q = tree.coordinates.positions.values()
    in_other = in_q if positions else tree.coordinates.velocities.values()
    for body, i, j in zip(tree.spanning.bodies, in_q, in_other, strict=True):
        yield body.joint.type, q[i.start : i.stop], other[j.start : j.stop]


def _exponential(w: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """``sin(x/2) / x``, ``(1 - cos x) / x^2`` and ``(x - sin x) / x^3`` of the angle x = |w|."""
    x2 = ca.sumsqr(w)
    small = x2 < SERIES**2
    square = ca.if_else(small, 1.0, x2)
    x = ca.sqrt(square)
    a = ca.if_else(small, 1 / 2 - x2 * (1 / 48 - x2 * (1 / 3840 - x2 / 645120)), ca.sin(x / 2) / x)
    series = 1 / 6 - x2 * (1 / 120 - x2 * (1 / 5040 - x2 / 362880))
    c = ca.if_else(small, series, (x - ca.sin(x)) / (square * x))
    return a, 2 * a * a, c


def _turned(quaternion: Matrix, w: Matrix) -> Matrix:
    """A unit quaternion (qx, qy, qz, qw) turned by a rotation vector w (3) in the child's axes."""
    a, _, _ = _exponential(w)
    v, s = a * w, ca.cos(ca.norm_2(w) / 2)
    u, r = quaternion[:3], quaternion[3]
    turned = ca.vertcat(r * v + s * u + ca.cross(u, v), r * s - ca.dot(u, v))
    return turned / ca.norm_2(turned)


def _turn_between(quaternion: Matrix, to: Matrix) -> tuple[Matrix, Matrix]:
    """The shortest rotation vector w (3) from one quaternion to another, in the first one's axes.

    Beside it ``(1 - (x/2) cot(x/2)) / x^2`` of the angle x = |w|: `n` and `s` are to each other as
    sine and cosine of x / 2.
    """
    u, r, x, y = quaternion[:3], quaternion[3], to[:3], to[3]
    v, s = r * x - y * u - ca.cross(u, x), r * y + ca.dot(u, x)
    nearest = ca.if_else(s < 0.0, -1.0, 1.0)
    v, s = nearest * v, nearest * s
    n = ca.sqrt(ca.fmax(ca.sumsqr(v), SMALL**2))
    half = ca.atan2(n, s)
    x2, ratio = 4 * half * half, half / n
    small = x2 < SERIES**2
    series = 1 / 12 + x2 * (1 / 720 + x2 * (1 / 30240 + x2 * (1 / 1209600 + x2 / 47900160)))
    c = ca.if_else(small, series, (1 - s * ratio) / ca.if_else(small, 1.0, x2))
    return 2 * ratio * v, c
