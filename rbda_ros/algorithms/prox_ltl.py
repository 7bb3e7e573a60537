"""Forward dynamics with contacts in joint space: proxLTL (Sathya 2024, Sec. II-D).

The mass matrix is factored along its branches, ``H = L' L``, and so is the Delassus matrix
``J H^-1 J' = X' X`` with ``X = L^-T J'``. More work than the recursive algorithms, and nothing in
common with them but the rows: the route to compare them with. Rows may also tie joints to each
other, as in `prox_pv`: with all loops open it is the "Proximal and Sparse" method that Chignoli
2024 compares embedding with (Carpentier, Budhiraja, Mansard 2021).

proxLTLs eliminates the forces first (Sec. II-D2, the augmented Lagrangian method). The contacts'
rows are in the mass matrix, ``M_mu = H + mu J'J``, which has the zeros of H: composite rigid bodies
find it from the inertias ``I + mu K'K`` (24), and it is factored along its branches. No Delassus
matrix is formed, so that the cost is O(n d^2 + m d). It is to proxLTL what constrainedABA is to
proxPV.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.constrained_aba import augmentation
from rbda_ros.algorithms.contact_rows import (
    ContactRows,
    Proximal,
    Solution,
    proximal_forces,
    split,
)
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.motion import Clustered, accelerations, armature_forces, gravity
from rbda_ros.algorithms.prox_pv import JointRows
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def prox_ltl(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    tau: Matrix,
    rows: Sequence[ContactRows | JointRows],
    start: Sequence[Matrix],
    proximal: Proximal,
) -> Solution:
    """As `prox_pv`, without wrenches; arguments and results are the same."""
    # Without forces along the rows: ydd_free, and what the rows miss then.
    a = accelerations(tree, joints, v, ca.DM(tree.ny, 1), gravity(tree))
    L = branch_factor(tree, composite_inertia(tree, joints))
    bias = along_y(tree, joints, body_forces(tree, v, a))
    bias += armature_forces(tree, joints, ca.DM(tree.ny, 1))
    ydd = solve_lower(L, solve_transposed(L, tau - bias))  # (3)
    J = ca.vertcat(ca.DM(0, tree.ny), *(jacobian_of(tree, joints, part) for part in rows))  # (22)
    wanted = ca.vertcat(ca.DM(0, 1), *(without_motion(part, a) for part in rows)) - J @ ydd

    # Proximal iterations on the damped Delassus matrix (13).
    X = solve_transposed(L, J.T)
    delassus = mirrored(X.T @ X)
    f, missing, change = proximal_forces(delassus, wanted, start, proximal)
    sizes = [part.k.rows() for part in rows]
    ydd = ydd + solve_lower(L, X @ f)  # (8)
    return Solution(ydd, split(f, sizes), [missing], solve_lower(L, X @ change))


def jacobian_of(
    tree: ClusterTree, joints: list[ClusterJoint], rows: ContactRows | JointRows
) -> Matrix:
    """J (m x ny) of some rows (22)."""
    if isinstance(rows, JointRows):
        blocks = [ca.DM(rows.k.rows(), node.ny) for node in tree.clusters]
        for k, K in rows.K.items():
            blocks[k] = K
        return ca.horzcat(*blocks)
    return along_y(tree, joints, {rows.cluster: rows.K.T}, rows.k.rows()).T


def without_motion(rows: ContactRows | JointRows, a: Clustered) -> Matrix:
    """Wanted J ydd (m): k, less the accelerations a that bodies have at ydd = 0."""
    return rows.k if isinstance(rows, JointRows) else rows.k - rows.K @ a[rows.cluster]


def solve_lower(L: Matrix, B: Matrix) -> Matrix:
    """``L^-1 B`` of a lower triangular L, whose zeros cost nothing."""
    rows: list[Matrix] = []
    for i in range(L.rows()):
        known = (L[i, j] * rows[j] for j in L[i, :i].sparsity().get_col())
        rows.append((B[i, :] - sum(known, 0)) / L[i, i])
    return ca.vertcat(ca.DM(0, B.columns()), *rows)


def solve_transposed(L: Matrix, B: Matrix) -> Matrix:
    """``L^-T B`` of a lower triangular L."""
    n = L.rows()
    rows: list[Matrix] = [None] * n
    for i in reversed(range(n)):
        known = (L[j, i] * rows[j] for j in range(i + 1, n) if L.sparsity().has_nz(j, i))
        rows[i] = (B[i, :] - sum(known, 0)) / L[i, i]
    return ca.vertcat(ca.DM(0, B.columns()), *rows)


def prox_ltls(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    tau: Matrix,
    rows: Sequence[ContactRows],
    start: Sequence[Matrix],
    proximal: Proximal,
) -> Solution:
    """As `constrained_aba`; arguments and results are the same."""
    mu, still = proximal.mu, ca.DM(tree.ny, 1)
    a = accelerations(tree, joints, v, still, gravity(tree))
    bias = along_y(tree, joints, body_forces(tree, v, a)) + armature_forces(tree, joints, still)
    J = ca.vertcat(ca.DM(0, tree.ny), *(jacobian_of(tree, joints, part) for part in rows))  # (22)
    wanted = ca.vertcat(ca.DM(0, 1), *(without_motion(part, a) for part in rows))
    L = branch_factor(tree, composite_inertia(tree, joints, augmentation(rows, mu)))  # (24)

    f = ca.vertcat(ca.DM(0, 1), *start)
    ydd = _solve(L, tau - bias + J.T @ (f + mu * wanted))  # (16a)
    missing, change = wanted - J @ ydd, still
    f = f + mu * missing  # (16b)
    for _ in range(proximal.iterations - 1):
        change = _solve(L, J.T @ (mu * missing))
        ydd = ydd + change
        missing = wanted - J @ ydd
        f = f + mu * missing
    return Solution(ydd, split(f, [part.k.rows() for part in rows]), [missing], change)


def _solve(L: Matrix, b: Matrix) -> Matrix:
    """``M_mu^-1 b`` with ``M_mu = L' L``."""
    return solve_lower(L, solve_transposed(L, b))
