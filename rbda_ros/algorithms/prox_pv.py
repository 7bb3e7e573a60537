"""Forward dynamics with contacts and cut loops by their forces: proxPV (Sathya 2024, Algorithm 4).

On its way inward each constraint gathers the accelerations that unit forces along its rows give,
``L = J H^-1 J'``, and the acceleration that its rows have without them, ``l``. At the base the
forces follow from ``(L + I/mu) f = k - l + f_before/mu``, iterated to where mu plays no part. They
act on what the inward pass left of each joint; one outward pass then gives the accelerations.

Rows may also tie joints to each other, which the paper leaves out: they enter as unit forces on
the coordinates of the joints. So a loop can be left out of the clusters, and be closed by its
forces instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.aba import (
    accelerate_outward,
    articulated_inertias,
    bias_forces,
    carry_inward,
    driving_forces,
)
from rbda_ros.algorithms.contact_rows import (
    ContactRows,
    JointRows,
    Proximal,
    Solution,
    proximal_forces,
    split,
)
from rbda_ros.algorithms.motion import Clustered, bias_at_joints, gravity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.spanning_tree import ranges
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def prox_pv(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    tau: Matrix,
    rows: Sequence[ContactRows | JointRows],
    start: Sequence[Matrix],
    proximal: Proximal,
) -> Solution:
    """The acceleration that forces and constraints give, and the forces of the constraints.

    Args:
        tau: (ny) generalized force [N m, N].
        rows: contacts, and loops that are not embedded.
        start: (m) forces of each to start from [N, N m].
    """
    c = [bias_at_joints(tree, joints, v, k) for k in tree.outward()]
    articulated = articulated_inertias(tree, joints)
    pA = bias_forces(tree, v)
    u = carry_inward(tree, joints, articulated, c, pA, driving_forces(tree, joints, tau))

    # Backward sweep of the rows (lines 9 to 11): K^A stays in F, its part along y in T.
    sizes = [part.k.rows() for part in rows]
    m = sum(sizes)
    F: Clustered = {k: ca.DM(tree.rows(k), m) for k in (None, *tree.outward())}
    T: list[Matrix] = [ca.DM(node.ny, m) for node in tree.clusters]
    for part, columns in zip(rows, ranges(sizes), strict=True):
        if isinstance(part, JointRows):
            for k, K in part.K.items():
                T[k] = T[k] + _into(m, columns, K.T)
        else:
            F[part.cluster] = F[part.cluster] + _into(m, columns, part.K.T)
    L, l = ca.DM(m, m), ca.DM(m, 1)
    for k in tree.inward():
        joint, arti, node = joints[k], articulated[k], tree.clusters[k]
        across = joint.J.T @ F[k]
        T[k] = T[k] + joint.SG.T @ across
        L = L + arti.D.quadratic(T[k])  # line 10
        l = l + across.T @ c[k] + T[k].T @ arti.D.solve(u[k] - arti.U.T @ c[k])  # line 11
        F[node.parent] = F[node.parent] + joint.E.T @ (across - arti.U @ arti.D.solve(T[k]))
    l = l + F[None].T @ gravity(tree)

    # The forces (lines 12 to 16).
    wanted = ca.vertcat(ca.DM(0, 1), *(part.k for part in rows)) - l
    f, missing, change = proximal_forces(L, wanted, start, proximal)

    # Outward (lines 17 to 19), and the same for the last change of the forces alone.
    u = [u_k + T_k @ f for u_k, T_k in zip(u, T, strict=True)]
    ydd, _ = accelerate_outward(tree, joints, articulated, c, u, gravity(tree))
    still = [ca.DM(tree.rows(k), 1) for k in tree.outward()]
    du = [T_k @ change for T_k in T]
    dydd, _ = accelerate_outward(tree, joints, articulated, still, du, ca.DM(6, 1))
    of_all = ca.vertcat(ca.DM(0, 1), *ydd), split(f, sizes), [missing]
    return Solution(*of_all, ca.vertcat(ca.DM(0, 1), *dydd))


def _into(m: int, columns: range, block: Matrix) -> Matrix:
    """A block (n x rows) as the given columns of a matrix (n x m)."""
    left = ca.DM(block.rows(), columns.start)
    return ca.horzcat(left, block, ca.DM(block.rows(), m - columns.stop))
