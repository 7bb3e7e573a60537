"""Loop closure by a fixed number of Newton steps, for positions near a closed one.

For joints that have moved a little since the last position a few steps reach the last digit. How
well they did is told by `loop_state`; a search that starts far away is in `cluster_tree.closure`.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

STEPS = 5


def closure(
    tree: ClusterTree, known: Matrix, guess: Matrix, positions: Sequence[int], steps: int = STEPS
) -> tuple[Matrix, Matrix]:
    """The spanning position (nq) after Newton steps on ``phi(q) = 0`` (2), and phi there.

    Args:
        tree: the cluster tree; joints in loops have as many positions as velocities.
        known: position of the known coordinates; in each loop as many as y has there.
        guess: (nq) spanning position to start from.
        positions: which entries of q are known; the others are solved for, or stay.
        steps: how many, in loops that are not linear.
    """
    q = ca.SX(guess)
    q[list(positions)] = known
    closed, residual, start = [ca.DM(0, 1)], [ca.DM(0, 1)], 0
    for node in tree.clusters:
        q_k = q[start : start + node.nq]
        if node.loop is not None:
            free = [j for j in range(node.nv) if start + j not in positions]
            for _ in range(1 if node.loop.constant else steps):
                K, phi = node.loop.K(q_k), node.loop.phi(q_k)
                q_k[free] += least_squares(K[:, free], -phi)
            residual.append(node.loop.phi(q_k))
        closed.append(q_k)
        start += node.nq
    return ca.vertcat(*closed), ca.vertcat(*residual)
