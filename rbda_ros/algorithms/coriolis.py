"""The Coriolis matrix, of the Christoffel symbols, by recursions on the cluster tree.

A mass m whose velocity is ``J yd`` takes the force ``m (J ydd + J-dot yd)``, so summed over all
masses ``C = sum m J' J-dot``: ``C yd`` are Coriolis and centrifugal forces, ``H-dot - 2 C`` is
skew-symmetric, and in coordinates its entries are the Christoffel symbols of H times yd. Echeandia
and Wensing, "Numerical Methods to Compute the Coriolis Matrix and Christoffel Symbols for
Rigid-Body Systems" (2021), find the same C from inertias of bodies.

The velocity that a joint's motion ``[s; d]`` gives to a mass at r is ``d + s x r``, and its rate
``d-dot + s-dot x r + s x u``, with u the velocity of the mass: a motion on top of the body's own,
of angular velocity s / 2 (`composites`). Columns carry the forces that this takes inward, rows the
linear forms of forces along their joint.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from rbda_ros.algorithms.composites import (
    Composite,
    Place,
    angular_velocities,
    bodies_inward,
    carried_forms,
    composites,
)
from rbda_ros.algorithms.motion import (
    Clustered,
    cluster_joints,
    turned_velocity,
    vector_before,
    velocities,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.spanning_tree import ranges
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, constant


def coriolis_matrix(tree: ClusterTree, q: Matrix, yd: Matrix) -> Matrix:
    """C (ny x ny): ``C yd`` is the bias force without gravity and springs.

    Args:
        q: (nq) spanning position symbols, on the constraint manifold.
        yd: (ny) independent velocity.
    """
    # Outward pass: motion of every body, and the rate of what its joint can do.
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    w, U = angular_velocities(tree, v), _origin_velocities(tree, joints, v)
    q_rate = tree.position_rate(q, ca.vertcat(ca.DM(0, 1), *(joint.qd for joint in joints)))
    motions: dict[Place, Matrix] = {}
    for k, joint in enumerate(joints):
        rates = ca.vertsplit(_rate(joint.SG, q, q_rate), 6)
        for i, (SG, SG_rate) in enumerate(zip(ca.vertsplit(joint.SG, 6), rates, strict=True)):
            motions[k, i] = _motions_on_top(SG, SG_rate, w[k, i])

    # Inward pass: composites, and the entries of each cluster with those that carry it.
    found, _ = composites(tree, joints, w, U)
    C = ca.SX(tree.ny, tree.ny)
    places = [slice(r.start, r.stop) for r in ranges(node.ny for node in tree.clusters)]
    for k, joint in enumerate(joints):
        for l, of_column, of_row in _entries(tree, joints, k, found, motions, U):
            C[places[l], places[k]] += of_column
            C[places[k], places[l]] += of_row
        C[places[k], places[k]] += _of_armature(tree, joint, k, _rate(joint.G, q, q_rate))
    return C


def _entries(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    k: int,
    found: dict[Place, Composite],
    motions: dict[Place, Matrix],
    U: dict[Place, Matrix],
) -> Iterator[tuple[int, Matrix, Matrix]]:
    """Of cluster k and a cluster l that carries it: parts of C_lk and of C_kl."""
    ny = tree.clusters[k].ny
    nothing = ca.DM(6, ny), ca.DM(9, ny)
    arriving: dict[Place | None, tuple[Matrix, Matrix]] = {}
    for l in tree.path(k):
        for i, X, SG, before in bodies_inward(tree, joints, l):
            if l != k and (l, i) not in arriving:
                continue
            F, forms = arriving.get((l, i), nothing)
            of_row = forms.T @ motions[l, i]
            if l == k:
                F = F + found[k, i].forces(motions[k, i])
                forms = forms + found[k, i].forms(SG)
            yield l, SG.T @ F, of_row
            others, X = arriving.get(before, nothing), X.joined()
            carried = carried_forms(forms, X, U[l, i])
            arriving[before] = others[0] + X.T @ F, others[1] + carried


def _motions_on_top(SG: Matrix, SG_rate: Matrix, w: Matrix) -> Matrix:
    """(9 x n) of motions SG (6 x n) across a joint: half the angular part, and rates of both parts.

    Axes turn with w; SG_rate is the rate of their components.
    """
    turning = ca.skew(w)
    rates = [turning @ SG[:3, :] + SG_rate[:3, :], turning @ SG[3:, :] + SG_rate[3:, :]]
    return ca.vertcat(SG[:3, :] / 2, *rates)


def _rate(A: Matrix, q: Matrix, q_rate: Matrix) -> Matrix:
    """The rate of a matrix, entry by entry; nothing of a constant one."""
    if isinstance(A, ca.DM) or A.is_constant():
        return ca.DM(*A.shape)
    return ca.jtimes(A, q, q_rate)


def _origin_velocities(
    tree: ClusterTree, joints: list[ClusterJoint], v: Clustered
) -> dict[Place, Matrix]:
    """Of every body's origin relative to that of the body before it, in its axes, twice."""
    found = {}
    for k, joint in enumerate(joints):
        node = tree.clusters[k]
        parts, motions = ca.vertsplit(v[k], 6), ca.vertsplit(joint.S_qd, 6)
        for i, (X, motion) in enumerate(zip(joint.J.X_up, motions, strict=True)):
            w = vector_before(node, i, parts, v[node.parent])[:3]
            R, p = X.pose()
            found[k, i] = 2 * (ca.cross(w, p) + R @ motion[3:])
    return found


def _of_armature(tree: ClusterTree, joint: ClusterJoint, k: int, G_rate: Matrix) -> Matrix:
    """``G' a (G-dot + R G)`` (ny x ny) of the joints' own armatures a: nothing of constant ones.

    R turns the linear velocity of floating joints, whose axes turn with their bodies.
    """
    node = tree.clusters[k]
    if not node.joint_armature.any():
        return ca.DM(node.ny, node.ny)
    by_qd = ca.SX(node.nv, node.nv)
    _, of_turning = turned_velocity(node, joint.qd)
    for body, place in zip(node.bodies, node.velocity_ranges, strict=True):
        if body.joint.type == "floating":
            linear = slice(place.start, place.start + 3)
            by_qd[linear, linear] = of_turning[linear, linear]
    return joint.G.T @ (ca.diag(constant(node.joint_armature)) @ (G_rate + by_qd @ joint.G))
