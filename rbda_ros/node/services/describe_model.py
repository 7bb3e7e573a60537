"""The parts of the model, as messages."""

from __future__ import annotations

from typing import Any

from rbda_ros.control.settings import Settings
from rbda_ros.description.model import Constraint, Coupling, CutJoint, constraint_type
from rbda_ros.msg import ClusterInfo, ConstraintInfo, JointInfo, PayloadInfo
from rbda_ros.robot import Robot
from rbda_ros.robot.payloads import Payload


def describe_model(robot: Robot, settings: Settings, request: Any, response: Any) -> None:
    """Fill in a DescribeModel response."""
    description = robot.description
    response.robot_name = robot.name
    response.total_mass = float(robot.mass)
    response.floating_base = bool(robot.floating_base)
    response.joint_names = list(robot.joint_names)
    response.independent_joint_names = list(robot.independent_joint_names)
    response.actuated_joint_names = list(robot.actuated_joint_names)
    links = [link.name for link in description.links]
    response.links = [description.root, *(name for name in links if name != description.root)]
    response.clusters = [_cluster(cluster) for cluster in robot.clusters]
    response.joints = _joints(robot)
    joints_of = _joints_of_constraints(robot)
    response.constraints = [
        _constraint(constraint, joints_of) for constraint in description.constraints
    ]
    response.payloads = [_payload(*item) for item in robot.payloads.items()]


def _cluster(cluster: Any) -> ClusterInfo:
    return ClusterInfo(
        name=cluster.name,
        links=list(cluster.links),
        joints=list(cluster.joints),
        independent_joints=list(cluster.independent_joints),
        constraints=list(cluster.constraints),
        parent=cluster.parent or "",
    )


def _joints(robot: Robot) -> list[JointInfo]:
    by_name = {joint.name: joint for joint in robot.description.joints}
    cluster_of = {name: cluster.name for cluster in robot.clusters for name in cluster.joints}
    infos = []
    for name in robot.joint_names:
        joint = by_name[name]
        infos.append(
            JointInfo(
                name=name,
                type=joint.type,
                parent_link=joint.parent,
                child_link=joint.child,
                lower=joint.limits.lower,
                upper=joint.limits.upper,
                velocity=joint.limits.velocity,
                effort=joint.limits.effort,
                cluster=cluster_of.get(name, ""),
            )
        )
    return infos


def _joints_of_constraints(robot: Robot) -> dict[str, list[str]]:
    """Joints of the cluster that each constraint ties together."""
    return {
        constraint: list(cluster.joints)
        for cluster in robot.clusters
        for constraint in cluster.constraints
    }


def _constraint(constraint: Constraint, joints_of: dict[str, list[str]]) -> ConstraintInfo:
    info = ConstraintInfo(name=constraint.name, joints=joints_of.get(constraint.name, []))
    info.type = constraint_type(constraint)
    if isinstance(constraint, Coupling):
        info.joints = list(constraint.terms)
    elif isinstance(constraint, CutJoint):
        info.links = [constraint.predecessor.link, constraint.successor.link]
    return info


def _payload(name: str, payload: Payload) -> PayloadInfo:
    info = PayloadInfo(name=name, link=payload.link)
    i, com = info.inertia, info.inertia.com
    i.m, (com.x, com.y, com.z) = payload.mass, payload.com
    i.ixx, i.ixy, i.ixz, i.iyy, i.iyz, i.izz = payload.inertia
    return info
