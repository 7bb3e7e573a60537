"""Which forces a cluster joint transmits: T^a and T^c (Chignoli 2024, Sec. III-C).

They say what the motion subspace means for forces; tests compare the cluster joint with them.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode, Propagator
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.spatial import Matrix, constant

RESISTED = {
    "revolute": (0, 1, 3, 4, 5),
    "continuous": (0, 1, 3, 4, 5),
    "prismatic": (0, 1, 2, 3, 4),
    "planar": (0, 1, 5),
    "spherical": (3, 4, 5),
    "floating": (),
}
"""Components of a force, moment first, that joints resist in their body's frame."""


def constraint_basis(joint_type: str, pitch: float) -> np.ndarray:
    """T_i^c (6 x 6-nv), the forces that a tree joint resists, in its body's frame."""
    if joint_type == "helical":
        along = np.array([[0.0], [0.0], [-pitch], [0.0], [0.0], [1.0]])
        return np.hstack([np.eye(6)[:, (0, 1, 3, 4)], along])
    return np.eye(6)[:, RESISTED[joint_type]]


def force_subspaces(node: ClusterNode, joint: ClusterJoint) -> tuple[Matrix, Matrix]:
    """T^a (6n x ny) and T^c (6n x 6n-ny): the cluster's active and constraint forces.

    A cluster joint force is ``T^a tau + T^c lambda``, with ``S' T^a = 1`` and ``S' T^c = 0`` (22).
    The tree joints' forces are lifted to the cluster (33), where P = pinv(G') spreads tau over
    the tree joints. The paper's (31) to (33) give T^c only columns from the tree joints' own
    constraint forces T_i^c. The loop's constraint forces act too, through the active directions
    of the tree joints, along all ``N lambda`` with ``G' N = 0``, which is the range of K';
    without these columns [T^a T^c] would not span all 6n forces. Both are here.

    Args:
        node: the cluster.
        joint: the same cluster at a state.
    """
    T_a = least_squares(joint.S, ca.DM.eye(joint.S.rows())).T  # S' T_a = 1 of the tree joints
    T_c = ca.diagcat(
        *(constant(constraint_basis(b.joint.type, b.joint.pitch)) for b in node.bodies)
    )
    P = least_squares(joint.G, ca.DM.eye(node.nv)).T  # pinv(G')
    through_loops = T_a @ _loop_forces(node, joint.G)
    lifted = _from_tree_joints(joint.J, ca.horzcat(T_a @ P, T_c, through_loops))
    return lifted[:, : node.ny], lifted[:, node.ny :]


def _loop_forces(node: ClusterNode, G: Matrix) -> Matrix:
    """N (nv x nv-ny), a basis of the tree-joint forces of the loops: ``G' N = 0``."""
    dependent = [j for j in range(node.nv) if j not in node.independent]
    N = ca.SX(node.nv, len(dependent))
    N[list(node.independent), :] = -G[dependent, :].T
    N[dependent, :] = ca.DM.eye(len(dependent))
    return ca.sparsify(N)


def _from_tree_joints(J: Propagator, f: Matrix) -> Matrix:
    """The cluster forces (6n x m) of tree-joint forces f (6n x m), by (28).

    What a joint gives its body, less what the joints behind it take.
    """
    onto = [f[6 * i : 6 * i + 6, :] for i in range(len(J.X_up))]
    for i, parent in enumerate(J.inside):
        if parent is not None:
            onto[parent] = onto[parent] - J.X_up[i].T @ f[6 * i : 6 * i + 6, :]
    return ca.vertcat(*onto)
