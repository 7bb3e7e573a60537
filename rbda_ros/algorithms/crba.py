"""The mass matrix in y: composite rigid bodies on the cluster tree; and its factorization.

Featherstone 2010, Eqs. 44 to 48, with clusters in place of bodies.
"""

from __future__ import annotations

import casadi as ca

from rbda_ros.algorithms.motion import Clustered, armature_inertia, cluster_joints
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def mass_matrix(tree: ClusterTree, q: Matrix) -> Matrix:
    """H(y) (ny x ny), with kinetic energy ``yd' H yd / 2``.

    Blocks of clusters on different branches are zero by structure.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    return composite_inertia(tree, cluster_joints(tree, q))


def composite_inertia(tree: ClusterTree, joints: list[ClusterJoint]) -> Matrix:
    """H(y) (ny x ny) of a tree whose cluster joints are there already."""
    Ic: Clustered = {k: node.inertia for k, node in enumerate(tree.clusters)} | {None: 0}
    blocks: dict[tuple[int, int], Matrix] = {}
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        at_joints = joint.J.congruence(Ic[k])
        if l is not None:
            Ic[l] = mirrored(Ic[l] + joint.E.congruence(at_joints))  # (44)
        F = at_joints @ joint.SG  # (46)
        blocks[k, k] = mirrored(joint.SG.T @ F) + armature_inertia(tree, joints, k)  # (45)
        while l is not None:
            F = joint.E.T @ F  # (47)
            joint = joints[l]
            F = joint.J.T @ F
            blocks[l, k] = joint.SG.T @ F  # (48)
            l = tree.clusters[l].parent
    return _assemble(tree, blocks)


def mass_matrix_factor(tree: ClusterTree, q: Matrix) -> Matrix:
    """L (ny x ny), lower triangular, with ``H = L' L``, and zero where H is by structure.

    Eliminated from the tips to the base, H fills in no zero of its branches: the LTL factorization
    of Featherstone, "Efficient Factorization of the Joint-Space Inertia Matrix for Branched
    Kinematic Trees" (2005), on the coordinates of the clusters.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
    """
    return branch_factor(tree, mass_matrix(tree, q))


def branch_factor(tree: ClusterTree, H: Matrix) -> Matrix:
    """L of a mass matrix H (ny x ny) that is there already."""
    above = _coordinates_above(tree)
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
