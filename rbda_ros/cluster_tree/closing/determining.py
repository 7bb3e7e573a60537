"""Which of the known joints determine the others, in one cluster.

Where any joints that determine the others may be given, the independent ones go first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

import numpy as np

from rbda_ros.cluster_tree.closing.newton import solve
from rbda_ros.cluster_tree.closing.tolerances import RANK_TOLERANCE
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.pivoting import pivoted_columns
from rbda_ros.errors import InputError
from rbda_ros.spatial import Array


def determining_in_cluster(node: ClusterNode, known: Collection[int], near: Array) -> list[int]:
    """As many of the known velocity coordinates as determine the rest; y if it is among them.

    Args:
        node: the cluster; it has a loop.
        known: places in the cluster of the joints that are known.
        near: (nq,) position at which they should determine the rest well.

    Raises:
        InputError: they determine the others nowhere; it names them.
    """
    assert node.loop is not None
    given = [
        j for i, body_range in enumerate(node.velocity_ranges) if i in known for j in body_range
    ]
    if set(node.independent) <= set(given):
        return list(node.independent)
    unknown = [j for j in range(node.nv) if j not in given]
    rank = node.nv - node.ny
    for q in chain((near, node.home), _positions_near(node)):  # each may be a dead point
        K = node.loop.jacobian(q)
        basis, triangle = np.linalg.qr(K[:, unknown])
        if unknown and np.abs(np.diag(triangle)).min() < RANK_TOLERANCE:
            continue
        remaining = K[:, given] - basis @ (basis.T @ K[:, given])
        order, _ = pivoted_columns(remaining)
        dependent = {given[int(j)] for j in order[: rank - len(unknown)]}
        if len(unknown) <= rank:
            return [j for j in given if j not in dependent]
    names = [name for body in node.bodies for name in body.velocity_names]
    raise InputError(
        f"joints {', '.join(names[j] for j in given) or '(none)'} do not determine"
        f" {', '.join(names[j] for j in unknown)}; give also some of these, or the independent"
        f" joints {', '.join(names[j] for j in node.independent)}"
    )


def _positions_near(node: ClusterNode) -> Iterator[Array]:
    """A few closed positions near the assembly."""
    assert node.loop is not None
    rng = np.random.default_rng(0)
    for _ in range(4):
        near = node.loop.integrate(node.home, rng.normal(0.0, 0.1, node.nv))
        closed = solve(node.loop, near, range(node.nv))
        if closed.ok:
            yield closed.q
