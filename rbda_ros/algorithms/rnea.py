"""Inverse dynamics by the constraint-embedding RNEA (Chignoli 2024, Sec. V)."""

from __future__ import annotations

import casadi as ca

from rbda_ros.cluster_tree.cluster_joint import cluster_joint, stack_cross_force
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix


def inverse_dynamics(
    tree: ClusterTree, q: Matrix, yd: Matrix, ydd: Matrix, wrenches: Matrix | None = None
) -> Matrix:
    """The generalized force tau (ny) on y that gives acceleration ydd.

    ``tau = H(y) ydd + C(y, yd)``: gravity, Coriolis and centrifugal forces and every rotor and
    linkage included; no friction.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        ydd: (ny) independent acceleration [rad/s^2, m/s^2].
        wrenches: (6 x bodies) external force on each body in its frame, angular first
            [N m, N]; None for none.
    """
    q, yd, ydd = (split(x) for split, x in zip(_splits(tree), (q, yd, ydd), strict=True))
    # Entry None is the fixed base, which accelerates upward in place of gravity.
    v: dict[int | None, Matrix] = {None: ca.DM(6, 1)}
    a: dict[int | None, Matrix] = {None: ca.sparsify(-ca.DM([0, 0, 0, *tree.gravity]))}
    f: dict[int | None, Matrix] = {None: ca.DM(6, 1)}
    joints, tau = [], [ca.DM(0, 1)] * len(tree.clusters)

    # Outward pass: motion of every body, and the force it takes.
    for k in tree.outward():
        node = tree.clusters[k]
        l = node.parent
        joint = cluster_joint(node, tree.rows(l), q[k], yd[k])
        J, E, S, G, g, qd = joint.J, joint.E, joint.S, joint.G, joint.g, joint.qd
        v[k] = J @ (E @ v[l] + S @ qd)  # (38)
        c = joint.velocity_product(v[k])  # (19)
        a[k] = J @ (E @ a[l] + S @ (G @ ydd[k] + g) + c)  # (39)
        f[k] = node.inertia @ a[k] + stack_cross_force(v[k], node.inertia @ v[k])  # (63)
        if wrenches is not None:
            f[k] -= ca.vertcat(*(wrenches[:, i - 1] for i in node.numbers))
        joints.append(joint)

    # Inward pass: force across every tree joint, and its part along y.
    for k in tree.inward():
        l, joint = tree.clusters[k].parent, joints[k]
        across = joint.J.T @ f[k]  # (26), (29)
        tau[k] = joint.G.T @ (joint.S.T @ across)  # (23)
        f[l] = f[l] + joint.E.T @ across  # (65)
    return ca.vertcat(*tau)


def _splits(tree: ClusterTree):
    return tree.split_positions, tree.split_independent, tree.split_independent
