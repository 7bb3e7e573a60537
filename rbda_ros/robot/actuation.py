"""Motors seen from the joints of a serial model: their map, inertia and limits, in one pose."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.robot.operations import Position
from rbda_ros.spatial import Array

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

MAX_MOTORS = 10
"""Motors of one cluster up to which the corners of its limits are listed: there are 2^motors."""
DRIVES = 1e-12
"""Share of the largest entry of W below which a motor does not move with a joint."""

Groups = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
"""Per cluster, indices of joints and of the motors that drive them."""


@dataclass(frozen=True, eq=False)
class Actuation:
    """Transmission between the motors of a robot and joints x, at one position or at N.

    ``motor velocity = W xd`` and ``tau_x = W' motor effort`` (Chignoli 2024, footnotes 3 and 5).
    The sets of torques and speeds are symmetric about zero, so that one number bounds them.

    Attributes:
        joint_names: the joints x, in the order of columns and vectors.
        motor_names: the actuated joints, in the order of the rows of W.
        groups: per cluster, indices of the joints and of the motors that drive them.
        W: (..., motors, joints) [-, rad/m, m/rad].
        motor_inertia: (motors,) inertia of the body on each motor's joint, about its axis [kg m^2],
            or its mass on a slider [kg]; zero if that joint is itself one of x.
        reflected_inertia: (..., joints, joints) ``W' diag(motor_inertia) W``: to be added to the
            mass matrix of the serial model, as its armature.
        motor_effort_limit, motor_velocity_limit: (motors,) of the description; infinite for none.
        torque_limit: (..., joints) largest torque on each joint, for any torques on the others.
        torque_limit_alone: (..., joints) the same with no torque on the other joints.
        velocity_limit: (..., joints) most speed of each joint, whatever the others then do.
        velocity_limit_alone: (..., joints) the same with the other joints at rest.
        condition: (...) largest condition number of a cluster's part of W; infinite where motors
            do not drive every joint.
    """

    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    groups: Groups
    W: Array
    motor_inertia: Array
    reflected_inertia: Array
    motor_effort_limit: Array
    motor_velocity_limit: Array
    torque_limit: Array
    torque_limit_alone: Array
    velocity_limit: Array
    velocity_limit_alone: Array
    condition: Array

    def torque_vertices(self, group: int) -> Array:
        """Corners (k, joints of the group) of the torques that its motors can give [N m, N].

        Of one position. Empty where a motor has no limit, or there are more than `MAX_MOTORS`.
        """
        joints, motors = self.groups[group]
        limit = self.motor_effort_limit[list(motors)]
        if self.W.ndim != 2 or not motors or len(motors) > MAX_MOTORS or np.isinf(limit).any():
            return np.zeros((0, len(joints)))
        points = _corners(limit) @ self.W[np.ix_(motors, joints)]
        return _hull(points)

    def velocity_vertices(self, group: int) -> Array:
        """Corners (k, joints of the group) of the velocities that its motors allow [rad/s, m/s].

        Of one position. Empty where they are not bounded, or there are more than `MAX_MOTORS`.
        """
        joints, motors = self.groups[group]
        limit = self.motor_velocity_limit[list(motors)]
        if self.W.ndim != 2 or len(motors) > MAX_MOTORS or np.isinf(limit).any():
            return np.zeros((0, len(joints)))
        W = self.W[np.ix_(motors, joints)]
        if np.linalg.matrix_rank(W) < len(joints):
            return np.zeros((0, len(joints)))
        points = []
        for rows in itertools.combinations(range(len(motors)), len(joints)):
            square = W[list(rows)]
            if np.linalg.matrix_rank(square) == len(joints):
                points.append(np.linalg.solve(square, _corners(limit[list(rows)]).T).T)
        corners = np.concatenate(points)
        inside = (np.abs(corners @ W.T) <= limit * (1.0 + 1e-9)).all(axis=1)
        return np.unique(corners[inside].round(12), axis=0)


def actuation(robot: Robot, q: Position, joints: Sequence[str] | None = None) -> Actuation:
    """W, reflected inertia of the motors, and joint limits that follow from the motor limits.

    Args:
        q: (nq,) spanning position, or independent position [rad, m]; or a batch of them.
        joints: joints of the serial model, of one coordinate each, as many as y has, that determine
            the others. None for the independent joints.

    Raises:
        InputError: joints that do not determine the others, or more joints than needed.
        SingularityError: a loop is at a dead point.
    """
    state = robot.state(q)
    names, columns = _serial_joints(robot, joints, state.q)
    G = robot._evaluate("velocity_map", state.q)[0]
    G = G.reshape(*G.shape[:-1], robot.nv, robot.ny)[..., robot.coordinates.base_nv :]
    motors = robot.actuated_joint_names
    rows = list(robot.actuated_coordinates)
    # yd = G[x]^-1 xd, so the motors move with G[motors] G[x]^-1 xd.
    W = np.swapaxes(
        np.linalg.solve(
            np.swapaxes(G[..., columns, :], -1, -2), np.swapaxes(G[..., rows, :], -1, -2)
        ),
        -1,
        -2,
    )
    W = np.where(np.abs(W) > DRIVES * np.abs(W).max(initial=0.0), W, 0.0)
    inertia = np.array([0.0 if name in names else _own_inertia(robot, name) for name in motors])
    effort, velocity = robot.limits.effort[rows], robot.limits.velocity[rows]
    groups = _groups(robot, columns)
    torque, torque_alone, speed, speed_alone = _limits(W, groups, effort, velocity)
    return Actuation(
        joint_names=names,
        motor_names=motors,
        groups=groups,
        W=W,
        motor_inertia=inertia,
        reflected_inertia=np.swapaxes(W, -1, -2) @ (inertia[:, None] * W),
        motor_effort_limit=effort,
        motor_velocity_limit=velocity,
        torque_limit=torque,
        torque_limit_alone=torque_alone,
        velocity_limit=speed,
        velocity_limit_alone=speed_alone,
        condition=_condition(W, groups),
    )


def _serial_joints(
    robot: Robot, joints: Sequence[str] | None, q: Array
) -> tuple[tuple[str, ...], list[int]]:
    """Names of x, and their coordinates."""
    names = tuple(robot.independent_joint_names if joints is None else joints)
    base = robot.coordinates.base_nv
    if joints is None:
        return names, list(robot.independent_coordinates[base:])
    if len(set(names)) < len(names):
        raise InputError(f"joints: {', '.join(names)}; name each once")
    coordinates = robot._inputs.choices.coordinates("position", names, q.reshape(-1, robot.nq)[0])
    chosen = {robot.coordinates.owners[j] for j in coordinates[base:]}
    if extra := [name for name in names if name not in chosen]:
        raise InputError(f"joints: {', '.join(extra)} follow from the others; leave them out")
    if several := [n for n in names if n not in robot.coordinates.scalar_positions]:
        raise InputError(f"joints: {', '.join(several)} has several coordinates; name others")
    none = np.zeros(robot.ny)
    robot._independent_rates("independent_velocity", coordinates, none, q)  # no dead point
    return names, [robot.coordinates.velocities[name].start for name in names]


def _own_inertia(robot: Robot, coordinate: str) -> float:
    """Of the body on a joint, about the joint's axis; its mass on a slider."""
    for body in robot.spanning_tree.bodies:
        if coordinate in body.velocity_names and body.model.nv == 1:
            S = np.array(body.model.jcalc(np.zeros(1), np.zeros(1), body.joint.pitch)[1])
            return float((S.T @ body.inertia @ S).item())
    return 0.0


