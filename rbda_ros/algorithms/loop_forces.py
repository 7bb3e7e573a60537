"""Forward dynamics with some loops embedded and others closed by their forces.

Constraint embedding is best for loops of few bodies. A loop of many makes one large cluster; it is
cheaper to leave it open and to find the forces that hold it, as constrainedABA does for contacts.
Both in one pass is what Chignoli 2024, Sec. VI-B, asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from rbda_ros.algorithms.constrained_aba import constrained_aba
from rbda_ros.algorithms.contact_rows import JointRows, Proximal, largest
from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import Clustered, cluster_joints, velocities
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.spatial import Matrix


@dataclass(frozen=True, eq=False)
class OpenState:
    """A state of the closed tree, in terms of the open one.

    Attributes:
        joints: cluster joints.
        v: velocities.
        tau: (ny) generalized force.
        rows: the open loops.
    """

    joints: list[ClusterJoint]
    v: Clustered
    tau: Matrix
    rows: JointRows


def forward_dynamics_by_loop_forces(
    loops: OpenLoops,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    wrenches: Matrix | None = None,
    *,
    proximal: Proximal,
) -> tuple[Matrix, Matrix]:
    """The acceleration ydd (ny) that the generalized force tau on y gives, as `aba` has it.

    Args:
        loops: the robot, with open loops. All other arguments are in terms of its closed tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        wrenches: (6 x bodies) external force on each body in its frame, angular first
            [N m, N]; None for none.
        proximal: weight and number of iterations.

    Returns:
        ydd, and the largest acceleration that a row of an open loop misses (1).
    """
    state = open_state(loops, q, yd, tau)
    solved = constrained_aba(
        loops.tree,
        state.joints,
        state.v,
        state.tau,
        (),
        (),
        proximal,
        state.rows,
        None if wrenches is None else wrenches[:, [number - 1 for number in loops.bodies]],
    )
    return closed_acceleration(loops, state, solved.ydd), largest(solved.missing)


def open_state(loops: OpenLoops, q: Matrix, yd: Matrix, tau: Matrix) -> OpenState:
    """Evaluate the open tree at a state (q, yd) and force (tau) of the closed one."""
    closed, tree = loops.closed, loops.tree
    parts = zip(
        closed.clusters, closed.split_positions(q), closed.split_independent(yd), strict=True
    )
    qd = ca.vertcat(*(node.velocity(q_k, yd_k) for node, q_k, yd_k in parts))
    joints = cluster_joints(
        tree, loops.opened_position(q), loops.opened_velocity(qd)[list(tree.independent)]
    )
    tau = tau - spring_force(closed, q)
    # Forces on y of the closed tree are forces on the same joints of the open one.
    place = ca.Sparsity.triplet(closed.nv, closed.ny, closed.independent, range(closed.ny))
    force = loops.opened_velocity(ca.DM(place, 1) @ tau)
    by_cluster = tree.split_velocities(force)
    on_y = (joint.G.T @ part for joint, part in zip(joints, by_cluster, strict=True))
    rows = _loop_rows(loops, joints, q, qd)
    return OpenState(joints, velocities(tree, joints), ca.vertcat(*on_y), rows)


def closed_acceleration(loops: OpenLoops, state: OpenState, ydd: Matrix) -> Matrix:
    """ydd (ny) of the closed tree, from that of the open one."""
    parts = zip(state.joints, loops.tree.split_independent(ydd), strict=True)
    qdd = ca.vertcat(*(joint.G @ ydd_k + joint.g for joint, ydd_k in parts))
    return loops.closed_velocity(qdd)[list(loops.closed.independent)]


def _loop_rows(loops: OpenLoops, joints: list[ClusterJoint], q: Matrix, qd: Matrix) -> JointRows:
    """Rows of the open loops on the independent coordinates: ``K G ydd = k - K g``."""
    K, k = loops.rows(q, qd)
    on_clusters = {}
    for c, (place, joint) in enumerate(zip(loops.tree.velocity_ranges, joints, strict=True)):
        own = K[:, place.start : place.stop]
        if own.nnz():
            on_clusters[c] = own @ joint.G
            k = k - own @ joint.g
    return JointRows(on_clusters, k)
