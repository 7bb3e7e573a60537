"""The model as a message; loads attached and taken off while the node runs, and estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Inertia

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.control import native
from rbda_ros.control.joint_map import map_joints, places
from rbda_ros.control.model_builder import warm
from rbda_ros.control.rejections import RefusalError
from rbda_ros.control.settings import Settings, joint_offsets
from rbda_ros.description.model import MOMENTS, Constraint, Coupling, CutJoint
from rbda_ros.errors import InputError, listed
from rbda_ros.msg import ClusterInfo, ConstraintInfo, JointInfo, PayloadInfo
from rbda_ros.node.messages import Call, closed_position, moving, sequence
from rbda_ros.robot import Robot
from rbda_ros.robot.effort_evidence import FEWEST_SAMPLES, Motion
from rbda_ros.robot.parameter_fit import estimate_payload
from rbda_ros.robot.payloads import Payload


def set_payload(call: Call, request: Any, response: Any) -> None:
    """Put a robot with other payloads in the place of the node's. Not on the node's executor."""
    node, robot = call.node, call.robot
    while True:
        loaded = warm(robot.with_payloads(_wanted(robot, request)))
        node.stream.prepare(loaded)
        in_use = _swap(node, robot, loaded)
        if in_use is robot:
            break
        if in_use is None:
            raise InputError("the node was cleaned up meanwhile; configure it, and call again")
        robot = in_use  # a new description has come meanwhile: the load is for that
    response.total_mass = loaded.mass
    if request.inertia.m and not robot.spanning_tree.links[request.link].body:
        response.message = f"link '{request.link}' is fixed to the world: the load changes nothing"


def _wanted(robot: Robot, request: Any) -> dict[str, Payload]:
    """The payloads there should be, by name."""
    payloads = dict(robot.payloads)
    if not request.name:
        raise InputError("name is empty; give the load a name, by which it can be removed")
    i = request.inertia
    if i.m:
        payloads[request.name] = Payload(
            request.link,
            i.m,
            (i.com.x, i.com.y, i.com.z),
            (i.ixx, i.ixy, i.ixz, i.iyy, i.iyz, i.izz),
        )
    elif request.name in payloads:
        del payloads[request.name]
    else:
        raise InputError(
            f"there is no load '{request.name}' to remove (mass is zero); there are: "
            f"{listed(payloads) or 'none'}"
        )
    return payloads


def _swap(node: Any, old: Robot, new: Robot) -> Robot | None:
    """Have the node's executor put one model in the place of another; which it found there."""
    found: Future[Robot | None] = Future()
    node.executor.create_task(lambda: found.set_result(node.replace_model(old, new)))
    while True:
        check_cancelled()
        try:
            return found.result(timeout=0.1)
        except NotYet:
            continue


SHORTEST = 0.5
"""Shortest time that an estimate is made from [s]."""
MAX_SAMPLES = 4000
"""Joint states that are used at most; of more, every second, third or so on is used."""
HARDLY = 0.5
"""Deviation of the mass, as a share of it, above which the response warns."""


def identify_payload(call: Call, request: Any, response: Any) -> None:
    """Estimate a payload from recent joint states. Not on the node's executor."""
    robot, settings = call.robot, call.settings
    if not settings.payload_window:
        raise InputError(
            "the node remembers no joint states; set payload_window to some seconds, move the "
            "robot, and call again"
        )
    if not 0.0 <= request.duration < math.inf:
        raise InputError(f"duration is {request.duration:g}; give seconds, or 0 for all")
    if robot.floating_base:
        raise InputError(
            f"{robot.name}: its base floats, and the node remembers no states of it; record a bag "
            "with ~/base_state, and use `rbda_ros identify --what payload`"
        )
    robot.parameters(payload=request.link)  # refuses links before anything is read
    motion = _motion(robot, settings, call.node.stream.recent.last(request.duration))
    found = estimate_payload(robot, [motion], request.link)
    _fill_inertia(response.inertia, found.payload)
    response.mass_deviation = found.mass_deviation
    deviation = response.com_deviation
    deviation.x, deviation.y, deviation.z = found.com_deviation.tolist()
    response.joint_names = list(robot.actuated_joint_names)
    response.residual_before = sequence(found.nominal_rms)
    response.residual_after = sequence(found.loaded_rms)
    response.used = float(motion.times[-1] - motion.times[0])
    if found.mass_deviation > HARDLY * found.payload.mass:
        response.message = "the motion tells little of the mass, or there is no load; move more"


