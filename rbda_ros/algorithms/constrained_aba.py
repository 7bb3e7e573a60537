"""Forward dynamics with contacts in linear time: constrainedABA (Sathya 2024, Algorithms 1 to 3).

The contacts' rows are added to the inertias of the bodies they hold, ``I + mu K'K``, and to their
forces, ``K'(f + mu k)``; one articulated-body pass then minimises the augmented Lagrangian (28).
Each further iteration corrects the forces by what the rows still miss (27b), and only carries
that correction through the tree: inertias and their factors stay. On the cluster tree, embedded
loops take part without any change; others are eliminated at the nearest common ancestor of their
bodies (see below).

The augmented inertia is always regular, so redundant rows change nothing. Rows that are nearly
singular take many iterations, and with rows that contradict each other the forces grow without
end while the motion approaches the least squares of what they miss (Sathya 2024, Sec. II-D):
`least_squares_motion` answers there.

A loop between bodies of two branches acts on nothing outside them but their nearest common
ancestor. On the way inward its rows gather, as in proxPV, the acceleration ``L`` per unit force
along them and the acceleration ``l`` without any force, up to that ancestor, whose own acceleration
they see through ``F``. There the forces follow from it, ``(L + I/mu) f = k - l - F' a``, and what
they do to the ancestor is an inertia and a bias force (Brandl 1988; Sathya and Carpentier,
"Constrained Articulated Body Dynamics Algorithms", early elimination):

    IA + F (L + I/mu)^-1 F',    pA - F (L + I/mu)^-1 (k - l).

Proximal iterations, ``(L + I/mu) f = k - l - F' a + f_before/mu``, remove the effect of mu. They
are linear in the right-hand side, and take place at the ancestor as well. So loops of different
limbs never meet, and the cost is linear in their number. Loops that share a joint are eliminated
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca

from rbda_ros.algorithms.aba import (
    Articulated,
    accelerate_outward,
    articulated_inertias,
    bias_forces,
    carry_inward,
    driving_forces,
)
from rbda_ros.algorithms.contact_rows import ContactRows, JointRows, Proximal, Solution
from rbda_ros.algorithms.motion import Clustered, bias_at_joints, gravity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.straight_line import SymmetricFactor, factor_symmetric
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
        tau: (ny) generalized force [N m, N].
        start: (m) forces of each contact to start from [N, N m].
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


@dataclass(eq=False)
class _Group:
    """Rows that are eliminated together.

    Attributes:
        rows: their numbers.
        region: the clusters whose joints they may move, tips first.
        ancestor: nearest cluster that all of these hang from; None for the base.
        across: (6n x m) the rows' forces at the joints of each cluster of the region.
        T: (ny x m) their part along y.
        F: (6n x m) what is left of them at the ancestor.
        damped: factors of L + I/mu.
        free: (m) k - l, of all inward passes together.
    """

    rows: list[int]
    region: list[int]
    ancestor: int | None
    across: dict[int, Matrix] = field(default_factory=dict)
    T: dict[int, Matrix] = field(default_factory=dict)
    F: Matrix = None
    damped: SymmetricFactor | None = None
    free: Matrix = 0


class LoopElimination:
    """Loops on the joints of a cluster tree, for the sweeps of `aba`.

    Args:
        rows: the loops: ``K ydd = k``.
    """

    def __init__(
        self, tree: ClusterTree, joints: list[ClusterJoint], rows: JointRows, proximal: Proximal
    ) -> None:
        self._tree, self._joints, self._proximal = tree, joints, proximal
        self._K = rows.K
        self._groups = _groups(tree, rows)
        self._articulated: Sequence[Articulated] = ()
        self._k = rows.k
        self._wanted = rows.k  # only the first inward pass has to give it

    def inertia(self, k: int | None, articulated: Sequence[Articulated]) -> Matrix:
        """``F (L + I/mu)^-1 F'`` (6n x 6n) of the loops whose ancestor is cluster k."""
        self._articulated = articulated
        added: Matrix = ca.DM(self._tree.rows(k), self._tree.rows(k))
        for group in self._of(k):
            self._gather(group)
            if k is not None:
                added = added + group.F @ self._forces(group, group.F.T)
        return added

    def bias(self, k: int | None, c: Sequence[Matrix], u: Sequence[Matrix]) -> Matrix:
        """``-F (L + I/mu)^-1 (k - l)`` (6n) of the loops whose ancestor is cluster k."""
        added: Matrix = ca.DM(self._tree.rows(k), 1)
        for group in self._of(k):
            free = self._free(group, c, u)
            group.free = group.free + free
            if k is not None:
                added = added - group.F @ self._forces(group, free)
        self._wanted = ca.DM(self._k.rows(), 1) if k is None else self._wanted
        return added

    def drive(self, k: int | None, a: Matrix, u: list[Matrix]) -> None:
        """Add the forces of the loops whose ancestor is cluster k to u (ny) of their clusters."""
        for group in self._of(k):
            f = self._forces(group, group.free - group.F.T @ a)
            for j in group.region:
                u[j] = u[j] + group.T[j] @ f

    def missing(self, ydd: Sequence[Matrix]) -> Matrix:
        """``k - K ydd`` (m), of accelerations (ny) of each cluster."""
        missing = self._k
        for k, K in self._K.items():
            missing = missing - K @ ydd[k]
        return missing

    def _of(self, k: int | None) -> list[_Group]:
        return [group for group in self._groups if group.ancestor == k]

    def _gather(self, group: _Group) -> None:
        """Carry the rows inward to their ancestor (Sathya 2024, Algorithm 4, lines 9 and 10)."""
        tree, m = self._tree, len(group.rows)
        F: Clustered = {k: ca.DM(tree.rows(k), m) for k in (*group.region, group.ancestor)}
        L: Matrix = ca.DM(m, m)
        for k in group.region:
            joint, arti, parent = self._joints[k], self._articulated[k], tree.clusters[k].parent
            group.across[k] = across = joint.J.T @ F[k]
            T = joint.SG.T @ across
            if k in self._K:
                T = T + self._K[k][group.rows, :].T
            group.T[k] = T
            L = L + arti.D.quadratic(T)
            F[parent] = F[parent] + joint.E.T @ (across - arti.U @ arti.D.solve(T))
        group.F = F[group.ancestor]
        group.damped = factor_symmetric(L + ca.DM.eye(m) / self._proximal.mu)

    def _forces(self, group: _Group, wanted: Matrix) -> Matrix:
        """Forces (m) that give the rows a wanted acceleration, by proximal iterations (13)."""
        assert group.damped is not None
        first = f = group.damped.solve(wanted)
        for _ in range(self._proximal.iterations - 1):
            f = first + group.damped.solve(f / self._proximal.mu)
        return f

    def _free(self, group: _Group, c: Sequence[Matrix], u: Sequence[Matrix]) -> Matrix:
        """``k - l`` (m): what the rows miss without forces, where the ancestor stays at rest."""
        l: Matrix = ca.DM(len(group.rows), 1)
        for k in group.region:
            arti = self._articulated[k]
            l = l + group.across[k].T @ c[k]
            l = l + group.T[k].T @ arti.D.solve(u[k] - arti.U.T @ c[k])  # line 11
        return self._wanted[group.rows] - l


