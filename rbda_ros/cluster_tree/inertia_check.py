"""Motions that move no mass: with them, forward dynamics divides by rounding.

Two hinges on one axis with a massless link between them are the classic: the link may spin as it
likes. Numbers only, at the assembly and at one more position where joints are free.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from rbda_ros.cluster_tree.spanning_tree import joint_slices
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array

SMALLEST = 1e-13
"""Share of its own diagonal below which a motion's inertia is rounding."""
TAKES_PART = 0.1
"""Share of a motion from which a joint is named."""


def massless_motions(tree: ClusterTree) -> tuple[str, ...]:
    """Warnings that name the joints of every motion without inertia."""
    at_home = _motions(tree, tree.home)
    if not at_home:
        return ()
    step = np.random.default_rng(0).normal(0.0, 0.3, tree.nv)
    for node, place in zip(tree.clusters, tree.velocity_ranges, strict=True):
        if node.loop is not None:
            step[place.start : place.stop] = 0.0
    elsewhere = _motions(tree, tree.integrate(tree.home, step))
    return tuple(
        f"joints {', '.join(joints)}: moving them together moves no mass, so that forward dynamics"
        " is singular; give the links between them inertia, or the joints armature"
        for joints in at_home
        if joints in elsewhere
    )


def _motions(tree: ClusterTree, q: Array) -> list[tuple[str, ...]]:
    """Joints of each motion of y that has no inertia; single joints of massless tips are left out.

    The description warns of these.
    """
    if tree.ny == 0:
        return []
    G = _velocity_map(tree, q)
    M = _inertia(tree, q)
    H = G.T @ M @ G
    alone = np.diag(M) @ G**2  # what each of y would move if its joints did not move together
    moving = np.flatnonzero(alone > 0.0)
    if not moving.size:
        return []
    scale = 1.0 / np.sqrt(alone[moving])
    scaled = H[np.ix_(moving, moving)] * scale[:, None] * scale
    if _is_positive(scaled - SMALLEST * np.eye(len(scaled))):
        return []
    values, vectors = np.linalg.eigh(scaled)
    found = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value < SMALLEST:
            # Of inertias that cannot be, too, which are negative: they are to be named.
            motion = np.abs(G[:, moving] @ (scale * vector)) * np.sqrt(np.abs(np.diag(M)))
            part = np.flatnonzero(motion > TAKES_PART * motion.max())
            found.append(tuple(tree.velocity_names[i] for i in part))
    return found


def _is_positive(H: Array) -> bool:
    """Whether a symmetric matrix is positive definite: far quicker than its eigenvalues."""
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True


def _velocity_map(tree: ClusterTree, q: Array) -> Array:
    """G (nv, ny) of the whole tree, in numbers."""
    of_clusters = (
        node.velocity_map(ca.DM(q[place]))
        for node, place in zip(tree.clusters, tree.position_ranges, strict=True)
    )
    return np.asarray(ca.DM(ca.densify(ca.diagcat(*of_clusters))))


def _inertia(tree: ClusterTree, q: Array) -> Array:
    """(nv, nv) mass matrix of the spanning tree, body by body: sum of J' I J."""
    J: list[Array] = [np.zeros((6, tree.nv))]
    for body, in_q, in_qd in joint_slices(tree.spanning.bodies):
        X_J, S, _ = body.model.jcalc(ca.DM(q[in_q]), ca.DM(body.model.nv, 1), body.joint.pitch)
        X = np.asarray(ca.DM(ca.densify((X_J @ body.X_tree) @ ca.DM.eye(6))))
        own = X @ J[body.parent]
        own[:, in_qd] += np.asarray(ca.DM(ca.densify(S)))
        J.append(own)
    armature = np.concatenate([np.zeros(0), *(node.joint_armature for node in tree.clusters)])
    moved = np.concatenate(J[1:])
    weighted = np.concatenate(
        [body.inertia @ own for body, own in zip(tree.spanning.bodies, J[1:], strict=True)]
    )
    return np.asarray(moved.T @ weighted + np.diag(armature))
