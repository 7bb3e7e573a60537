"""Forward dynamics by the constraint-embedding ABA (Chignoli 2024, Algorithm 1).

Where several bodies of a cluster hang from its parent, the inward pass is in the order of Eq. 55:
inertia and U = I S go to the parent first, and ``(X'U) D^-1 (X'U)'`` is subtracted there. Where all
hang from one of them, it is in the order of the pseudo-code, and what is known of the result along
the joint is not computed: for a body alone, ``Ia S = 0`` and ``S' pa = tau``. With an armature A
(see `cluster_tree.regroup`) it is ``D = S' IA S + A``, ``Ia S = U D^-1 A``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import casadi as ca

from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import (
    Clustered,
    armature_bias,
    armature_inertia,
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
    """Results of the inward pass for a cluster, at its tree joints.

    Attributes:
        IA: articulated inertia (6n x 6n).
        U: IA S (6n x ny).
        D: factors of S' IA S + A (ny x ny).
        Ia: what of the inertia goes to the parent (6n x 6n), by the pseudo-code; None where it
            goes there by Eq. 55.
    """

    IA: Matrix
    U: Matrix
    D: SymmetricFactor
    Ia: Matrix | None = None


class Loops(Protocol):
    """Loops that are eliminated on the way inward, where the bodies between them have met."""

    def inertia(self, k: int | None, articulated: Sequence[Articulated]) -> Matrix:
        """Inertia (6n x 6n) that the loops which end at cluster k add to it."""

    def bias(self, k: int | None, c: Sequence[Matrix], u: Sequence[Matrix]) -> Matrix:
        """Bias force (6n) that they add to it."""

    def drive(self, k: int | None, a: Matrix, u: list[Matrix]) -> None:
        """Add their forces to u of the clusters that they act on, given a (6n) of cluster k."""


def articulated_inertias(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    added: Mapping[int, Matrix] | None = None,
    loops: Loops | None = None,
) -> list[Articulated]:
    """The part of the inward pass that depends on the position alone.

    Args:
        added: what to add to the inertia (6n x 6n) of some clusters.
        loops: loops to eliminate.
    """
    IA: Clustered = {k: node.inertia for k, node in enumerate(tree.clusters)} | {None: 0}
    IA |= {k: IA[k] + inertia for k, inertia in (added or {}).items()}
    articulated: list[Articulated] = [None] * len(tree.clusters)  # type: ignore[list-item]
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        if loops is not None:
            IA[k] = mirrored(IA[k] + loops.inertia(k, articulated))
        at_joints = joint.J.congruence(IA[k])
        U = at_joints @ joint.SG  # line 3
        A = armature_inertia(tree, joints, k)
        D = factor_symmetric(joint.SG.T @ U + A)  # line 4
        articulated[k] = Articulated(at_joints, U, D)
        if l is None:
            continue
        if tree.clusters[k].inside.count(None) == 1:
            Ia = _of_base_body(joint.SG, articulated[k], A)  # line 7
            articulated[k] = replace(articulated[k], Ia=Ia)
            IA[l] = mirrored(IA[l] + joint.E.congruence(Ia))  # line 9
        else:
            up = joint.E.congruence(at_joints)
            IA[l] = mirrored(IA[l] + up - D.quadratic((joint.E.T @ U).T))  # (55), (59)
    if loops is not None:
        loops.inertia(None, articulated)
    return articulated


def _of_base_body(S: Matrix, articulated: Articulated, A: Matrix) -> Matrix:
    """Ia (6n x 6n) of a cluster whose bodies all hang from its first one: of that one alone.

    With base body b and the others r, ``Ia S_b = U_b D^-1 (A + U_r' S_r) - IA_br S_r``: zero for a
    body alone, and mostly constant where the others are rotors. It replaces rows and columns of Ia
    where S_b points along a coordinate axis.
    """
    IA, U, D = articulated.IA, articulated.U, articulated.D
    Ia = mirrored(IA[:6, :6] - D.quadratic(U[:6, :].T))
    along = U[:6, :] @ D.solve(A + U[6:, :].T @ S[6:, :]) - IA[:6, 6:] @ S[6:, :]
    for row, j in _axes(S[:6, :]):
        Ia[row, :] = along[:, j].T
        Ia[:, row] = along[:, j]
    return ca.diagcat(Ia, ca.DM(IA.rows() - 6, IA.rows() - 6))


def forward_dynamics(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    wrenches: Matrix | None = None,
    *,
    drag: Matrix | None = None,
) -> Matrix:
    """The acceleration ydd (ny) that the generalized force tau on y gives.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        wrenches: (6 x bodies) external force on each body in its frame, angular first
            [N m, N]; None for none.
        drag: (nv) force against the acceleration ``G ydd`` of each joint, as implicit integrators
            have it [N m s^2, N s^2/m]; None for none.
    """
    joints = cluster_joints(tree, q, yd)
    if drag is not None:
        parts = zip(joints, tree.split_velocities(drag), strict=True)
        joints = [replace(joint, drag=drag_k) for joint, drag_k in parts]
    v = velocities(tree, joints)
    c = [bias_at_joints(tree, joints, v, k) for k in tree.outward()]  # lines 15, 16
    pA = bias_forces(tree, v, wrenches)
    articulated = articulated_inertias(tree, joints)
    driving = driving_forces(tree, joints, tau - spring_force(tree, q))
    u = carry_inward(tree, joints, articulated, c, pA, driving)
    ydd, _ = accelerate_outward(tree, joints, articulated, c, u, gravity(tree))
    return ca.vertcat(ca.DM(0, 1), *ydd)


def driving_forces(tree: ClusterTree, joints: list[ClusterJoint], tau: Matrix) -> list[Matrix]:
    """Generalized force (ny) on each cluster, less what armature takes at ydd = 0."""
    parts = tree.split_independent(tau)
    return [tau_k - armature_bias(tree, joints, k) for k, tau_k in enumerate(parts)]


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
    loops: Loops | None = None,
) -> list[Matrix]:
    """u_k (ny) of every cluster: force along y that remains to accelerate it.

    Args:
        articulated: what `articulated_inertias` gives.
        c: (6n) bias acceleration at the joints of each cluster.
        pA: (6n) bias force on each cluster; zero where it is missing.
        tau: (ny) generalized force on each cluster.
        loops: loops to eliminate.
    """
    pA = {k: pA.get(k, ca.DM(tree.rows(k), 1)) for k in (None, *tree.outward())}
    u: list[Matrix] = [None] * len(tree.clusters)
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        if loops is not None:
            pA[k] = pA[k] + loops.bias(k, c, u)
        p = joint.J.T @ pA[k]
        u[k] = tau[k] - joint.SG.T @ p  # line 5
        if l is not None:
            A = armature_inertia(tree, joints, k)
            pa = _across_joint(joint.SG, articulated[k], A, c[k], p, u[k], tau[k])  # line 8
            pA[l] = pA[l] + joint.E.T @ pa  # line 10
    if loops is not None:
        loops.bias(None, c, u)
    return u


def _across_joint(
    S: Matrix, articulated: Articulated, A: Matrix, c: Matrix, p: Matrix, u: Matrix, tau: Matrix
) -> Matrix:
    """pa (6n): ``p + Ia c + U D^-1 u``, where Ia is ``IA - U D^-1 U'``.

    Of a body alone, ``S' pa = tau - A w`` with ``w = D^-1 (u - U' c)``: that much the joint
    transmits.
    """
    IA, U, D, Ia = articulated.IA, articulated.U, articulated.D, articulated.Ia
    if Ia is None or IA[6:, :].nnz():
        return p + IA @ c + U @ D.solve(u - U.T @ c)
    # A constant IA has many zeros, as at the tips.
    if A.nnz() or isinstance(IA, ca.DM) or IA.is_constant():
        w = D.solve(u - U.T @ c)
        pa, along = p + IA @ c + U @ w, tau - A @ w
    else:
        pa, along = p + Ia @ c + U @ D.solve(u), tau
    for row, j in _axes(S[:6, :]):
        pa[row] = along[j]
    return pa


def _axes(S: Matrix) -> Iterator[tuple[int, int]]:
    """Rows and columns of S (6 x ny) where a column is the unit vector of a row."""
    for j, column in enumerate(ca.horzsplit(S)):
        rows = column.sparsity().row()
        if len(rows) == 1 and column[rows[0]].is_one():
            yield rows[0], j


def accelerate_outward(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    articulated: list[Articulated],
    c: Sequence[Matrix],
    u: Sequence[Matrix],
    base: Matrix,
    loops: Loops | None = None,
) -> tuple[list[Matrix], Clustered]:
    """ydd_k (ny) and a_k (6n) of every cluster; ``base`` (6) is the fixed base's acceleration."""
    a: Clustered = {None: base}
    ydd, u = [], list(u)
    if loops is not None:
        loops.drive(None, base, u)
    for k in tree.outward():
        joint, U, D = joints[k], articulated[k].U, articulated[k].D
        a_free = joint.E @ a[tree.clusters[k].parent] + c[k]  # line 3
        across, along = _split(joint.SG, a_free)
        A = armature_inertia(tree, joints, k)
        total = D.solve(u[k] - U.T @ across + A @ along)
        ydd.append(total - along)  # line 4
        a[k] = joint.J @ (across + joint.SG @ total)  # line 5
        if loops is not None:
            loops.drive(k, a[k], u)
    return ydd, a


def _split(S: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
    """``a = across + S along``: what a joint takes over is no part of its equation of motion.

    Only for a body alone whose S has unit vectors, where ``U' S = D - A``; else along is zero.
    """
    axes = list(_axes(S))
    if a.rows() > 6 or len(axes) < S.columns():
        return a, ca.DM(S.columns(), 1)
    rows = [row for row, _ in axes]
    across = type(a)(a)
    across[rows] = 0
    return ca.sparsify(across), a[rows]
