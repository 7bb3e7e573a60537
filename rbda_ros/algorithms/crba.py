"""The mass matrix in y: composite rigid bodies on the cluster tree; and its factorization.

Featherstone 2010, Eqs. 44 to 48, with clusters in place of bodies.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from rbda_ros.algorithms.composites import AT_REST, Place, bodies_inward, single_bodies
from rbda_ros.algorithms.motion import armature_inertia, cluster_joints
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored

READ_BEYOND = 3
"""Numbers behind these rows that `engine/ltl_factorization.c` reads, as it reads four at a time."""


def mass_matrix(tree: ClusterTree, q: Matrix) -> Matrix:
    """H(y) (ny x ny), with kinetic energy ``yd' H yd / 2``.

    Blocks of clusters on different branches are zero by structure.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    return composite_inertia(tree, cluster_joints(tree, q))


def composite_inertia(
    tree: ClusterTree, joints: list[ClusterJoint], added: Mapping[int, Matrix] | None = None
) -> Matrix:
    """H(y) (ny x ny) of a tree whose cluster joints are there already.

    Args:
        added: what to add to the inertia (6n x 6n) of some clusters, body by body: symmetric, and
            not that of a rigid body (Sathya 2024, Eq. 24).
    """
    more = _of_bodies(added or {})
    Ic = single_bodies(tree)
    inward = [bodies_inward(tree, joints, k) for k in range(len(joints))]
    blocks: dict[tuple[int, int], Matrix] = {}
    for k in tree.inward():
        own: Matrix = ca.DM(tree.clusters[k].ny, tree.clusters[k].ny)
        F: dict[Place, Matrix] = {}  # on each body: forces (6 x ny) that accelerations of y_k take
        for i, X, SG, before in inward[k]:
            taken = Ic[k, i].forces(ca.vertcat(ca.DM(3, SG.columns()), SG))  # (46)
            if (k, i) in more:
                taken += more[k, i] @ SG
            below = F.get((k, i), ca.DM(*SG.shape))
            across = SG.T @ below
            own += mirrored(SG.T @ taken) + across + across.T  # (45)
            if before is not None:
                Ic[before] = Ic[before] + Ic[k, i].carried(X, AT_REST)  # (44)
                if (k, i) in more:
                    more[before] = more.get(before, 0) + X.congruence(more[k, i])
                F[before] = F.get(before, 0) + X.T @ (below + taken)  # (47)
        blocks[k, k] = own + armature_inertia(tree, joints, k)
        for l in tree.path(tree.clusters[k].parent):
            for i, X, SG, before in inward[l]:
                if (l, i) in F:
                    blocks[l, k] = blocks.get((l, k), 0) + SG.T @ F[l, i]  # (48)
                    if before is not None:
                        F[before] = F.get(before, 0) + X.T @ F[l, i]  # (47)
    return _assemble(tree, blocks)


def mass_matrix_rows(tree: ClusterTree, q: Matrix) -> Matrix:
    """The entries of H that are not zero by structure, on its diagonal and below, row by row.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    H = mass_matrix(tree, q)
    return ca.vertcat(ca.SX(0, 1), *(H[k, i] for k, i in branch_entries(tree)))


def branch_entries(tree: ClusterTree) -> list[tuple[int, int]]:
    """Row and column of each entry of `mass_matrix_rows`.

    Those of a coordinate are with the coordinates that carry it, from the base on, and with itself.
    The last comes again, as `READ_BEYOND` says.
    """
    above = _coordinates_above(tree)
    entries = [(k, i) for k in range(tree.ny) for i in (*reversed(above[k]), k)]
    return entries + READ_BEYOND * entries[-1:]


def _of_bodies(added: Mapping[int, Matrix]) -> dict[Place, Matrix]:
    """The blocks (6 x 6) on the diagonals of matrices (6n x 6n), where they are not zero."""
    blocks = {
        (k, i): matrix[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
        for k, matrix in added.items()
        for i in range(matrix.rows() // 6)
    }
    return {place: ca.densify(block) for place, block in blocks.items() if block.nnz()}


def mass_matrix_factor(tree: ClusterTree, q: Matrix) -> Matrix:
    """L (ny x ny), lower triangular, with ``H = L' L``, and zero where H is by structure.

    Eliminated from the tips to the base, H fills in no zero of its branches: the LTL factorization
    of Featherstone, "Efficient Factorization of the Joint-Space Inertia Matrix for Branched
    Kinematic Trees" (2005), on the coordinates of the clusters.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    return branch_factor(tree, cluster_joints(tree, q))


