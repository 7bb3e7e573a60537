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
    JointRows,
    Proximal,
    Solution,
    proximal_forces,
    split,
)
from rbda_ros.algorithms.crba import (
    branch_factor,
    solve_factored,
    solve_lower,
    solve_transposed,
)
from rbda_ros.algorithms.motion import Clustered
from rbda_ros.algorithms.rnea import along_y, at_constant_velocity
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
    """As `prox_pv`; arguments and results are the same."""
    # Without forces along the rows: ydd_free, and what the rows miss then.
    a, bias = at_constant_velocity(tree, joints, v)
    L = branch_factor(tree, joints)
    ydd = solve_factored(L, tau - bias)  # (3)
    J = jacobian_of(tree, joints, rows)
    wanted = without_motion(rows, a) - J @ ydd

    # Proximal iterations on the damped Delassus matrix (13).
    X = solve_transposed(L, J.T)
    delassus = mirrored(X.T @ X)
    f, missing, change = proximal_forces(delassus, wanted, start, proximal)
    sizes = [part.k.rows() for part in rows]
    ydd = ydd + solve_lower(L, X @ f)  # (8)
    return Solution(ydd, split(f, sizes), [missing], solve_lower(L, X @ change))


def jacobian_of(
    tree: ClusterTree, joints: list[ClusterJoint], rows: Sequence[ContactRows | JointRows]
) -> Matrix:
    """J (m x ny) of all rows (22)."""
    blocks = [ca.DM(0, tree.ny)]
    for part in rows:
        if isinstance(part, JointRows):
            free = (ca.DM(part.k.rows(), node.ny) for node in tree.clusters)
            blocks.append(ca.horzcat(*(part.K.get(k, none) for k, none in enumerate(free))))
        else:
            blocks.append(along_y(tree, joints, {part.cluster: part.K.T}, part.k.rows()).T)
    return ca.vertcat(*blocks)


def without_motion(rows: Sequence[ContactRows | JointRows], a: Clustered) -> Matrix:
    """Wanted J ydd (m): k, less the accelerations a that bodies have at ydd = 0."""
    wanted = (r.k if isinstance(r, JointRows) else r.k - r.K @ a[r.cluster] for r in rows)
    return ca.vertcat(ca.DM(0, 1), *wanted)


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
    mu = proximal.mu
    a, bias = at_constant_velocity(tree, joints, v)
    J, wanted = jacobian_of(tree, joints, rows), without_motion(rows, a)
    L = branch_factor(tree, joints, augmentation(rows, mu))  # (24)

    f = ca.vertcat(ca.DM(0, 1), *start)
    ydd = solve_factored(L, tau - bias + J.T @ (f + mu * wanted))  # (16a)
    missing, change = wanted - J @ ydd, ca.DM(tree.ny, 1)
    f = f + mu * missing  # (16b)
    for _ in range(proximal.iterations - 1):
        change = solve_factored(L, J.T @ (mu * missing))
        ydd = ydd + change
        missing = wanted - J @ ydd
        f = f + mu * missing
    return Solution(ydd, split(f, [part.k.rows() for part in rows]), [missing], change)