def _motion(robot: Robot, settings: Settings, recent: Sequence[bytes]) -> Motion:
    """The newest joint states: all that name the same joints, with rising stamps.

    Others may publish on the topic too: what names none of this robot's joints is not looked at.
    """
    names = [(settings.joint_prefix + name).encode() for name in robot.joint_names]
    ours = [data for data in recent if any(name in data for name in names)]
    messages = [
        m for m in map(_read, _thinned(ours)) if m is not None and _known(robot, settings, m.names)
    ]
    messages = [m for m in messages if m.names == messages[-1].names]
    stamps = np.array([m.stamp for m in messages])
    later = stamps[1:] > np.maximum.accumulate(stamps)[:-1]
    rising = np.flatnonzero(np.concatenate([[True], later])) if messages else stamps
    if len(rising) < FEWEST_SAMPLES or stamps[rising[-1]] - stamps[0] < SHORTEST * 1e9:
        raise InputError(
            f"the node remembers less than {SHORTEST:g} s, or {FEWEST_SAMPLES} joint states, that "
            "name the same joints; wait, and call again"
        )
    messages = [messages[k] for k in rising]
    found = _known(robot, settings, messages[-1].names)
    joints, at = map_joints(robot, tuple(found)), list(found.values())
    position, velocity = (_numbers(messages, field, at) for field in ("position", "velocity"))
    offsets = joint_offsets(settings, tuple(found))
    if offsets is not None:
        position = position + offsets
    state = robot.state(closed_position(robot, joints, position, None))
    yd = moving(robot, joints, state, velocity, None).yd
    efforts = _actuator_efforts(robot, state, found, messages)
    times = (stamps[rising] - stamps[0]) * 1e-9
    return Motion.measured(times, state.q, yd, efforts)


def _thinned(recent: Sequence[bytes]) -> Sequence[bytes]:
    step = -(-len(recent) // MAX_SAMPLES) or 1
    return recent[::-1][::step][::-1]  # the newest stays


class _JointState(NamedTuple):
    names: list[str]
    stamp: int  # [ns]
    position: bytes
    velocity: bytes
    effort: bytes


def _read(data: bytes) -> _JointState | None:
    """A joint state; None where bytes are none, such as a broken publisher's."""
    try:
        return _JointState(*native.read_joint_state(data))
    except ValueError:
        return None


def _known(robot: Robot, settings: Settings, names: Sequence[str]) -> dict[str, int]:
    """Where the robot's joints stand in a message; empty where it names none, or one twice."""
    try:
        return places(names, settings.joint_prefix, set(robot.joint_names))
    except RefusalError:
        return {}


def _actuator_efforts(
    robot: Robot, state: Any, found: dict[str, int], messages: Sequence[_JointState]
) -> np.ndarray:
    """(n, actuated) of the motors as measured, or else what those of the joints come to."""
    for names in (robot.actuated_joint_names, robot.independent_joint_names):
        if all(name in found for name in names):
            measured = _numbers(messages, "effort", [found[name] for name in names])
            if names is robot.actuated_joint_names:
                return measured
            return robot.actuator_efforts(state, measured)
    raise InputError(
        "joint_states have no effort of every motor, nor of every independent joint; publish "
        "measured efforts"
    )


def _numbers(messages: Sequence[_JointState], field: str, at: Sequence[int]) -> np.ndarray:
    rows = [np.frombuffer(getattr(message, field)) for message in messages]
    if any(len(row) != len(messages[-1].names) for row in rows):
        raise InputError(f"some joint_states have no {field} for every joint; publish it")
    numbers = np.array(rows)[:, list(at)]
    if not np.isfinite(numbers).all():
        raise InputError(f"joint_states: {field} is not finite; call again in a while")
    return numbers


def describe_model(call: Call, request: Any, response: Any) -> None:
    """Answer with the joints, links, clusters, constraints and payloads of the model."""
    robot, description = call.robot, call.robot.description
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
    # A constraint ties together all joints of its cluster, unless it names some.
    tied = {name: cluster.joints for cluster in robot.clusters for name in cluster.constraints}
    response.constraints = [
        _constraint(constraint, tied.get(constraint.name, ()))
        for constraint in description.constraints
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
    return [
        JointInfo(
            name=joint.name,
            type=joint.type,
            parent_link=joint.parent,
            child_link=joint.child,
            lower=joint.limits.lower,
            upper=joint.limits.upper,
            velocity=joint.limits.velocity,
            effort=joint.limits.effort,
            cluster=cluster_of.get(joint.name, ""),
        )
        for joint in map(by_name.__getitem__, robot.joint_names)
    ]


def _constraint(constraint: Constraint, joints: Sequence[str]) -> ConstraintInfo:
    info = ConstraintInfo(name=constraint.name, type=constraint.type, joints=list(joints))
    if isinstance(constraint, Coupling):
        info.joints = list(constraint.terms)
    elif isinstance(constraint, CutJoint):
        info.links = list(constraint.links)
    return info


def _payload(name: str, payload: Payload) -> PayloadInfo:
    info = PayloadInfo(name=name, link=payload.link)
    _fill_inertia(info.inertia, payload)
    return info


def _fill_inertia(message: Inertia, payload: Payload) -> None:
    """Write the mass, centre of mass and moments of inertia of a payload."""
    com = message.com
    message.m, (com.x, com.y, com.z) = payload.mass, payload.com
    for name, value in zip(MOMENTS, payload.inertia, strict=True):
        setattr(message, name, value)
