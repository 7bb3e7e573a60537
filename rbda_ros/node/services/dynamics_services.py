"""Services about one state: dynamics, its terms, OSIM, contacts, motors, inverse kinematics."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from rbda_ros.errors import InputError
from rbda_ros.msg import Matrix
from rbda_ros.node import messages
from rbda_ros.node.messages import Call
from rbda_ros.robot import Robot, kinematic_tasks
from rbda_ros.robot.contacts import Contact, Stop, Wheel
from rbda_ros.robot.inputs import pose_matrix

MAX_FRAMES = 64
"""Frames of one request: for more, the kernels of their Jacobians would push out all others."""
AXES = ("x", "y", "z", "rx", "ry", "rz")


def forward_dynamics(call: Call, request: Any, response: Any) -> None:
    """Answer with the acceleration of every joint that efforts give."""
    robot, state = call.robot, messages.read_state(call, request.state)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    tau = messages.spanning_efforts(robot, request)
    friction = "friction" in call.settings.effort_terms
    ydd = robot.forward_dynamics(state, state.yd, tau, wrenches, friction=friction)
    qdd = robot.spanning_acceleration(state, state.yd, ydd)
    messages.fill_accelerations(robot, qdd, response)


def mass_matrix(call: Call, request: Any, response: Any) -> None:
    """Answer with the terms of the equation of motion."""
    robot, state = call.robot, messages.read_state(call, request.state)
    names = _coordinates(robot)
    response.joint_names = list(robot.independent_joint_names)
    response.mass_matrix = _matrix(robot.mass_matrix(state), names, names)
    response.bias = messages.sequence(robot.bias_force(state, state.yd))
    response.gravity = messages.sequence(robot.gravity_force(state))


def operational_space_inertia(call: Call, request: Any, response: Any) -> None:
    """Answer with the inertia that frames show to an outside force."""
    messages.check_count("frames", request.frames, MAX_FRAMES)
    robot, state = call.robot, messages.read_state(call, request.state)
    frames = messages.frames(call, request)
    space = robot.operational_space_inertia(state, frames, request.damping, request.linear_only)
    axes = AXES[:3] if request.linear_only else AXES
    rows = [f"{frame}.{axis}" for frame in request.frames for axis in axes]
    response.inertia = _matrix(space.inertia, rows, rows)
    response.inverse_inertia = _matrix(space.inverse_inertia, rows, rows)
    response.jacobian = _matrix(space.jacobian, rows, _coordinates(robot))
    response.rank = space.rank
    if space.rank < len(rows):
        response.message = (
            f"the frames move in {space.rank} of {len(rows)} directions; inertia is the "
            + ("damped inverse" if request.damping else "pseudo-inverse")
        )


def _coordinates(robot: Robot) -> list[str]:
    """Names of the independent coordinates: the floating base's six, if any, then the joints."""
    link = robot.spanning_tree.bodies[0].name if robot.floating_base else ""
    base = [f"{link}.{axis}" for axis in AXES] if link else []
    return [*base, *robot.independent_joint_names]


def _matrix(values: Any, row_names: list[str], col_names: list[str]) -> Matrix:
    rows, cols = values.shape
    data = messages.sequence(values)
    return Matrix(rows=rows, cols=cols, row_names=row_names, col_names=col_names, data=data)


LIMITS = ("torque_limit", "torque_limit_alone", "velocity_limit", "velocity_limit_alone")


def describe_actuation(call: Call, request: Any, response: Any) -> None:
    """Answer with W, the motors' reflected inertia, and what their limits amount to."""
    robot, state = call.robot, messages.read_state(call, request.state)
    found = robot.actuation(state, request.joint_names or None)
    joints, motors = list(found.joint_names), list(found.motor_names)
    response.joint_names, response.motor_names = joints, motors
    response.w = _matrix(found.W, motors, joints)
    response.reflected_inertia = _matrix(found.reflected_inertia, joints, joints)
    response.motor_inertia = messages.sequence(found.motor_inertia)
    for name in LIMITS:
        # As they are: no limit is inf, as in JointInfo.
        setattr(response, name, array.array("d", getattr(found, name).tobytes()))
    for k, (places, _) in enumerate(found.groups):
        names = [joints[j] for j in places]
        response.torque_vertices.append(_matrix(found.torque_vertices(k), [], names))
        response.velocity_vertices.append(_matrix(found.velocity_vertices(k), [], names))
    response.condition_number = float(found.condition)


NO_WRENCH = np.zeros(6)


def inverse_dynamics(call: Call, request: Any, response: Any) -> None:
    """Answer with the efforts on the actuated joints that give an acceleration.

    Controllers ask in every cycle, mostly about the independent joints: all of it is then one call.
    """
    robot = call.robot
    q, yd, joints = messages.read_motion(call, request.state)
    wanted = messages.numbers_or_zero("acceleration", request.acceleration, joints.size)
    base = request.base_acceleration
    of_base = messages.six("base_acceleration", base) if robot.floating_base else None
    ydd = messages.acceleration_vector(robot, joints, q, yd, wanted, of_base)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    friction = "friction" in call.settings.effort_terms
    efforts, tau = robot.inverse_dynamics_efforts(q, yd, ydd, wrenches, friction=friction)
    response.joint_names = robot.actuated_joint_names
    response.effort = messages.sequence(efforts)
    wrench = response.base_wrench
    messages.fill(wrench.force, wrench.torque, tau[:6] if robot.floating_base else NO_WRENCH)


MAX_CONTACTS = 32
"""Contacts of one request: the time to trace and to answer grows with them."""
MAX_ITERATIONS = 1000
"""Proximal iterations of one request."""