def _groups(tree: ClusterTree, rows: JointRows) -> list[_Group]:
    """Rows that share a joint on the way to their ancestors, together."""
    found: list[tuple[set[int], set[int]]] = []  # rows, and the clusters that they touch
    for i in range(rows.k.rows()):
        own, touched = {i}, {k for k, K in rows.K.items() if K[i, :].nnz()}
        # Joining two may move their ancestor inward, so that they meet a third.
        while True:
            region = set(_region(tree, touched)[0])
            met = [each for each in found if region & set(_region(tree, each[1])[0])]
            if not met:
                break
            for each in met:
                found.remove(each)
                own, touched = own | each[0], touched | each[1]
        found.append((own, touched))
    return [_Group(sorted(own), *_region(tree, touched)) for own, touched in found]


def _region(tree: ClusterTree, touched: set[int]) -> tuple[list[int], int | None]:
    """The clusters between the joints of some rows and their nearest common ancestor."""
    chains = [_ancestors(tree, k) for k in sorted(touched)]
    if not chains:
        return [], None
    common = set(chains[0][1:]).intersection(*(chain[1:] for chain in chains[1:]))
    ancestor = next(k for k in chains[0][1:] if k in common)
    region = {k for chain in chains for k in chain[: chain.index(ancestor)]}
    return [k for k in tree.inward() if k in region], ancestor


def _ancestors(tree: ClusterTree, k: int | None) -> list[int | None]:
    """A cluster, its parent and so on; the base, None, is last."""
    chain = [k]
    while k is not None:
        k = tree.clusters[k].parent
        chain.append(k)
    return chain
