"""Forward dynamics with contacts in joint space: proxLTL (Sathya 2024, Sec. II-D).

The mass matrix is factored along its branches, ``H = L' L``, and so is the Delassus matrix
``J H^-1 J' = X' X`` with ``X = L^-T J'``. More work than the recursive algorithms, and nothing in
common with them but the rows: the route to compare them with.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.contacts import ContactRows, Proximal, Solution, split
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.motion import Clustered, accelerations, gravity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, stack_cross_force
from rbda_ros.cluster_tree.straight_line import factor_symmetric
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
    forces: Clustered = {
        k: node.inertia @ a[k] + stack_cross_force(v[k], node.inertia @ v[k])
        for k, node in enumerate(tree.clusters)
    }
    L = branch_factor(tree, composite_inertia(tree, joints))
    ydd = _solve(L, _solve_transposed(L, tau - along_y(tree, joints, forces)))  # (3)
    J = ca.vertcat(
        ca.DM(0, tree.ny),
        *(along_y(tree, joints, {contact.cluster: contact.K.T}).T for contact in rows),  # (22)
    )
    bias = (contact.k - contact.K @ a[contact.cluster] for contact in rows)
    wanted = ca.vertcat(ca.DM(0, 1), *bias) - J @ ydd

    # Proximal iterations on the damped Delassus matrix (13).
    X = _solve_transposed(L, J.T)
    delassus = mirrored(X.T @ X)
    damped = factor_symmetric(delassus + ca.DM.eye(J.rows()) / proximal.mu)
    f = ca.vertcat(ca.DM(0, 1), *start)
    missing = before = wanted - delassus @ f
    for _ in range(proximal.iterations):
        f = f + damped.solve(missing)
        before, missing = missing, wanted - delassus @ f
    sizes = [contact.frame.size for contact in rows]
    return Solution(ydd + _solve(L, X @ f), split(f, sizes), [missing], [before])  # (8)


def along_y(tree: ClusterTree, joints: list[ClusterJoint], forces: Clustered) -> Matrix:
    """Generalized forces (ny x m) that balance forces (6n x m) on some clusters (23), (65)."""
    m = next(iter(forces.values())).columns() if forces else 1
    f: Clustered = {k: forces.get(k, ca.DM(tree.rows(k), m)) for k in (None, *tree.outward())}
    tau: list[Matrix] = [None] * len(tree.clusters)
    for k in tree.inward():
        l, across = tree.clusters[k].parent, joints[k].J.T @ f[k]
        tau[k] = joints[k].SG.T @ across
        f[l] = f[l] + joints[k].E.T @ across
    return ca.vertcat(ca.DM(0, m), *tau)


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
