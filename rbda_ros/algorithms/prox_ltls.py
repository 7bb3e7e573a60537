"""Forward dynamics with contacts in joint space, forces eliminated first: proxLTLs.

Sathya 2024, Sec. II-D2: the augmented Lagrangian method. The contacts' rows are in the mass matrix,
``M_mu = H + mu J'J``, which has the zeros of H: composite rigid bodies find it from the inertias
``I + mu K'K`` (24), and it is factored along its branches. No Delassus matrix is formed, so that
the cost is O(n d^2 + m d). It is to proxLTL what constrainedABA is to proxPV, and like proxLTL a
route to compare the recursive algorithms with.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.constrained_aba import augmentation
from rbda_ros.algorithms.contact_rows import ContactRows, Proximal, Solution, split
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.motion import Clustered, accelerations, armature_forces, gravity
from rbda_ros.algorithms.prox_ltl import (
    jacobian_of,
    solve_lower,
    solve_transposed,
    without_motion,
)
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


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
