"""Another choice of independent joints for the same robot: away from a dead point of the first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.closing.independent import (
    AssemblyError,
    Wishes,
    choose_independent,
    unit_rows,
)
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.effort_map import driven_coordinates
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.errors import InputError
from rbda_ros.spatial import Array


def with_independent_joints(
    tree: ClusterTree, q: Array, joints: Collection[str] | None
) -> ClusterTree:
    """The tree with other independent joints, assembled at q (nq,).

    Loops of which no joint is named keep theirs; without names every loop gets those that
    determine the others best at q.

    Raises:
        InputError: unknown names, or joints that do not determine the others of their loop.
    """
    unknown = sorted(set(joints or ()).difference(tree.coordinates.joints))
    if unknown:
        raise InputError(f"{tree.description.name} has no joint {unknown[0]!r}")
    places = zip(tree.clusters, tree.position_ranges, strict=True)
    return replace(
        tree,
        clusters=tuple(_node(node, q[place.start : place.stop], joints) for node, place in places),
    )


def _node(node: ClusterNode, q: Array, joints: Collection[str] | None) -> ClusterNode:
    """One cluster, assembled at q (its nq,)."""
    if node.loop is None:
        return replace(node, home=q)
    of = [body.joint for body in node.bodies for _ in range(body.model.nv)]
    base = {j for j, joint in enumerate(of) if joint.type == "floating"}
    named = {j for j, joint in enumerate(of) if joints and joint.name in joints}
    if joints is not None and not named:
        return replace(node, home=q)
    wishes = Wishes(
        required=frozenset(named | base),
        allowed=frozenset(named | base if named else range(len(of))),
        preferred=frozenset(),
        listed=bool(named),
    )
    names = [name for body in node.bodies for name in body.velocity_names]
    jacobians = [unit_rows(np.asarray(node.loop.jacobian(q)))]
    try:
        independent = choose_independent(
            jacobians, len(node.independent), wishes, names, node.loop.constant
        )
    except AssemblyError as failed:
        raise InputError(str(failed.problem)) from None
    chosen = replace(node, home=q, independent=independent)
    G = np.asarray(ca.DM(ca.densify(chosen.velocity_map(ca.DM(q)))))
    return replace(chosen, driven=driven_coordinates(G, node.actuated))
