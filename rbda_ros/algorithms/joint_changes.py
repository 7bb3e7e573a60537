"""Motion that a change of a tree joint gives its body, and all bodies that this carries.

In the velocities and accelerations of `algorithms.motion`, which are relative to the origin of each
body. What changes is told in the body's own axes, and those of a joint that turns turn along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.motion import Clustered, turning, vector_before
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, Transform, cross_force

cross = ca.cross


@dataclass(frozen=True, eq=False)
class JointChange:
    """A tree joint, and motions on top (9 x nv, see `composites`) that its coordinates give.

    Attributes:
        X: from the body before to the body on the joint.
        U: (3) velocity of the body's origin relative to that of the body before, in the axes of
            that one, twice.
        S: (6 x nv) axes.
        rates: where its velocities are among those of its cluster.
        by_position, by_velocity, by_acceleration: (9 x nv) of unit changes.
        S_by_position: (6 x nv) change of S, for each coordinate; none where S is constant.
    """

    X: Transform
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
        tree: the cluster tree.
        joints: its cluster joints.
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
        X=X,
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
