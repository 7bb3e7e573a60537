"""Contacts as rows on the accelerations of bodies, ``K a = k`` (Sathya 2024, Eq. 20c).

Rows that hold a point in every direction are written in the axes of its body, where K is a
constant; single rows are along the contact's own axes, which are fixed in the world. Forces are
those that act on the robot: the multipliers of the paper with the opposite sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.kinematics import on_cluster
from rbda_ros.algorithms.motion import Clustered, gravity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.spanning_tree import ranges
from rbda_ros.cluster_tree.straight_line import factor_symmetric
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant, skew

ALL = (0, 1, 2)


@dataclass(frozen=True)
class ContactFrame:
    """Where a contact holds a body, and which of its six accelerations it holds.

    Attributes:
        body: number of the body.
        point: in the body's frame [m]; numbers, or symbols where it is an input.
        linear: which of the contact's axes x, y, z the point cannot accelerate along.
        angular: which of them the body cannot turn about.
    """

    body: int
    point: tuple[float, float, float] | Matrix
    linear: tuple[int, ...]
    angular: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.linear) + len(self.angular)


@dataclass(frozen=True, eq=False)
class ContactRows:
    """A contact at one state: ``K a = k`` on the bodies of one cluster.

    Attributes:
        frame: the contact.
        cluster: index of the cluster of its body.
        K: (m x 6n) on the cluster's accelerations, as the algorithms have them.
        k: (m) what K a should be.
        linear: (rows x 3) directions of the linear rows, in the body's axes.
        angular: (rows x 3) those of the angular ones.
    """

    frame: ContactFrame
    cluster: int
    K: Matrix
    k: Matrix
    linear: Matrix
    angular: Matrix


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows ``K ydd = k`` on joint coordinates.

    Attributes:
        K: (m x ny) for each cluster that they touch.
        k: (m) what K ydd should be.
    """

    K: Mapping[int, Matrix]
    k: Matrix


@dataclass(frozen=True)
class Proximal:
    """How a proximal algorithm iterates.

    Attributes:
        mu: weight of the constraints [kg]: the larger, the fewer iterations and digits.
        iterations: how many; a further call can continue from the last forces.
    """

    mu: float
    iterations: int


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a proximal algorithm.

    Attributes:
        ydd: (ny) acceleration.
        f: (m) forces along the rows of each constraint.
        missing: ``k - K a`` of the rows, in the last iteration.
        change: (ny) of ydd in the last iteration.
    """

    ydd: Matrix
    f: list[Matrix]
    missing: list[Matrix]
    change: Matrix


def contact_rows(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    contacts: Sequence[ContactFrame],
    axes: Matrix,
    desired: Matrix,
    *,
    along_axes: bool = False,
) -> list[ContactRows]:
    """Evaluate contacts.

    Args:
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        desired: (6 x c) acceleration that each contact point should have, linear then angular, in
            world axes [m/s^2, rad/s^2].
        along_axes: whether all rows must be along the contacts' own axes.
    """
    # Accelerations are relative to free fall (see `gravity`), so the ground accelerates upward.
    ground = gravity(tree)[3:]
    rows = []
    for c, contact in enumerate(contacts):
        to_body = to_body_axes(tree, joints, contact.body)
        own = axes[:, 3 * c : 3 * c + 3], to_body, along_axes
        linear, k_linear = _constrained(contact.linear, desired[:3, c] + ground, *own)
        angular, k_angular = _constrained(contact.angular, desired[3:, c], *own)
        k, position = tree.place_of(contact.body)
        w, p = v[k][6 * position : 6 * position + 3], constant(contact.point)
        on_body = ca.vertcat(
            linear @ ca.horzcat(-skew(p), ca.DM.eye(3)),
            ca.horzcat(angular, ca.DM(angular.rows(), 3)),
        )
        _, transposed = on_cluster(tree, contact.body, on_body.T)
        target = ca.vertcat(k_linear - linear @ ca.cross(w, ca.cross(w, p)), k_angular)
        rows.append(ContactRows(contact, k, transposed.T, target, linear, angular))
    return rows


def _constrained(
    which: tuple[int, ...], target: Matrix, axes: Matrix, to_body: Matrix, along_axes: bool
) -> tuple[Matrix, Matrix]:
    """Directions (rows x 3) in the body's axes, and the target (rows) along them."""
    if which == ALL and not along_axes:
        return ca.DM.eye(3), to_body @ target
    chosen = axes[:, list(which)]
    return (to_body @ chosen).T, chosen.T @ target


def proximal_forces(
    delassus: Matrix, wanted: Matrix, start: Sequence[Matrix], proximal: Proximal
) -> tuple[Matrix, Matrix, Matrix]:
    """Forces f (m) with ``delassus f = wanted``, by proximal iterations on them (13).

    Args:
        delassus: (m x m) acceleration along the rows per force along them; it may be singular.
        wanted: (m) acceleration that the forces should add.
        start: the forces to start from, in parts.

    Returns:
        f; what is missing of the wanted acceleration then; change of f in the last iteration.
    """
    damped = factor_symmetric(delassus + ca.DM.eye(delassus.rows()) / proximal.mu)
    f = ca.vertcat(ca.DM(0, 1), *start)
    missing, change = wanted - delassus @ f, ca.DM(delassus.rows(), 1)
    for _ in range(proximal.iterations):
        change = damped.solve(missing)
        f = f + change
        missing = wanted - delassus @ f
    return f, missing, change


def split(vector: Matrix, sizes: Sequence[int]) -> list[Matrix]:
    """A vector, or the rows of a matrix, as parts of the given sizes."""
    return [vector[part.start : part.stop, :] for part in ranges(sizes)]


def largest(parts: Sequence[Matrix]) -> Matrix:
    """The largest absolute entry (1) of some vectors; zero where there is none."""
    size: Matrix = ca.DM(1, 1)
    for entry in ca.vertsplit(ca.vertcat(ca.DM(0, 1), *parts)):
        size = ca.fmax(size, ca.fabs(entry))
    return size


def world_wrenches(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    rows: Sequence[ContactRows],
    forces: Sequence[Matrix],
) -> Matrix:
    """Force then moment (6c) on the robot at each contact's point, in world axes [N, N m]."""
    wrenches = [ca.DM(0, 1)]
    for contact, force in zip(rows, forces, strict=True):
        split = contact.linear.rows()
        parts = contact.linear.T @ force[:split, :], contact.angular.T @ force[split:, :]
        to_world = to_body_axes(tree, joints, contact.frame.body).T
        wrenches += [to_world @ part for part in parts]
    return ca.vertcat(*wrenches)


def to_body_axes(tree: ClusterTree, joints: list[ClusterJoint], body: int) -> Matrix:
    """Rotation (3 x 3) from world axes to those of a body.

    Made from the base outward, so that bodies share what their branches have in common.
    """
    rotation = ca.DM.eye(3)
    for i in reversed(tree.spanning.path(body)):
        k, position = tree.place_of(i)
        for E, _ in joints[k].J.X_up[position].steps:
            rotation = rotation if E is None else E @ rotation
    return rotation
