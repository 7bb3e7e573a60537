"""Forward dynamics by the constraint-embedding ABA (Chignoli 2024, Algorithm 1).

For clusters of several bodies the inward pass is in the order of Eq. 55: inertia and U = I S go
to the parent first, and ``(X'U) D^-1 (X'U)'`` is subtracted there; what a rotor adds is then
mostly constant. For a body alone it is in the order of the pseudo-code, where ``I^a S = 0`` makes
rows and columns of what goes to the parent zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.motion import (
    Clustered,
    bias_at_joints,
    cluster_joints,
    external_forces,
    gravity,
    velocities,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, stack_cross_force
from rbda_ros.cluster_tree.straight_line import SymmetricFactor, factor_symmetric
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


@dataclass(frozen=True, eq=False)
class Articulated:
    """What the inward pass leaves of a cluster, at its tree joints.

    Attributes:
        IA: articulated inertia (6n x 6n).
        U: IA S (6n x ny).
        D: factors of S' IA S (ny x ny).
    """

    IA: Matrix
    U: Matrix
    D: SymmetricFactor


def articulated_inertias(
    tree: ClusterTree, joints: list[ClusterJoint], added: Mapping[int, Matrix] | None = None
) -> list[Articulated]:
    """The part of the inward pass that depends on the position alone.

    Args:
        tree: the cluster tree.
        joints: its cluster joints.
        added: what to add to the inertia (6n x 6n) of some clusters.
    """
    IA: Clustered = {k: node.inertia for k, node in enumerate(tree.clusters)} | {None: 0}
    IA |= {k: IA[k] + inertia for k, inertia in (added or {}).items()}
    left: list[Articulated] = [None] * len(tree.clusters)  # type: ignore[list-item]
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        at_joints = joint.J.congruence(IA[k])
        U = at_joints @ joint.SG  # line 3
        D = factor_symmetric(joint.SG.T @ U)  # line 4
        left[k] = Articulated(at_joints, U, D)
        if l is None:
            continue
        if len(tree.clusters[k].bodies) == 1:
            Ia = _without(joint.SG, at_joints - D.quadratic(U.T))  # line 7
            IA[l] = mirrored(IA[l] + joint.E.congruence(Ia))  # line 9
        else:
            up = joint.E.congruence(at_joints)
            IA[l] = mirrored(IA[l] + up - D.quadratic((joint.E.T @ U).T))  # (55), (59)
    return left


def _without(S: Matrix, Ia: Matrix) -> Matrix:
    """Ia with ``Ia S = 0`` made structural, where S points along coordinate axes."""
    kept = ca.DM.ones(Ia.rows())
    for column in ca.horzsplit(S):
        rows = column.sparsity().row()
        if len(rows) == 1:
            kept[rows[0]] = 0
    return mirrored(ca.sparsify(kept @ kept.T) * Ia)


def forward_dynamics(
    tree: ClusterTree, q: Matrix, yd: Matrix, tau: Matrix, wrenches: Matrix | None = None
) -> Matrix:
    """The acceleration ydd (ny) that the generalized force tau on y gives.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        wrenches: (6 x bodies) external force on each body in its frame, angular first
            [N m, N]; None for none.
    """
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    c = [bias_at_joints(tree, joints, v, k) for k in tree.outward()]  # lines 15, 16
    pA = bias_forces(tree, v, wrenches)
    articulated = articulated_inertias(tree, joints)
    u = carry_inward(tree, joints, articulated, c, pA, tree.split_independent(tau))
    ydd, _ = accelerate_outward(tree, joints, articulated, c, u, gravity(tree))
    return ca.vertcat(ca.DM(0, 1), *ydd)


def bias_forces(tree: ClusterTree, v: Clustered, wrenches: Matrix | None = None) -> Clustered:
    """pA (6n) of every cluster before the inward pass: velocity products less outside forces."""
    pA: Clustered = {None: ca.DM(6, 1)}
    for k in tree.outward():
        pA[k] = stack_cross_force(v[k], tree.clusters[k].inertia @ v[k])  # line 18
        pA[k] -= external_forces(tree, k, wrenches)
    return pA


def carry_inward(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    articulated: list[Articulated],
    c: Sequence[Matrix],
    pA: Clustered,
    tau: Sequence[Matrix],
) -> list[Matrix]:
    """u_k (ny) of every cluster: force along y that is left to accelerate it.

    Args:
        tree: the cluster tree.
        joints: its cluster joints.
        articulated: what `articulated_inertias` left.
        c: (6n) bias acceleration at the joints of each cluster.
        pA: (6n) bias force on each cluster; zero where it is missing.
        tau: (ny) generalized force on each cluster.
    """
    pA = {k: pA.get(k, ca.DM(tree.rows(k), 1)) for k in (None, *tree.outward())}
    u: list[Matrix] = [None] * len(tree.clusters)
    for k in tree.inward():
        l, joint, (IA, U, D) = tree.clusters[k].parent, joints[k], _fields(articulated[k])
        p = joint.J.T @ pA[k]
        u[k] = tau[k] - joint.SG.T @ p  # line 5
        if l is not None:
            p = p + IA @ c[k] + U @ D.solve(u[k] - U.T @ c[k])  # line 8
            pA[l] = pA[l] + joint.E.T @ p  # line 10
    return u


def accelerate_outward(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    articulated: list[Articulated],
    c: Sequence[Matrix],
    u: Sequence[Matrix],
    base: Matrix,
) -> tuple[list[Matrix], Clustered]:
    """ydd_k (ny) and a_k (6n) of every cluster; ``base`` (6) is the fixed base's acceleration."""
    a: Clustered = {None: base}
    ydd = []
    for k in tree.outward():
        joint, (_, U, D) = joints[k], _fields(articulated[k])
        a_free = joint.E @ a[tree.clusters[k].parent] + c[k]  # line 3
        ydd.append(D.solve(u[k] - U.T @ a_free))  # line 4
        a[k] = joint.J @ (a_free + joint.SG @ ydd[k])  # line 5
    return ydd, a


def _fields(articulated: Articulated) -> tuple[Matrix, Matrix, SymmetricFactor]:
    return articulated.IA, articulated.U, articulated.D
