"""Loop closure by a fixed number of Newton steps, for positions near a closed one.

For joints that have moved a little since the last position a few steps reach the last digit. How
well they did is told by `loop_state`; a search that starts far away is in `cluster_tree.closing`.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.cluster_tree.closing.newton import newton_steps
from rbda_ros.cluster_tree.closing.tolerances import KERNEL_STEPS
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def closure(
    tree: ClusterTree,
    known: Matrix,
    guess: Matrix,
    positions: Sequence[int],
    steps: int = KERNEL_STEPS,
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
    closed, residual = [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, q_k, place in zip(
        tree.clusters, tree.split_positions(q), tree.position_ranges, strict=True
    ):
        if node.loop is not None:
            free = [j for j, entry in enumerate(place) if entry not in positions]
            q_k = newton_steps(node.loop, q_k, free, steps)
            residual.append(node.loop.phi(q_k))
        closed.append(q_k)
    return ca.vertcat(*closed), ca.vertcat(*residual)