def mass_matrix_inverse(tree: ClusterTree, q: Matrix) -> Matrix:
    """H^-1 (ny x ny): ``W D^-1 W'`` with ``H = L' D L`` and ``W = L^-1``.

    L has ones on its diagonal, and W has no entry that L has not. There is no square root, and one
    division for each coordinate.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    H, above = mass_matrix(tree, q), _coordinates_above(tree)
    A = {(k, i): H[k, i] for k in range(tree.ny) for i in (k, *above[k])}
    L, D_inverse = dict(A), {}
    for k in reversed(range(tree.ny)):
        D_inverse[k] = 1 / A[k, k]
        for i in above[k]:
            L[k, i] = A[k, i] * D_inverse[k]
        for i in above[k]:
            for j in (i, *above[i]):
                A[i, j] = A[i, j] - L[k, i] * A[k, j]
    W: dict[tuple[int, int], Matrix] = {}
    for k in range(tree.ny):
        W[k, k] = ca.SX(1)
        for i in above[k]:
            between = above[k][: above[k].index(i)]
            W[k, i] = -sum((L[k, j] * W[j, i] for j in between), L[k, i])
    scaled = {(k, i): entry * D_inverse[i] for (k, i), entry in W.items()}
    inverse = ca.SX(tree.ny, tree.ny)
    for k in range(tree.ny):
        for i in range(k, tree.ny):
            common = [j for j in (k, *above[k]) if (i, j) in W]
            inverse[k, i] = sum((W[k, j] * scaled[i, j] for j in common), ca.SX(0))
    return mirrored(ca.densify(inverse))


def branch_factor(
    tree: ClusterTree, joints: list[ClusterJoint], added: Mapping[int, Matrix] | None = None
) -> Matrix:
    """L of `mass_matrix_factor`; arguments are those of `composite_inertia`."""
    H, above = composite_inertia(tree, joints, added), _coordinates_above(tree)
    A = {(k, i): H[k, i] for k in range(tree.ny) for i in (k, *above[k])}
    for k in reversed(range(tree.ny)):
        A[k, k] = ca.sqrt(A[k, k])
        for i in above[k]:
            A[k, i] = A[k, i] / A[k, k]
        for i in above[k]:
            for j in (i, *above[i]):
                A[i, j] = A[i, j] - A[k, i] * A[k, j]
    L = ca.SX(tree.ny, tree.ny)
    for (k, i), entry in A.items():
        L[k, i] = entry
    return L


def solve_factored(L: Matrix, b: Matrix) -> Matrix:
    """``H^-1 b`` with ``H = L' L``."""
    return solve_lower(L, solve_transposed(L, b))


def responses(L: Matrix, J: Matrix) -> tuple[Matrix, Matrix]:
    """``H^-1 J'`` (ny x m) and ``J H^-1 J'`` (m x m) with ``H = L' L``."""
    X = solve_transposed(L, J.T)
    return solve_lower(L, X), mirrored(X.T @ X)


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


def _coordinates_above(tree: ClusterTree) -> list[list[int]]:
    """For each coordinate of y, those that support it, nearest first: kappa without itself."""
    above: list[list[int]] = []
    last: dict[int | None, list[int]] = {None: []}
    for k, node in enumerate(tree.clusters):
        supporting = last[node.parent]
        for _ in range(node.ny):
            above.append(supporting)
            supporting = [len(above) - 1, *supporting]
        last[k] = supporting
    return above


def _assemble(tree: ClusterTree, blocks: dict[tuple[int, int], Matrix]) -> Matrix:
    """The symmetric matrix with the given upper blocks."""
    sizes = [node.ny for node in tree.clusters]
    rows = [
        ca.horzcat(*(blocks.get((i, j), ca.DM(n, m)) for j, m in enumerate(sizes)))
        for i, n in enumerate(sizes)
    ]
    return mirrored(ca.vertcat(*rows)) if rows else ca.DM(0, 0)
