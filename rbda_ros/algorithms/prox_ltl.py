"""Forward dynamics with contacts in joint space: proxLTL (Sathya 2024, Sec. II-D).

The mass matrix is factored along its branches, ``H = L' L``, and so is the Delassus matrix
``J H^-1 J' = X' X`` with ``X = L^-T J'``. More work than the recursive algorithms, and nothing in
common with them but the rows: the route to compare them with.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.contact_rows import (
    ContactRows,
    Proximal,
    Solution,
    proximal_forces,
    split,
)
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.motion import Clustered, accelerations, armature_forces, gravity
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def prox_ltl(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    tau: Matrix,
    rows: Sequence[ContactRows],
    start: Sequence[Matrix],
    proximal: Proximal,
) -> Solution:
    """As `constrained_aba`; arguments and results are the same."""
    # Without forces along the rows: ydd_free, and what the rows miss then.
    a = accelerations(tree, joints, v, ca.DM(tree.ny, 1), gravity(tree))
    L = branch_factor(tree, composite_inertia(tree, joints))
    bias = along_y(tree, joints, body_forces(tree, v, a))
    bias += armature_forces(tree, joints, ca.DM(tree.ny, 1))
    ydd = _solve(L, _solve_transposed(L, tau - bias))  # (3)
    J = ca.vertcat(
        ca.DM(0, tree.ny),
        *(_jacobian(tree, joints, contact) for contact in rows),  # (22)
    )
    missed = (contact.k - contact.K @ a[contact.cluster] for contact in rows)
    wanted = ca.vertcat(ca.DM(0, 1), *missed) - J @ ydd

    # Proximal iterations on the damped Delassus matrix (13).
    X = _solve_transposed(L, J.T)
    delassus = mirrored(X.T @ X)
    f, missing, change = proximal_forces(delassus, wanted, start, proximal)
    sizes = [contact.frame.size for contact in rows]
    ydd = ydd + _solve(L, X @ f)  # (8)
    return Solution(ydd, split(f, sizes), [missing], _solve(L, X @ change))


def _jacobian(tree: ClusterTree, joints: list[ClusterJoint], contact: ContactRows) -> Matrix:
    return along_y(tree, joints, {contact.cluster: contact.K.T}, contact.frame.size).T


def _solve(L: Matrix, B: Matrix) -> Matrix:
    """``L^-1 B`` of a lower triangular L, whose zeros cost nothing."""
    rows: list[Matrix] = []
    for i in range(L.rows()):
        known = (L[i, j] * rows[j] for j in L[i, :i].sparsity().get_col())
        rows.append((B[i, :] - sum(known, 0)) / L[i, i])
    return ca.vertcat(ca.DM(0, B.columns()), *rows)


def _solve_transposed(L: Matrix, B: Matrix) -> Matrix:
    """``L^-T B`` of a lower triangular L."""
    n = L.rows()
    rows: list[Matrix] = [None] * n
    for i in reversed(range(n)):
        known = (L[j, i] * rows[j] for j in range(i + 1, n) if L.sparsity().has_nz(j, i))
        rows[i] = (B[i, :] - sum(known, 0)) / L[i, i]
    return ca.vertcat(ca.DM(0, B.columns()), *rows)