def constrained_forward_dynamics(call: Call, request: Any, response: Any) -> None:
    """Answer with accelerations, and with what the contacts exert."""
    messages.check_count("contacts", request.contacts, MAX_CONTACTS)
    robot, state = call.robot, messages.read_state(call, request.state)
    tau = robot.generalized_force(state, messages.spanning_efforts(robot, request))
    if "friction" in call.settings.effort_terms:
        tau = tau - robot.friction_force(state, state.yd)
    stop = Stop()
    motion = robot.constrained_forward_dynamics(
        state,
        state.yd,
        tau,
        [contact(k, message) for k, message in enumerate(request.contacts)],
        external_wrenches=messages.wrench_vectors(robot, request.external_wrenches),
        mu=request.mu or None,
        tolerance=request.tolerance or stop.tolerance,
        max_iterations=min(request.max_iterations or stop.iterations, MAX_ITERATIONS),
        warm_start=[messages.wrench_numbers(each) for each in request.warm_start] or None,
    )
    qdd = robot.spanning_acceleration(state, state.yd, motion.ydd)
    messages.fill_accelerations(robot, qdd, response)
    response.contact_wrenches = [messages.wrench(force) for force in motion.forces]
    response.residual, response.iterations = motion.residual, motion.iterations
    response.converged = motion.converged
    if not motion.converged:
        response.message = "contacts are so near to a singularity that digits are lost"
    elif motion.residual > CONTRADICTION:
        response.message = (
            f"contacts contradict each other, or none can be met: they miss {motion.residual:.3g}"
        )


CONTRADICTION = 1e-6
"""Residual above which contacts are said to contradict each other [m/s^2, rad/s^2]."""


def contact(number: int, message: Any) -> Contact | Wheel:
    """A ``rbda_ros/Contact`` as the model takes it."""
    normal, axis = messages.xyz(message.normal), messages.xyz(message.axis)
    common: dict[str, Any] = {
        "link": message.link,
        "xyz": messages.xyz(message.offset),
        "normal": normal if any(normal) else (0.0, 0.0, 1.0),
        "damping": message.damping,
        "weight": message.weight or 1.0,
    }
    rows = tuple(message.rows)
    if message.radius:
        return Wheel(
            **common,
            radius=message.radius,
            axis=axis if any(axis) else None,
            rows=rows or ("x", "y", "z"),
        )
    target = None
    if message.stiffness:
        place = messages.base_position(f"contacts[{number}].target", message.target)
        target = pose_matrix(place) if message.kind == "weld" else place[:3]
    return Contact(
        **common,
        kind=message.kind or "point",
        rows=rows or None,
        acceleration=messages.six(f"contacts[{number}].acceleration", message.acceleration),
        target=target,
        stiffness=message.stiffness,
        to=message.to or None,
    )


TOLERANCE = 1e-8
"""Largest error [m, rad] where the request has none."""


def inverse_kinematics(call: Call, request: Any, response: Any) -> None:
    """Answer with a position that brings frames to their targets."""
    messages.check_count("frames", request.frames, MAX_FRAMES)
    robot, state = call.robot, messages.read_state(call, request.state)
    tasks = _frame_tasks(call, request)
    if request.center_of_mass_weight:
        target = messages.xyz(request.center_of_mass)
        tasks.append(kinematic_tasks.CenterOfMassTask(target, request.center_of_mass_weight))
    if request.posture_weight:
        tasks.append(kinematic_tasks.PostureTask(state.q, request.posture_weight))
    if all(task.soft for task in tasks):
        raise InputError("frames: nothing has a target; name a frame, or weigh center_of_mass")
    found = robot.inverse_kinematics(
        tasks,
        guess=state.q,
        tolerance=request.tolerance or TOLERANCE,
        move_base=request.move_base,
    )
    response.joint_names = robot.joint_names
    response.position = messages.sequence(found.q[robot.coordinates.base_nq :])
    if robot.floating_base:
        x, y, z, *quaternion = found.q[:7].tolist()
        at, turned = response.base_pose.position, response.base_pose.orientation
        at.x, at.y, at.z = x, y, z
        turned.x, turned.y, turned.z, turned.w = quaternion
    response.error = float(np.abs(found.error).max(initial=0.0))
    response.reached = found.reached
    if not found.reached:
        response.message = (
            f"the targets are not met: {response.error:.3g} m or rad is left at the nearest"
            " position found; start from another state, or give targets within reach"
        )


def _frame_tasks(call: Call, request: Any) -> list[kinematic_tasks.Task]:
    count = len(request.frames)
    places = messages.frames(call, request)
    kinds = _one_each("kinds", request.kinds, count, "pose")
    weights = _one_each("weights", request.weights, count, 1.0)
    targets = _one_each("targets", request.targets, count, None)
    tasks: list[kinematic_tasks.Task] = []
    for k, (frame, kind, weight) in enumerate(zip(places, kinds, weights, strict=True)):
        pose = pose_matrix(messages.base_position(f"targets[{k}]", targets[k]))
        if kind == "pose":
            tasks.append(kinematic_tasks.PoseTask(frame, pose, weight))
        elif kind == "position":
            tasks.append(kinematic_tasks.PositionTask(frame, pose[:3, 3], weight))
        elif kind == "orientation":
            tasks.append(kinematic_tasks.OrientationTask(frame, pose[:3, :3], weight))
        else:
            raise InputError(f"kinds[{k}] is {kind!r}; give pose, position or orientation")
    return tasks


def _one_each(what: str, given: Sequence[Any], count: int, default: Any) -> list[Any]:
    """As many values as frames; where there are none, the default, if any."""
    if not len(given) and default is not None:
        return [default] * count
    if len(given) != count:
        raise InputError(f"{what} has {len(given)} entries for {count} frames; give one each")
    return list(given)
