"""One stage of an integrator: the acceleration at a state, and the closed position it leads to.

Integrators are sequences of such stages. One program has both parts, so that what they share, such
as the velocity map G, is computed once.

With contacts, a stage has the motion without them, and how bodies answer to forces. Where and how
bodies touch is found afterwards, from their poses and velocities: any number of points of a body,
and any ground, take the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import casadi as ca

from rbda_ros.algorithms.aba import forward_dynamics
from rbda_ros.algorithms.crba import branch_factor, responses, solve_factored
from rbda_ros.algorithms.kinematics import on_cluster, world_poses
from rbda_ros.algorithms.loop_motion import spring_force
from rbda_ros.algorithms.motion import (
    accelerations,
    armature_forces,
    cluster_joints,
    external_forces,
    gravity,
    velocities,
)
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.cluster_tree.closing.newton import moved_along
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint, ClusterNode
from rbda_ros.cluster_tree.joints import quaternion_rate, rotation_from_quaternion
from rbda_ros.cluster_tree.spanning_tree import Body
from rbda_ros.cluster_tree.straight_line import least_squares
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix

NEWTON_STEPS = 2
"""After the step along the rates: of a way of 0.03 that leaves 1e-3, these 1e-6 and 1e-12 of it."""


@dataclass(frozen=True)
class Stop:
    """A compliant stop of one joint.

    Attributes:
        position, velocity: the joint's entries of q and of qd.
        lower, upper: where the stops are [rad, m].
        stiffness: [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
    """

    position: int
    velocity: int
    lower: float
    upper: float
    stiffness: float
    damping: float


@dataclass(frozen=True)
class StageChoice:
    """Forces that act beside gravity and springs.

    Attributes:
        nq: entries of q.
        friction: whether the joints' friction and damping act.
        stops: of the joints.
        motors: of every actuated joint the largest effort, the speed up to which it is available
            and the speed at which none is left; infinite where there is no limit.
        touching: numbers of the bodies that may touch the ground.
    """

    nq: int
    friction: bool
    stops: tuple[Stop, ...]
    motors: tuple[tuple[float, float, float], ...]
    touching: tuple[int, ...] = ()


def simulation_stage(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    """Acceleration ydd (ny) at (q, yd); the position (nq) reached from an origin; health (4).

    Velocity-dependent forces act as at the end of a step of length h:
    ``(H + h G' c G) ydd = tau - C - G' c G yd``, with ``c = damping + friction / sqrt(qd^2 + v^2)``
    at the velocity ``slip``; h = 0 is explicit.

    Args:
        given: ``origin`` (nq) the closed position that ``shift`` (ny) leads from; ``q`` (nq) the
            closed position of this stage; ``yd`` (ny); ``slip`` (ny) velocity for friction;
            ``efforts`` (na); ``shift`` (ny), and ``delta`` (ny), the way from q to the same place;
            ``stepping`` (3): a factor of ydd that is added to both, h [s], v [rad/s, m/s];
            ``wrenches`` where there are any; a `StageChoice`.

    Returns:
        ydd; the next position; the largest |phi| there, how well y determines the loops at q, the
        power of motors, friction and stops [W], and how far q is from positions at which no choice
        of y determines the loops.
    """
    origin, q, yd, slip, efforts, shift, delta, stepping, *wrenches, choice = given
    joints = cluster_joints(tree, q, yd)
    tau, drag, power = joint_forces(tree, joints, choice, q, slip, efforts, stepping)
    ydd = min(
        forward_dynamics(tree, q, yd, tau, *wrenches, drag=drag),
        by_factor(tree, q, joints, tau, drag, wrenches)[1],
        key=operations,
    )
    shift, delta = shift + stepping[0] * ydd, delta + stepping[0] * ydd
    position, residual, conditioning = moved_on(tree, joints, origin, q, shift, delta)
    return ydd, position, ca.vertcat(residual, conditioning, power, vanishing(tree, q))


def operations(expression: Matrix) -> int:
    """How many operations an expression takes."""
    found = ca.Function("f", ca.symvar(expression), [expression])
    return int(found.n_instructions())


def by_factor(
    tree: ClusterTree,
    q: Matrix,
    joints: list[ClusterJoint],
    tau: Matrix,
    drag: Matrix,
    wrenches: Sequence[Matrix],
) -> tuple[Matrix, Matrix]:
    """The factor L of ``H + G' drag G = L' L`` (ny x ny), and ydd (ny).

    Robots whose loops have several freedoms take fewer operations this way than by articulated
    inertias.

    Args:
        q: (nq) position.
        joints: its cluster joints, with their velocities.
        tau: (ny) force on y.
        drag: (nv) rate of the forces on every joint by its acceleration.
        wrenches: on bodies, or none.
    """
    parts = zip(joints, tree.split_velocities(drag), strict=True)
    joints = [replace(joint, drag=drag_k) for joint, drag_k in parts]
    v, still = velocities(tree, joints), ca.DM(tree.ny, 1)
    f = body_forces(tree, v, accelerations(tree, joints, v, still, gravity(tree)))
    for k in tree.outward():
        f[k] = f[k] - external_forces(tree, k, wrenches[0] if wrenches else None)
    tau = tau - along_y(tree, joints, f) - armature_forces(tree, joints, still)
    tau = tau if tree.springs is None else tau - spring_force(tree, q)
    L = branch_factor(tree, joints)
    return L, solve_factored(L, tau)


def simulation_move(tree: ClusterTree, q: Matrix, shift: Matrix) -> tuple[Matrix, Matrix]:
    """The closed position (nq) with y moved by a shift (ny) from q; health (2) as of a stage."""
    joints = cluster_joints(tree, q)
    position, residual, conditioning = moved_on(tree, joints, q, q, shift, shift)
    return position, ca.vertcat(residual, conditioning)


def moved_on(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    origin: Matrix,
    q: Matrix,
    shift: Matrix,
    delta: Matrix,
) -> tuple[Matrix, Matrix, Matrix]:
    """The position (nq), the largest |phi| there, and how well y determines the loops at q."""
    positions, residuals, conditionings = [ca.DM(0, 1)], [ca.DM(0.0)], [ca.DM(1.0)]
    for node, joint, origin_k, q_k, shift_k, delta_k in zip(
        tree.clusters,
        joints,
        tree.split_positions(origin),
        tree.split_positions(q),
        tree.split_independent(shift),
        tree.split_independent(delta),
        strict=True,
    ):
        if node.loop is None:
            positions.append(_integrated(node.bodies, origin_k, shift_k))
            continue
        closed = _closed(node, origin_k, q_k, shift_k, joint.G @ delta_k)
        positions.append(closed)
        residuals.extend(ca.vertsplit(ca.fabs(node.loop.phi(closed))))
        if not node.loop.constant:
            conditionings.append(node.loop.conditioning(q_k, node.independent, node.home))
    return ca.vertcat(*positions), reduce(ca.fmax, residuals), reduce(ca.fmin, conditionings)


def vanishing(tree: ClusterTree, q: Matrix) -> Matrix:
    """The smallest of `Loop.vanishing` of all clusters with loops."""
    parts = zip(tree.clusters, tree.split_positions(q), strict=True)
    return reduce(
        ca.fmin,
        (
            node.loop.vanishing(q_k, node.home)
            for node, q_k in parts
            if node.loop is not None and not node.loop.constant
        ),
        ca.DM(1.0),
    )


def joint_forces(
    tree: ClusterTree,
    joints: list[ClusterJoint],
    choice: StageChoice,
    q: Matrix,
    slip: Matrix,
    efforts: Matrix,
    stepping: Matrix,
) -> tuple[Matrix, Matrix, Matrix]:
    """The force (ny) of joints and motors on y; drag (nv), and the power of these forces [W].

    Drag is the rate of the force on every joint by its acceleration.

    Args:
        joints: its cluster joints, with their velocities.
        choice: of forces.
        q: (nq) position.
        slip: (ny) velocity at which friction is taken.
        efforts: (na) of motors.
        stepping: (3) of which the second is h [s], the third v [rad/s, m/s].
    """
    qd = ca.vertcat(ca.DM(0, 1), *(joint.qd for joint in joints))
    parts = zip(joints, tree.split_independent(slip), strict=True)
    slip = ca.vertcat(ca.DM(0, 1), *(joint.G @ slip_k for joint, slip_k in parts))
    h, v = stepping[1], stepping[2]
    force, drag = ca.SX(tree.nv, 1), ca.SX(tree.nv, 1)
    for a, j in enumerate(tree.actuated):
        force[j] += _available(efforts[a], qd[j], *choice.motors[a])
    described = [b.joint for node in tree.clusters for b in node.bodies for _ in range(b.model.nv)]
    for j, joint in enumerate(described):
        if choice.friction and (joint.damping or joint.friction):
            c = joint.damping + joint.friction / ca.sqrt(slip[j] * slip[j] + v * v)
            force[j] -= c * qd[j]
            drag[j] += h * c
    for stop in choice.stops:
        at, j = q[stop.position], stop.velocity
        beyond = ca.fmax(at - stop.upper, 0.0) - ca.fmax(stop.lower - at, 0.0)
        touched = (stop.upper < at) + (at < stop.lower)
        c = touched * (stop.damping + h * stop.stiffness)
        force[j] -= stop.stiffness * beyond + c * qd[j]
        drag[j] += h * c
    in_clusters = zip(joints, tree.split_velocities(force), strict=True)
    tau = ca.vertcat(ca.DM(0, 1), *(joint.G.T @ force_k for joint, force_k in in_clusters))
    return tau, drag, ca.dot(force, qd)


def _available(effort: Matrix, speed: Matrix, limit: float, corner: float, free: float) -> Matrix:
    """The effort that a motor gives: at most its limit, which falls to zero at its free speed."""
    if limit == float("inf"):
        return effort
    if free == float("inf"):
        return ca.fmin(ca.fmax(effort, -limit), limit)
    most = limit * ca.fmax(ca.fmin((free - speed) / (free - corner), 1.0), 0.0)
    least = -limit * ca.fmax(ca.fmin((free + speed) / (free - corner), 1.0), 0.0)
    return ca.fmin(ca.fmax(effort, least), most)


def _closed(node: ClusterNode, origin: Matrix, q: Matrix, shift: Matrix, along: Matrix) -> Matrix:
    """The position (nq) of a cluster with y moved by a shift, its loops closed by Newton steps.

    Args:
        node: the cluster.
        origin: (nq) where the shift begins.
        q: (nq) a closed position nearby.
        shift: (ny) way of y from the origin.
        along: (nv) way of all coordinates from q, by their rates there.
    """
    assert node.loop is not None
    moved, independent = [], list(node.independent)
    whole = ca.SX(node.nv, 1)
    whole[independent] = shift
    for body, in_q, in_qd in zip(
        node.bodies, node.position_ranges, node.velocity_ranges, strict=True
    ):
        own = all(j in independent for j in in_qd)
        start, way = (origin, whole) if own else (q, along)
        place, step = slice(in_q.start, in_q.stop), slice(in_qd.start, in_qd.stop)
        moved.append(_integrated([body], start[place], way[step]))
    closed = ca.SX(ca.vertcat(*moved))
    dependent = [j for j in range(node.nv) if j not in independent]
    if not dependent:
        return closed
    K = node.loop.K(closed)[:, dependent]  # factored once, for all steps
    for _ in range(1 if node.loop.constant else NEWTON_STEPS):
        step = least_squares(K, -node.loop.phi(closed))
        closed = moved_along(node.loop, closed, dependent, step)
    return closed


def _integrated(bodies: Sequence[Body], q: Matrix, step: Matrix) -> Matrix:
    """Positions (nq) of joints after a constant velocity (nv) in their own axes for unit time.

    Quaternions turn by the exponential map; a floating base moves along its axes at the start.
    """
    parts, nq, nv = [], 0, 0
    for body in bodies:
        model = body.model
        q_i, step_i = q[nq : nq + model.nq], step[nv : nv + model.nv]
        nq, nv = nq + model.nq, nv + model.nv
        if model.nq == model.nv:
            parts.append(q_i + step_i)
            continue
        quaternion, w = q_i[-4:], step_i[-3:]
        if model.nv == 6:
            parts.append(q_i[:3] + rotation_from_quaternion(quaternion) @ step_i[:3])
        x = ca.sumsqr(w) / 4.0  # square of half the angle; series, exact to 1e-16 up to 0.5 rad
        cosine = 1.0 - x / 2.0 * (1.0 - x / 12.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0)))
        sine = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0)))
        turned = cosine * quaternion + sine * quaternion_rate(quaternion, w)
        parts.append(turned / ca.sqrt(ca.sumsqr(turned)))
    return ca.vertcat(ca.DM(0, 1), *parts)


def with_independent(tree: ClusterTree, independent: Sequence[int]) -> ClusterTree:
    """The same tree with other independent coordinates, assembled where it was."""
    nodes = [
        replace(node, independent=tuple(j - place.start for j in independent if j in place))
        for node, place in zip(tree.clusters, tree.velocity_ranges, strict=True)
    ]
    return replace(tree, clusters=tuple(nodes))


def contact_stage(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    """Acceleration ydd (ny) without contacts, and what b touching bodies would make of forces.

    Wrenches and velocities of bodies are linear then angular, at their origins in world axes.

    Args:
        given: ``q`` (nq), ``yd`` (ny), ``slip`` (ny), ``efforts`` (na) as for `simulation_stage`;
            ``shift`` (ny) what velocities gain beside ``h ydd``; ``stepping`` (3); ``wrenches``
            where there are any; a `StageChoice`.

    Returns:
        ydd; poses (b x 12) of the bodies, rotations row by row and origins; velocities (6b) now,
        and those (6b) after the step without contacts; ``J H^-1 J'`` (6b x 6b);
        ``H^-1 J'`` (ny x 6b); the power of motors, friction and stops [W].
    """
    q, yd, slip, efforts, shift, stepping, *wrenches, choice = given
    joints = cluster_joints(tree, q, yd)
    tau, drag, power = joint_forces(tree, joints, choice, q, slip, efforts, stepping)
    L, ydd = by_factor(tree, q, joints, tau, drag, wrenches)
    R, p = world_poses(tree, joints)
    poses, rows = [], []
    for body in choice.touching:
        poses.append(ca.horzcat(ca.vec(R[body].T).T, p[body].T))
        turned = R[body].T
        forces = ca.vertcat(ca.DM(3, 3), turned), ca.vertcat(turned, ca.DM(3, 3))
        k, on_bodies = on_cluster(tree, body, ca.horzcat(*forces))
        rows.append(along_y(tree, joints, {k: on_bodies}, m=6).T)
    J = ca.vertcat(*rows)
    X, A = responses(L, J)
    after = J @ (yd + shift + stepping[1] * ydd)
    return ydd, ca.vertcat(*poses), J @ yd, after, A, X, power
