"""Forward dynamics with contacts, by any of the proximal algorithms; and responses to forces there.

Beside them: the response of a robot to forces at its contacts, which solvers of contact problems
begin with (the mass matrix is factored along its branches, as in `prox_ltl`), and the least-squares
motion in numbers, for contacts that contradict each other or are nearly singular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np

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
from rbda_ros.algorithms.crba import branch_factor, responses, solve_factored
from rbda_ros.algorithms.loop_forces import closed_acceleration, open_state
from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import cluster_joints, velocities
from rbda_ros.algorithms.prox_ltl import jacobian_of, prox_ltl, prox_ltls
from rbda_ros.algorithms.prox_pv import prox_pv
from rbda_ros.algorithms.rnea import at_constant_velocity
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.open_loops import OpenLoops
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Array, Matrix

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
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        desired: (6 x c) acceleration of each contact point, linear then angular, in world axes.
        start: (m) forces along the rows to start from, e.g. zero [N, N m].
        contacts: the contacts; m rows in all.
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
    return solved.ydd, *_about_contacts(tree, joints, rows, solved)


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
    return ydd, *_about_contacts(loops.tree, state.joints, rows, solved)


def _about_contacts(
    tree: ClusterTree, joints: list[ClusterJoint], rows: Sequence[ContactRows], solved: Solution
) -> tuple[Matrix, ...]:
    return (
        world_wrenches(tree, joints, rows, solved.f),
        ca.vertcat(ca.DM(0, 1), *solved.f),
        ca.vertcat(largest(solved.missing), largest([solved.change])),
    )


def contact_response(
    tree: ClusterTree,
    q: Matrix,
    yd: Matrix,
    tau: Matrix,
    axes: Matrix,
    contacts: Sequence[ContactFrame],
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """The free acceleration, and accelerations per force along the axes of contacts.

    Args:
        q: (nq) spanning position, on the constraint manifold [rad, m].
        yd: (ny) independent velocity [rad/s, m/s].
        tau: (ny) generalized force [N m, N].
        axes: (3 x 3c) axes of each contact, as columns in world axes.
        contacts: the contacts; m rows in all.

    Returns:
        ydd (ny) without contacts; J (m x ny); ``H^-1 J'`` (ny x m); ``J H^-1 J'`` (m x m).
    """
    joints = cluster_joints(tree, q, yd)
    v = velocities(tree, joints)
    _, bias = at_constant_velocity(tree, joints, v)
    L = branch_factor(tree, joints)
    ydd = solve_factored(L, tau - bias)
    desired = ca.DM(6, len(contacts))
    rows = contact_rows(tree, joints, v, contacts, axes, desired, along_axes=True)
    J = jacobian_of(tree, joints, rows)
    return ydd, J, *responses(L, J)


RANK_TOLERANCE = 1e-11
"""Singular values below this, relative to the largest, count as zero."""
NOISE = 1e-14
"""Entries of J that are no more than rounding [1, 1/m]: of a link that cannot move."""
RESOLVED = (1e-13, 3e-8)
"""Relative singular values between these leave fewer than seven digits of the motion, whether they
count as zero or not: two ways to compute it were seen to differ by 1e-15 over the smallest one."""


@dataclass(frozen=True, eq=False)
class LeastSquaresMotion:
    """A motion under constraints.

    Attributes:
        ydd: (ny) independent acceleration.
        f: (m) forces along the rows; of all that give this motion, those of least norm.
        missing: (m) ``b - J ydd``; not zero where the rows contradict each other.
        rank: number of independent rows.
        resolved: whether the motion is known to seven digits: no singular value is in doubt.
    """

    ydd: Array
    f: Array
    missing: Array
    rank: int
    resolved: bool


def least_squares_motion(
    L: Array, free: Array, J: Array, b: Array, weights: Array | None = None
) -> LeastSquaresMotion:
    """Of all ydd that minimise ``|J ydd - b|_W``, the one that minimises ``|ydd - free|_H``.

    With ``x = L ydd`` and ``A = W^1/2 J L^-1`` it is ``x = L free + A^+ W^1/2 (b - J free)``, and
    the forces are ``f = W^1/2 (A A')^+ W^1/2 (b - J free)`` (Sathya 2024, Eqs. 2, 8 and Remark 2).

    Args:
        L: (ny, ny) factor of the mass matrix, ``H = L' L``.
        free: (ny) acceleration without constraints.
        J: (m, ny) rows.
        b: (m) accelerations wanted along them.
        weights: (m) how much each row counts where they contradict each other; None for one.
    """
    root = np.sqrt(np.ones(len(J)) if weights is None else weights)
    A = np.linalg.solve(L.T, (root[:, None] * J).T).T
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    largest, noise = s.max(initial=0.0), NOISE * root.max(initial=0.0) / np.abs(np.diag(L)).min()
    s[s < noise] = 0.0
    relative = s / (largest or 1.0)
    rank = int(np.sum(relative > RANK_TOLERANCE))
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    along, ydd = np.zeros(rank), free
    for _ in range(2):  # the second time for what rounding left of a motion much smaller than free
        step = (U.T @ (root * (b - J @ ydd))) / s
        along, ydd = along + step, ydd + np.linalg.solve(L, Vt.T @ step)
    f = root * (U @ (along / s))
    low, high = RESOLVED
    resolved = not np.any((relative > low) & (relative < high))
    return LeastSquaresMotion(ydd, f, b - J @ ydd, rank, resolved)