def _groups(robot: Robot, coordinates: Sequence[int]) -> Groups:
    """Places of joints and motors, cluster by cluster; clusters without joints are left out."""
    groups, owners = [], robot.coordinates.owners
    for cluster in robot.clusters:
        joints, motors = (
            tuple(k for k, j in enumerate(each) if owners[j] in cluster.joints)
            for each in (coordinates, robot.actuated_coordinates)
        )
        if joints:
            groups.append((joints, motors))
    return tuple(groups)


def _limits(W: Array, groups: Groups, effort: Array, velocity: Array) -> tuple[Array, ...]:
    """Torque, torque alone, velocity, velocity alone: (..., joints) each."""
    shape = (*W.shape[:-2], W.shape[-1])
    flat = W.reshape(-1, *W.shape[-2:])
    answers = [np.zeros((len(flat), shape[-1])) for _ in range(4)]
    torque, torque_alone, speed, speed_alone = answers
    for joints, motors in groups:
        for k, whole in enumerate(flat):
            part = whole[np.ix_(motors, joints)]
            e, v = effort[list(motors)], velocity[list(motors)]
            where = list(joints)
            torque[k, where] = _weighted(np.abs(part).T, e)
            speed_alone[k, where] = _quotients(v[:, None], np.abs(part))
            torque_alone[k, where] = [_farthest(part.T, e, j) for j in range(len(joints))]
            speed[k, where] = [_fastest(part, v, j) for j in range(len(joints))]
    return tuple(answer.reshape(shape) for answer in answers)


