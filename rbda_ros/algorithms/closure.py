"""Loop closure by a fixed number of Newton steps, for positions near a closed one.

For joints that have moved a little since the last position a few steps reach the last digit. How
well they did is what `loop_state` returns; `cluster_tree.closing` has a search from far away.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.cluster_tree.closing.newton import newton_steps
from rbda_ros.cluster_tree.closing.tolerances import KERNEL_STEPS
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def closure(
    tree: ClusterTree, known: Matrix, guess: Matrix, positions: Sequence[int]
) -> tuple[Matrix, Matrix]:
    """The spanning position (nq) after steps on ``phi(q) = 0`` (2), and phi there.

    Where a loop may have changed its branch, one of its rows is off by one: not closed.

    Args:
        known: position of the known coordinates; in each loop as many as y has there. Their joints
            have one coordinate.
        guess: (nq) spanning position to start from.
        positions: which entries of q are known; the others are solved for, or stay.
    """
    q, phi, doubt = followed(tree, known, guess, positions, KERNEL_STEPS)
    return q, phi + doubt


def followed(
    tree: ClusterTree, known: Matrix, guess: Matrix, positions: Sequence[int], steps: int
) -> tuple[Matrix, Matrix, Matrix]:
    """As `closure`: the spanning position (nq), phi (rows) there, and where branches are in doubt.

    The last is (rows) 1 in a row of each loop that may have changed its branch, else 0. As many
    steps are taken as are asked for, in loops that are not linear.
    """
    q, base = ca.SX(guess), tree.coordinates.base_nq
    q[list(positions)] = known
    closed, residual, doubts = [ca.DM(0, 1)], [ca.DM(0, 1)], [ca.DM(0, 1)]
    for node, start, q_k, place in zip(
        tree.clusters,
        tree.split_positions(guess),
        tree.split_positions(q),
        tree.position_ranges,
        strict=True,
    ):
        if node.loop is not None:
            free = [
                j
                for in_q, in_qd in zip(node.position_ranges, node.velocity_ranges, strict=True)
                for j in in_qd
                if place[in_q.start] not in positions and place[in_q.start] >= base
            ]
            q_k, doubt = newton_steps(node.loop, start, q_k, free, steps)
            residual.append(node.loop.phi(q_k))
            doubts.append(ca.vertcat(doubt, ca.DM(residual[-1].rows() - 1, 1)))
        closed.append(q_k)
    return ca.vertcat(*closed), ca.vertcat(*residual), ca.vertcat(*doubts)
