"""Joints that a recording lacks are held: fixed at a position, so that the others are determined.

A recording of an arm often lacks the fingers of its gripper. The robot with these joints fixed has
the same dynamics for the others, as long as the fingers do not move.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rbda_ros.cluster_tree.closing.independent import determining_in_cluster
from rbda_ros.cluster_tree.cluster_joint import ClusterNode
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.control import native
from rbda_ros.description.combine import (
    LOCKABLE,
    origin_at,
    springs_without_fixed_joints,
    without_fixed_joints,
)
from rbda_ros.description.model import Constraint, Expression, Joint
from rbda_ros.description.report import Report
from rbda_ros.errors import InputError, listed
from rbda_ros.recordings.bags import JOINT_STATE, open_bag
from rbda_ros.robot import Robot

LOOKED_AT = 5000
"""Joint states of a recording whose names are read: drivers of several parts take turns."""


def recorded_joints(bag: Path, topic: str, prefix: str = "") -> frozenset[str]:
    """Names of the joints in the first joint states of a bag, without the prefix."""
    names: set[str] = set()
    with open_bag(bag) as reader:
        wanted = [c for c in reader.connections if c.topic == topic and c.msgtype == JOINT_STATE]
        messages = reader.messages(wanted) if wanted else ()
        for count, (_, _, data) in enumerate(messages):
            if count == LOOKED_AT:
                break
            try:
                names.update(native.read_joint_state(data)[0])
            except ValueError:
                continue  # no joint state
    return frozenset(name[len(prefix) :] for name in names if name.startswith(prefix))


def joints_to_hold(
    robot: Robot, recorded: Collection[str], given: Mapping[str, float]
) -> dict[str, float]:
    """Position of each joint to hold [rad, m], so that the recorded ones determine the others.

    Args:
        robot: the model.
        recorded: joints that are measured.
        given: positions of joints that are held in any case; others are held at the assembly,
            inside their limits.

    Raises:
        InputError: a given joint is unknown or is recorded.
    """
    if unknown := sorted(set(given) - set(robot.joint_names)):
        raise InputError(
            f"hold: {robot.name} has no moving joint {listed(unknown)}; its joints are"
            f" {listed(robot.joint_names)}"
        )
    if both := sorted(set(given) & set(recorded)):
        raise InputError(f"hold: {listed(both)} is recorded; hold joints that are not")
    names = set(given)
    if not set(recorded).isdisjoint(robot.joint_names):  # else it is another robot's recording
        first = 1 if robot.floating_base else 0
        for node in robot.cluster_nodes[first:]:
            names.update(_undetermined(node, {*recorded, *given}))
    limits = {joint.name: joint.limits for joint in robot.description.joints}
    places = robot.coordinates.scalar_positions
    held = {}
    for name in robot.joint_names:
        if name in names and name in places:
            position = given.get(name, float(robot.neutral()[places[name]]))
            if name not in given and limits[name].lower <= limits[name].upper:
                position = float(np.clip(position, limits[name].lower, limits[name].upper))
            held[name] = position
    return held


def _undetermined(node: ClusterNode, known: Collection[str]) -> list[str]:
    """Joints of a cluster to hold: all of it where nothing is known, else as few of y as do."""
    joints = [body.joint.name for body in node.bodies]
    if not set(joints) & set(known):
        return joints
    if node.loop is None:
        return [joint for joint in joints if joint not in known]
    owners = [body.joint.name for body in node.bodies for _ in range(body.model.nv)]
    more: list[str] = []
    for name in [None, *dict.fromkeys(owners[j] for j in node.independent)]:
        if name is not None and name not in known:
            more.append(name)
        places = [i for i, joint in enumerate(joints) if joint in known or joint in more]
        try:
            determining_in_cluster(node, places, node.home)
        except InputError:
            continue
        return more
    return more


def with_held(robot: Robot, held: Mapping[str, float]) -> Robot:
    """The robot with some joints fixed at positions [rad, m].

    Raises:
        InputError: a joint that cannot be held, or an equation over a held and a moving joint.
    """
    if not held:
        return robot
    described = robot.description
    joints = tuple(
        _fixed(joint, held[joint.name]) if joint.name in held else joint
        for joint in described.joints
    )
    moved = [constraint for constraint in described.constraints if _moves(constraint, held)]

    def moving(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if names is None else tuple(name for name in names if name not in held)

    assembly = {name: guess for name, guess in described.assembly.items() if name not in held}
    description = replace(
        described,
        joints=joints,
        constraints=tuple(without_fixed_joints(moved, held, Report())),
        independent_joints=moving(described.independent_joints) or None,
        actuated_joints=moving(described.actuated_joints),
        assembly=assembly,
        springs=springs_without_fixed_joints(described.springs, held),
        warnings=(),
    )
    x, y, z = robot.gravity.tolist()
    return Robot(build_cluster_tree(description, robot.floating_base, (x, y, z)))


def _fixed(joint: Joint, position: float) -> Joint:
    if joint.type not in LOCKABLE:
        raise InputError(f"hold: {joint.name} is a {joint.type} joint; record it")
    origin = origin_at(joint, position)
    return replace(joint, type="fixed", origin=origin, armature=0.0, independent=None)


def _moves(constraint: Constraint, held: Mapping[str, float]) -> bool:
    """Whether a constraint is not an equation over held joints alone."""
    if not isinstance(constraint, Expression):
        return True
    if fixed := sorted(held.keys() & set(constraint.joints)):
        if len(fixed) == len(constraint.joints):
            return False
        raise InputError(
            f"constraint {constraint.name!r}: it ties {listed(fixed)},"
            " which is not recorded; record it"
        )
    return True
