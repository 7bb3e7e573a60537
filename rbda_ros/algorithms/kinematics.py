"""Poses, Jacobians, velocities and accelerations of frames.

World-aligned axes at the frame's origin, linear rows first, as controllers want them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from rbda_ros.algorithms.motion import (
    accelerations,
    cluster_joints,
    spatial_velocities,
    velocities,
)
from rbda_ros.algorithms.rnea import along_y
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.spanning_tree import Frame, frame_of
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.description.model import Pose
from rbda_ros.spatial import Matrix, Transform, constant, skew


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """A frame fixed to a body; body 0 is the fixed base."""

    body: int
    frame: Frame


class NamedFrame(NamedTuple):
    """A frame by the name of its link: with an offset [m] and roll, pitch, yaw [rad] there."""

    link: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]

    def at_link(self) -> NamedFrame:
        """The frame of the link itself."""
        return NamedFrame(self.link, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    def on_body(self, tree: ClusterTree) -> BodyFrame:
        """The same frame on the body that the link is lumped onto."""
        place = tree.spanning.links[self.link]
        return BodyFrame(place.body, place.frame @ frame_of(Pose(self.xyz, self.rpy)))


def pose(
    tree: ClusterTree, joints: list[ClusterJoint], at: BodyFrame
) -> tuple[Matrix, Matrix, Matrix]:
    """Rotation (3x3, frame to world) and origin (3) of a frame, and of its body the rotation."""
    X = Transform(())
    body = at.body
    while body:
        k, position = tree.place_of(body)
        X = X @ joints[k].J.X_up[position]
        body = tree.spanning.bodies[body - 1].parent
    R_body, p_body = X.pose()
    R = R_body @ constant(at.frame.R)
    return R, p_body + R_body @ constant(at.frame.p), R_body


def frame_pose(tree: ClusterTree, q: Matrix, at: BodyFrame) -> Matrix:
    """Pose (4 x 4) of a frame in the world: its axes and its origin [m] in world axes.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        at: the frame.
    """
    R, p, _ = pose(tree, cluster_joints(tree, q), at)
    return _homogeneous(R, p)


def _homogeneous(R: Matrix, p: Matrix) -> Matrix:
    return ca.vertcat(ca.horzcat(R, p), ca.DM([[0.0, 0.0, 0.0, 1.0]]))


def body_poses(tree: ClusterTree, q: Matrix) -> tuple[Matrix, Matrix]:
    """Where every body is: rotations (3n x 3, one below the other) and origins (3n) [m].

    Body frames to the world, in regular numbering. Any q will do, also one off the loops.

    Args:
        q: (nq) spanning position.
    """
    R, p = world_poses(tree, cluster_joints(tree, q))
    return ca.vertcat(ca.DM(0, 3), *R[1:]), ca.vertcat(ca.DM(0, 1), *p[1:])


def world_poses(tree: ClusterTree, joints: list[ClusterJoint]) -> tuple[list[Matrix], list[Matrix]]:
    """Rotation (3 x 3, to the world) and origin (3) of every body by number; 0 is the base."""
    R: list[Matrix] = [ca.DM.eye(3)]
    p: list[Matrix] = [ca.DM(3, 1)]
    for i, body in enumerate(tree.spanning.bodies, start=1):
        k, position = tree.place_of(i)
        R_i, p_i = joints[k].J.X_up[position].pose()
        R.append(R[body.parent] @ R_i)
        p.append(p[body.parent] + R[body.parent] @ p_i)
    return R, p


def unit_wrenches(
    tree: ClusterTree, joints: list[ClusterJoint], at: BodyFrame, linear_only: bool = False
) -> Matrix:
    """Unit forces, then unit moments, along world axes at a frame's origin.

    Returns:
        (6 x 6), or (6 x 3) for the forces alone, in the body's frame, angular first.
    """
    _, _, R_body = pose(tree, joints, at)
    axes = R_body.T
    forces = ca.vertcat(skew(constant(at.frame.p)) @ axes, axes)
    moments = ca.vertcat(axes, ca.DM(3, 3))
    return forces if linear_only else ca.horzcat(forces, moments)


def on_cluster(tree: ClusterTree, body: int, wrenches: Matrix) -> tuple[int, Matrix]:
    """The cluster of a body, and wrenches (6 x m) on it as clustered forces (6n x m)."""
    k, position = tree.place_of(body)
    blocks = [ca.DM(6, wrenches.columns())] * len(tree.clusters[k].bodies)
    blocks[position] = wrenches
    return k, ca.vertcat(*blocks)


def jacobian(tree: ClusterTree, q: Matrix, at: BodyFrame) -> Matrix:
    """The Jacobian (6 x ny) with ``[velocity; angular velocity] = J yd``.

    By duality: column i of J' is the force on y that balances unit wrench i, so the inward pass
    of inverse dynamics gives it (Featherstone 2010, body Jacobians).
    """
    if not at.body:
        return ca.DM(6, tree.ny)
    joints = cluster_joints(tree, q)
    k, F = on_cluster(tree, at.body, unit_wrenches(tree, joints, at))
    return along_y(tree, joints, {k: F}, m=6).T


def frame_velocity(tree: ClusterTree, q: Matrix, yd: Matrix, at: BodyFrame) -> Matrix:
    """``J yd`` (6): velocity of the frame's origin, then angular velocity.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        at: the frame.
    """
    if not at.body:
        return ca.DM(6, 1)
    joints = cluster_joints(tree, q, yd)
    k, position = tree.place_of(at.body)
    v = spatial_velocities(tree, joints)[k][6 * position : 6 * position + 6]
    _, _, R = pose(tree, joints, at)
    linear = v[3:] + ca.cross(v[:3], constant(at.frame.p))
    return ca.vertcat(R @ linear, R @ v[:3])


def frame_acceleration(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, at: BodyFrame
) -> Matrix:
    """``J ydd + J-dot yd`` (6): acceleration of the frame's origin, then angular.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        yd: (ny) independent velocity.
        ydd: (ny) independent acceleration.
        at: the frame.
    """
    if not at.body:
        return ca.DM(6, 1)
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    a = accelerations(tree, joints, v, ydd, ca.DM(6, 1))  # (39)
    k, position = tree.place_of(at.body)
    _, _, R = pose(tree, joints, at)
    w, a_i = (x[6 * position : 6 * position + 6] for x in (v[k], a[k]))
    w, p = w[:3], constant(at.frame.p)
    acceleration = a_i[3:] + ca.cross(a_i[:3], p) + ca.cross(w, ca.cross(w, p))
    return ca.vertcat(R @ acceleration, R @ a_i[:3])


def frame_bias_acceleration(tree: ClusterTree, q: Matrix, yd: Matrix, at: BodyFrame) -> Matrix:
    """``J-dot yd`` (6): acceleration of the frame's origin, and angular, at ydd = 0."""
    return frame_acceleration(tree, q, yd, ca.DM(tree.ny, 1), at)


def frame_poses(tree: ClusterTree, q: Matrix) -> Matrix:
    """Poses (4n x 4, one below the other) of all links in the world, in the order of the links.

    Args:
        q: (nq) spanning position.
    """
    R, p = world_poses(tree, cluster_joints(tree, q))
    poses: list[Matrix] = [ca.DM(0, 4)]
    for place in tree.spanning.links.values():
        of_body = R[place.body]
        origin = p[place.body] + of_body @ constant(place.frame.p)
        poses.append(_homogeneous(of_body @ constant(place.frame.R), origin))
    return ca.vertcat(*poses)
