"""Forward dynamics with contacts in linear time: constrainedABA (Sathya 2024, Algorithms 1 to 3).

The contacts' rows are added to the inertias of the bodies they hold, ``I + mu K'K``, and to their
forces, ``K'(f + mu k)``; one articulated-body pass then minimises the augmented Lagrangian (28).
Each further iteration corrects the forces by what the rows still miss (27b), and only carries
that correction through the tree: inertias and their factors stay. On the cluster tree, embedded
loops take part without any change; others are eliminated at the nearest common ancestor of their
bodies (see `loop_elimination`).

The augmented inertia is always regular, so redundant rows change nothing. Rows that are nearly
singular take many iterations, and with rows that contradict each other the forces grow without
end while the motion approaches the least squares of what they miss (Sathya 2024, Sec. II-D):
`least_squares_motion` answers there.
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
from rbda_ros.algorithms.contact_rows import ContactRows, JointRows, Proximal, Solution
from rbda_ros.algorithms.loop_elimination import LoopElimination
from rbda_ros.algorithms.motion import Clustered, bias_at_joints, gravity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def constrained_aba(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    v: Clustered,
    tau: Matrix,
    rows: Sequence[ContactRows],
    start: Sequence[Matrix],
    proximal: Proximal,
    loops: JointRows | None = None,
    wrenches: Matrix | None = None,
    of_loops: Proximal | None = None,
) -> Solution:
    """The acceleration that forces and contacts give, and the forces of the contacts.

    Args:
        tree: the cluster tree.
        joints: its cluster joints.
        v: velocities.
        tau: (ny) generalized force [N m, N].
        rows: the contacts.
        start: (m) forces of each contact to start from [N, N m].
        proximal: weight and number of iterations.
        loops: loops that are not embedded; what they miss comes last in the solution.
        wrenches: (6 x bodies) external force on each body; None for none.
        of_loops: weight and number of iterations for the loops; None for those of the contacts.
    """
    c = [bias_at_joints(tree, joints, v, k) for k in tree.outward()]
    mu, f = proximal.mu, list(start)
    internal = None
    if loops is not None:
        internal = LoopElimination(tree, joints, loops, of_loops or proximal)

    # Three sweeps (Algorithm 1), with the rows in inertias and forces (29).
    articulated = articulated_inertias(tree, joints, augmentation(rows, mu), internal)
    pA = bias_forces(tree, v, wrenches)
    for contact, f_i in zip(rows, f, strict=True):
        pA[contact.cluster] -= contact.K.T @ (f_i + mu * contact.k)
    u = carry_inward(tree, joints, articulated, c, pA, driving_forces(tree, joints, tau), internal)
    ydd, a = accelerate_outward(tree, joints, articulated, c, u, gravity(tree), internal)
    missing, before = _missing(rows, a), ydd
    f = _corrected(f, missing, mu)

    # Two sweeps (Algorithm 2) for each further iteration: only forces change.
    still = [ca.DM(tree.rows(k), 1) for k in tree.outward()]
    idle = [ca.DM(node.ny, 1) for node in tree.clusters]
    for _ in range(proximal.iterations - 1 if rows else 0):
        pA = {k: ca.DM(tree.rows(k), 1) for k in tree.outward()}
        for contact, gap in zip(rows, missing, strict=True):
            pA[contact.cluster] -= contact.K.T @ (mu * gap)
        du = carry_inward(tree, joints, articulated, still, pA, idle, internal)
        u = [u_k + du_k for u_k, du_k in zip(u, du, strict=True)]
        before = ydd
        ydd, a = accelerate_outward(tree, joints, articulated, c, u, gravity(tree), internal)
        missing = _missing(rows, a)
        f = _corrected(f, missing, mu)  # (27b)
    if internal is not None:
        missing = [*missing, internal.missing(ydd)]
    found = ca.vertcat(ca.DM(0, 1), *ydd)
    return Solution(found, f, missing, found - ca.vertcat(ca.DM(0, 1), *before))


def augmentation(rows: Sequence[ContactRows], mu: float) -> dict[int, Matrix]:
    """``mu K'K`` (6n x 6n) for each cluster that contacts hold (29)."""
    added: dict[int, Matrix] = {}
    for contact in rows:
        own = mirrored(mu * (contact.K.T @ contact.K))
        added[contact.cluster] = added.get(contact.cluster, 0) + own
    return added


def _missing(rows: Sequence[ContactRows], a: Clustered) -> list[Matrix]:
    """``k - K a`` (m) of each contact."""
    return [contact.k - contact.K @ a[contact.cluster] for contact in rows]


def _corrected(f: Sequence[Matrix], missing: Sequence[Matrix], mu: float) -> list[Matrix]:
    return [f_i + mu * gap for f_i, gap in zip(f, missing, strict=True)]
