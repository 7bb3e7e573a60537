"""The stage of a step with contacts: motion without them, and how bodies answer to forces.

Where and how bodies touch is found afterwards, from their poses and velocities: any number of
points of a body, and any ground, take the same program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca

from rbda_ros.algorithms.crba import branch_factor, composite_inertia
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
from rbda_ros.algorithms.prox_ltl import solve_lower, solve_transposed
from rbda_ros.algorithms.rnea import along_y, body_forces
from rbda_ros.algorithms.simulation_stage import joint_forces, on_independent
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def contact_stage(tree: ClusterTree, *given: Any) -> tuple[Matrix, ...]:
    """Acceleration ydd (ny) without contacts, and what b touching bodies would make of forces.

    Wrenches and velocities of bodies are linear then angular, at their origins in world axes.

    Args:
        tree: the cluster tree.
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
    qd, force, drag = joint_forces(tree, joints, choice, q, slip, efforts, stepping)
    tau = on_independent(tree, joints, force)
    parts = zip(joints, tree.split_velocities(drag), strict=True)
    joints = [replace(joint, drag=drag_k) for joint, drag_k in parts]
    v, still = velocities(tree, joints), ca.DM(tree.ny, 1)
    f = body_forces(tree, v, accelerations(tree, joints, v, still, gravity(tree)))
    for k in tree.outward():
        f[k] = f[k] - external_forces(tree, k, wrenches[0].T if wrenches else None)
    tau = tau - along_y(tree, joints, f) - armature_forces(tree, joints, still)
    tau = tau if tree.springs is None else tau - spring_force(tree, q)
    L = branch_factor(tree, composite_inertia(tree, joints))
    ydd = solve_lower(L, solve_transposed(L, tau))
    R, p = world_poses(tree, joints)
    poses, rows = [], []
    for body in choice.touching:
        poses.append(ca.horzcat(ca.vec(R[body].T).T, p[body].T))
        turned = R[body].T
        forces = ca.vertcat(ca.DM(3, 3), turned), ca.vertcat(turned, ca.DM(3, 3))
        k, on_bodies = on_cluster(tree, body, ca.horzcat(*forces))
        rows.append(along_y(tree, joints, {k: on_bodies}, m=6).T)
    J = ca.vertcat(*rows)
    X = solve_transposed(L, J.T)
    after = J @ (yd + shift + stepping[1] * ydd)
    response = mirrored(X.T @ X), solve_lower(L, X)
    return ydd, ca.vertcat(*poses), J @ yd, after, *response, ca.dot(force, qd)
