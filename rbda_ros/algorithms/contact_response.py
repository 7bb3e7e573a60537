"""How a robot answers to forces at its contacts: what solvers of contact problems begin with.

The mass matrix is factored along its branches, ``H = L' L``, once for the free motion and for the
responses to all contacts, as in `prox_ltl`.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.contact_rows import ContactFrame, contact_rows
from rbda_ros.algorithms.crba import branch_factor, composite_inertia
from rbda_ros.algorithms.motion import (
    accelerations,
    armature_forces,
    cluster_joints,
    gravity,
    velocities,
)
from rbda_ros.algorithms.prox_ltl import jacobian_of, solve_lower, solve_transposed
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def contact_response(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    axes: Matrix,
    contacts: Sequence[ContactFrame],
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """The free acceleration, and accelerations per force along the axes of contacts.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        contacts: the contacts; m rows in all.

    Returns:
        ydd (ny) without contacts; J (m x ny); ``H^-1 J'`` (ny x m); ``J H^-1 J'`` (m x m).
    """
    joints = cluster_joints(tree, q, yd)
    v, still = velocities(tree, joints), ca.DM(tree.ny, 1)
    a = accelerations(tree, joints, v, still, gravity(tree))
    bias = along_y(tree, joints, body_forces(tree, v, a)) + armature_forces(tree, joints, still)
    L = branch_factor(tree, composite_inertia(tree, joints))
    ydd = solve_lower(L, solve_transposed(L, tau - bias))
    desired = ca.DM(6, len(contacts))
    rows = contact_rows(tree, joints, v, contacts, axes, desired, along_axes=True)
    J = ca.vertcat(ca.DM(0, tree.ny), *(jacobian_of(tree, joints, part) for part in rows))
    X = solve_transposed(L, J.T)
    return ydd, J, solve_lower(L, X), mirrored(X.T @ X)
