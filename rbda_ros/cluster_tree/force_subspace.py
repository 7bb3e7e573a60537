"""Which forces a cluster joint transmits: T^a and T^c (Chignoli 2024, Sec. III-C).

No algorithm needs them; they say what the motion subspace means for forces, and tests hold the
cluster joint against them.
"""

from __future__ import annotations

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode, Propagator
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.spatial import Matrix, constant


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
    T_c = ca.diagcat(*(constant(b.model.constraint_basis(b.joint.pitch)) for b in node.bodies))
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