def _weighted(rows: Array, limit: Array) -> Array:
    """``rows @ limit``, where nothing times an infinite limit is nothing."""
    return np.where(rows > 0.0, rows * np.where(rows > 0.0, limit, 0.0), 0.0).sum(axis=1)


def _quotients(limit: Array, slopes: Array) -> Array:
    """The least ``limit / slope`` of each column; infinite where none has a slope."""
    quotients = np.divide(limit, slopes, out=np.full(slopes.shape, np.inf), where=slopes > 0.0)
    return quotients.min(axis=0, initial=np.inf)


def _farthest(M: Array, limit: Array, j: int) -> float:
    """Most t with ``M e = t unit_j`` and ``|e| <= limit``."""
    from scipy.optimize import linprog  # not above: it takes 0.2 s to import

    count = M.shape[1]
    unit = np.zeros((len(M), 1))
    unit[j] = 1.0
    if len(M) == count and np.linalg.matrix_rank(M) == count:
        per_torque = np.abs(np.linalg.solve(M, unit))
        per_torque[per_torque < DRIVES * per_torque.max()] = 0.0
        return float(_quotients(limit[:, None], per_torque)[0])
    if not count:
        return 0.0
    found = linprog(
        np.r_[np.zeros(count), -1.0],
        A_eq=np.hstack([M, -unit]),
        b_eq=np.zeros(len(M)),
        bounds=[*((-each, each) for each in limit), (0.0, None)],
    )
    return float(found.x[-1]) if found.status == 0 else np.inf


def _fastest(W: Array, limit: Array, j: int) -> float:
    """Most ``xd_j`` with ``|W xd| <= limit``."""
    from scipy.optimize import linprog

    count = W.shape[1]
    if len(W) == count and np.linalg.matrix_rank(W) == count:
        row = np.abs(np.linalg.inv(W)[j])
        row[row < DRIVES * row.max()] = 0.0
        return float(_weighted(row[None], limit)[0])
    cost = np.zeros(count)
    cost[j] = -1.0
    bounded = np.isfinite(limit)
    if not bounded.any():
        return np.inf
    A, b = np.vstack([W[bounded], -W[bounded]]), np.tile(limit[bounded], 2)
    found = linprog(cost, A_ub=A, b_ub=b, bounds=[(None, None)] * count)
    return float(found.x[j]) if found.status == 0 else np.inf


def _condition(W: Array, groups: Groups) -> Array:
    worst = np.ones(W.shape[:-2])
    for joints, motors in groups:
        part = W[..., list(motors), :][..., list(joints)]
        if len(motors) < len(joints):
            return np.full(W.shape[:-2], np.inf)
        sizes = np.linalg.svd(part, compute_uv=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.maximum(worst, np.nan_to_num(sizes[..., 0] / sizes[..., -1], nan=np.inf))
    return worst


def _corners(limit: Array) -> Array:
    """(2^n, n) every combination of plus and minus the limits."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=len(limit)))) * limit


def _hull(points: Array) -> Array:
    """The corners of the convex hull; of points on a line, or on a plane, what they span."""
    points = np.unique(points.round(12), axis=0)
    dimension = points.shape[1]
    if dimension == 1:
        return np.array([points.min(axis=0), points.max(axis=0)])
    if np.linalg.matrix_rank(points) < dimension or len(points) <= dimension:
        return points
    from scipy.spatial import ConvexHull

    return points[np.sort(ConvexHull(points).vertices)]
