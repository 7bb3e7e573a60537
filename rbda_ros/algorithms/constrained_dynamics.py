"""Forward dynamics with contacts, by any of the proximal algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import casadi as ca

from rbda_ros.algorithms.constrained_aba import constrained_aba
from rbda_ros.algorithms.contact_rows import (
    ContactFrame,
    ContactRows,
    Proximal,
    Solution,
    contact_rows,
    largest,
    split,
    world_wrenches,
)
from rbda_ros.algorithms.loop_forces import closed_acceleration, open_state
from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import cluster_joints, velocities
from rbda_ros.algorithms.prox_ltl import prox_ltl, prox_ltls
from rbda_ros.algorithms.prox_pv import prox_pv
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

ROUTES: MappingProxyType[str, Callable[..., Solution]] = MappingProxyType(
    {
        "constrained_aba": constrained_aba,
        "prox_pv": prox_pv,
        "prox_ltl": prox_ltl,
        "prox_ltls": prox_ltls,
    }
)


def constrained_forward_dynamics(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    axes: Matrix,
    desired: Matrix,
    start: Matrix,
    contacts: Sequence[ContactFrame],
    proximal: Proximal,
    route: str,
) -> tuple[Matrix, ...]:
    """The acceleration that forces and contacts give, and the forces of the contacts.

    Args:
        tree: the cluster tree.
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        desired: (6 x c) acceleration of each contact point, linear then angular, in world axes.
        start: (m) forces along the rows to start from, e.g. zero [N, N m].
        contacts: the contacts; m rows in all.
        proximal: weight and number of iterations.
        route: which algorithm, one of ROUTES.

    Returns:
        ydd (ny); force then moment (6c) at each contact, on the robot, in world axes; forces
        along the rows (m), to go on from; the largest that a row misses of its acceleration, and
        the largest change of an entry of ydd in the last iteration (2): both sides of line 6 of
        Algorithm 3.
    """
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    rows = contact_rows(tree, joints, v, contacts, axes, desired)
    begin = split(start, [contact.size for contact in contacts])
    tau = tau if tree.springs is None else tau - spring_force(tree, q)
    solved = ROUTES[route](tree, joints, v, tau, rows, begin, proximal)
    return solved.ydd, *_about_contacts(tree, joints, rows, solved, solved.f)


def constrained_forward_dynamics_by_loop_forces(
    loops: OpenLoops,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    axes: Matrix,
    desired: Matrix,
    start: Matrix,
    contacts: Sequence[ContactFrame],
    proximal: Proximal,
    of_loops: Proximal,
) -> tuple[Matrix, ...]:
    """The same with open loops, by constrainedABA: in O(n + m), loops among the rows.

    Contacts are on the bodies of the open tree; all else is in terms of the closed one. Loops have
    a weight and a number of iterations of their own: they determine their forces.
    """
    state = open_state(loops, q, yd, tau)
    rows = contact_rows(loops.tree, state.joints, state.v, contacts, axes, desired)
    begin = split(start, [contact.size for contact in contacts])
    solved = constrained_aba(
        loops.tree,
        state.joints,
        state.v,
        state.tau,
        rows,
        begin,
        proximal,
        state.rows,
        of_loops=of_loops,
    )
    ydd = closed_acceleration(loops, state, solved.ydd)
    return ydd, *_about_contacts(loops.tree, state.joints, rows, solved, solved.f)


def _about_contacts(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    rows: Sequence[ContactRows],
    solved: Solution,
    f: Sequence[Matrix],
) -> tuple[Matrix, ...]:
    return (
        world_wrenches(tree, joints, rows, f),
        ca.vertcat(ca.DM(0, 1), *f),
        ca.vertcat(largest(solved.missing), largest([solved.change])),
    )
