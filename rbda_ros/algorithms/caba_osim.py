"""The damped inverse Delassus matrix without factorizing it: cABA-OSIM (Sathya 2024, Algorithm 5).

By the matrix inversion lemma ``(J H^-1 J' + I/mu)^-1 = mu I - mu J M^-1 J' mu``, where
``M = H + mu J'J`` is the mass matrix of the robot with ``mu K'K`` added to the inertias of the
bodies that contacts hold (40). So this is a Delassus matrix of that robot, and PV-OSIMr finds it in
O(n + m^2), its product with a vector in O(n + m).
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.aba import articulated_inertias
from rbda_ros.algorithms.constrained_aba import augmentation
from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.algorithms.pv_osim import FEW, Delassus, contact_sources, delassus, rows_along_axes
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def caba_osim(
    tree: ClusterTree, q: Matrix, axes: Matrix, contacts: Sequence[ContactFrame], mu: float
) -> Matrix:
    """``(J H^-1 J' + I/mu)^-1`` (m x m), rows along the contacts' axes, linear ones first.

    Args:
        q: (nq) spanning position, on the constraint manifold.
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        contacts: the contacts; m rows in all.
        mu: inverse of the damping [kg].
    """
    L = _augmented(tree, q, axes, contacts, mu, FEW)
    return mu * ca.DM.eye(sum(L.sizes)) - mu**2 * L.matrix()  # line 21


def caba_osim_product(
    tree: ClusterTree,
    q: Matrix,
    axes: Matrix,
    x: Matrix,
    contacts: Sequence[ContactFrame],
    mu: float,
) -> Matrix:
    """``(J H^-1 J' + I/mu)^-1 x`` (m) in O(n + m): cABA-OSIMf, the matrix is never assembled.

    Sec. VI-B does so at a floating base, where the legs meet; here every node does. Arguments are
    those of `caba_osim`, and x (m).
    """
    return mu * x - mu**2 * _augmented(tree, q, axes, contacts, mu, 0).product(x)


def _augmented(
    tree: ClusterTree,
    q: Matrix,
    axes: Matrix,
    contacts: Sequence[ContactFrame],
    mu: float,
    few: int,
) -> Delassus:
    """``J M^-1 J'`` of the robot with ``mu K'K`` in its inertias (line 4)."""
    joints = cluster_joints(tree, q)
    rows = rows_along_axes(tree, joints, contacts, axes)
    articulated = articulated_inertias(tree, joints, augmentation(rows, mu))
    return delassus(tree, joints, articulated, contact_sources(rows), few=few)
