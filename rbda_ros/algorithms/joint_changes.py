"""Motion that a change of a tree joint gives its body, and all bodies that this carries.

In the velocities and accelerations of `algorithms.motion`, which are relative to the origin of each
body. What changes is told in the body's own axes, and those of a joint that turns turn along.

Loops change the motion of joints, too, when the cluster's independent coordinates change.

``qd = G yd`` and ``qdd = G ydd + g`` follow from ``K qd = 0`` and ``K qdd = k`` (2), (3). With y_j
the position moves along G_j, column j of G; what this changes of G, qd and qdd solves the same
equations for another right-hand side:

    K dG = -dK G,        K d(qdd) = dk - dK qdd,        dy = 0                              (a)

so that K is never differentiated through its factorization. As y moves with yd, ``g = dG/dt yd``
is the sum of what each coordinate changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.motion import Clustered, turning, vector_before
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode
from rbda_ros.cluster_tree.loops import Loop
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, cross_force

cross = ca.cross


@dataclass(frozen=True, eq=False)
class JointChange:
    """A tree joint, and motions on top (9 x nv, see `composites`) that its coordinates give.

    Attributes:
        U: (3) velocity of the body's origin relative to that of the body before, in the axes of
            that one, twice.
        S: (6 x nv) axes.
        rates: where its velocities are among those of its cluster.
        by_position, by_velocity, by_acceleration: (9 x nv) of unit changes.
        S_by_position: (6 x nv) change of S, for each coordinate; none where S is constant.
    """

    U: Matrix
    S: Matrix
    rates: slice
    by_position: Matrix
    by_velocity: Matrix
    by_acceleration: Matrix
    S_by_position: tuple[Matrix, ...]

    def turned_forces(self, f: Matrix) -> Matrix:
        """(6 x nv) change of a force f (6) on the body that turns along, seen from before."""
        return ca.horzcat(*(cross_force(axis, f) for axis in ca.horzsplit(self.S)))

    def turned_axes(self, f: Matrix) -> Matrix:
        """(nv x nv) change of the parts of a force f (6) along S, for each coordinate."""
        nv = self.S.columns()
        changed = [S.T @ f for S in self.S_by_position]
        return ca.horzcat(*changed) if changed else ca.DM(nv, nv)


def joint_changes(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    motion: tuple[Clustered, Clustered],
    q: Matrix,
    qdd: list[Matrix],
) -> list[list[JointChange]]:
    """For each cluster those of its tree joints.

    Args:
        motion: velocities and accelerations of its bodies.
        q: (nq) spanning position.
        qdd: (nv) spanning acceleration of each cluster.
    """
    v, a = motion
    found = []
    for k, (node, q_k) in enumerate(zip(tree.clusters, tree.split_positions(q), strict=True)):
        of_cluster = []
        for i in range(len(node.bodies)):
            before = [vector_before(node, i, ca.vertsplit(x[k], 6), x[node.parent]) for x in (v, a)]
            of_cluster.append(_joint(node, joints[k], i, before, (q_k, joints[k].qd, qdd[k])))
        found.append(of_cluster)
    return found


def _joint(
    node: ClusterNode,
    joint: ClusterJoint,
    i: int,
    before: Sequence[Matrix],
    state: tuple[Matrix, Matrix, Matrix],
) -> JointChange:
    """Tree joint i of a cluster at position, velocity and acceleration of the cluster's joints.

    Args:
        node, joint: the cluster.
        i: its joint.
        before: (6) velocity and acceleration of the body before.
        state: (nq), (nv) and (nv).
    """
    body, X = node.bodies[i], joint.J.X_up[i]
    (v, a), (R, p) = before, X.pose()
    across = joint.S_qd[6 * i : 6 * i + 6]
    turn, slide = across[:3], across[3:]
    places, rates = _slice(node.position_ranges[i]), _slice(node.velocity_ranges[i])
    q, qd, qdd = state[0][places], state[1][rates], state[2][rates]
    _, S, _ = body.model.jcalc(q, qd, body.joint.pitch)
    own = _OwnChanges(body, q, qd, qdd)

    # The motion of the body before, in the axes of this one, at this origin.
    in_axes = X.rotation @ ca.horzcat(
        ca.vertcat(v[:3], ca.DM(3, 1)),
        ca.vertcat(a[:3], a[3:] + turning(v[:3], a[:3]) @ p),
    )
    w, alpha, a_origin = in_axes[:3, 0], in_axes[:3, 1], in_axes[3:, 1]
    Omega = turning(w, alpha)

    by_position, by_velocity = [], []
    for c, axis in enumerate(ca.horzsplit(S)):
        s, d = axis[:3], axis[3:]
        dw, moved = cross(w, s), own.slide_by_position[c]
        da = cross(a_origin, s) + Omega @ d + 2 * cross(dw, slide)
        da += own.acceleration_by_position[c] + 2 * cross(w, moved) + cross(turn, moved)
        by_position.append(ca.vertcat(dw, cross(alpha, s) + cross(w, dw), da))
        dalpha = 2 * dw + cross(turn, s)
        da = 2 * cross(w, d) + cross(turn, d) + cross(s, slide) + own.acceleration_by_velocity[c]
        by_velocity.append(ca.vertcat(s, dalpha, da))
    return JointChange(
        U=cross(2 * v[:3], p) + 2 * (R @ slide),
        S=S,
        rates=rates,
        by_position=ca.horzcat(*by_position),
        by_velocity=ca.horzcat(*by_velocity),
        by_acceleration=ca.vertcat(ca.DM(3, S.columns()), S),
        S_by_position=own.S_by_position,
    )


class _OwnChanges:
    """Changes of a joint's own S and ring-S; only those of a planar joint change.

    Args:
        body: on the joint.
        q, qd, qdd: of the joint.
    """

    def __init__(self, body: Body, q: Matrix, qd: Matrix, qdd: Matrix) -> None:
        model, pitch = body.model, body.joint.pitch
        nothing = [ca.DM(3, 1)] * model.nv
        self.slide_by_position = self.acceleration_by_position = nothing
        self.acceleration_by_velocity = nothing
        self.S_by_position: tuple[Matrix, ...] = ()
        at, rate = ca.SX.sym("q", model.nq), ca.SX.sym("qd", model.nv)
        _, S, ring_S = model.jcalc(at, rate, pitch)
        if not ca.symvar(ca.SX(S)):
            return
        units = ca.horzsplit(ca.DM.eye(model.nv))
        of_S, of_ring = [], []
        for unit in units:
            direction = model.rate(at, unit)
            of_S.append(ca.reshape(ca.jtimes(ca.vec(S), at, direction), 6, model.nv))
            bias = (ring_S @ rate)[3:]
            of_ring.append(ca.horzcat(ca.jtimes(bias, at, direction), ca.jtimes(bias, rate, unit)))
        changes = ca.Function("changes", [at, rate], [*of_S, *of_ring]).call([q, qd])
        self.S_by_position = tuple(changes[: model.nv])
        ring = changes[model.nv :]
        self.slide_by_position = [dS[3:, :] @ qd for dS in self.S_by_position]
        self.acceleration_by_position = [
            dS[3:, :] @ qdd + bias[:, 0] for dS, bias in zip(self.S_by_position, ring, strict=True)
        ]
        self.acceleration_by_velocity = [bias[:, 1] for bias in ring]


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)


@dataclass(frozen=True, eq=False)
class LoopChange:
    """Changes of a cluster's spanning motion by unit changes of y and yd.

    Attributes:
        G: (nv x ny) independent to spanning velocities.
        g: (nv) spanning acceleration at ydd = 0.
        G_by_y: dG (nv x ny) for each coordinate; empty where G is constant.
        qd_by_y, qdd_by_y, qdd_by_yd: (nv x ny).
    """

    G: Matrix
    g: Matrix
    G_by_y: tuple[Matrix, ...]
    qd_by_y: Matrix
    qdd_by_y: Matrix
    qdd_by_yd: Matrix


def loop_change(node: ClusterNode, q: Matrix, yd: Matrix, ydd: Matrix) -> LoopChange:
    """Of one cluster, at its spanning position q (nq), yd and ydd (ny)."""
    G, nothing = node.velocity_map(q), ca.DM(node.nv, node.ny)
    if node.loop is None or node.loop.constant:
        return LoopChange(G, ca.DM(node.nv, 1), (), nothing, nothing, nothing)
    curvature, residual_change = _derivatives(node.loop)
    directions = ca.horzsplit(G)

    dG: dict[tuple[int, int], Matrix] = {}
    symmetric = all(body.model.nq == body.model.nv for body in node.bodies)
    for j, along in enumerate(directions):
        for i, column in enumerate(directions):
            if symmetric and i < j:  # second derivatives of phi commute
                dG[i, j] = dG[j, i]
            else:
                dG[i, j] = node.loop.dependent(q, -curvature(q, column, along), node.independent)
    columns = range(node.ny)
    G_by_y = tuple(ca.horzcat(*(dG[i, j] for i in columns)) for j in columns)
    qd_by_y = ca.horzcat(*(changed @ yd for changed in G_by_y))
    qd, g = G @ yd, qd_by_y @ yd
    qdd = G @ ydd + g
    qdd_by_y = ca.horzcat(
        *(
            node.loop.dependent(
                q, residual_change(q, qd, qdd, directions[j], qd_by_y[:, j]), node.independent
            )
            for j in columns
        )
    )
    qdd_by_yd = qd_by_y + sum((G_by_y[j] * yd[j] for j in columns), ca.DM(node.nv, node.ny))
    return LoopChange(G, g, G_by_y, qd_by_y, qdd_by_y, qdd_by_yd)


def _derivatives(loop: Loop) -> tuple[ca.Function, ca.Function]:
    """The right-hand sides of (a), by algorithmic differentiation of K and k alone.

    Returns:
        ``q, u, along -> dK u``; and ``q, qd, qdd, along, dqd -> dk - dK qdd``.
    """
    q, qd = loop.k.sx_in()
    qdd, along, dqd = (ca.SX.sym(name, loop.nv) for name in ("qdd", "along", "dqd"))
    direction = loop.position_rate(q, along)
    K, k = loop.K(q), loop.k(q, qd)
    curvature = ca.jtimes(K @ qd, q, direction)
    change = ca.jtimes(k - K @ qdd, q, direction) + ca.jtimes(k, qd, dqd)
    return (
        ca.Function("curvature", [q, qd, along], [curvature]),
        ca.Function("residual_change", [q, qd, qdd, along, dqd], [change]),
    )
