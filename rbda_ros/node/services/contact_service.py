"""The service of robots in contact."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Wrench

from rbda_ros.control.settings import Settings
from rbda_ros.node import messages
from rbda_ros.node.messages import LatestState
from rbda_ros.robot import Robot
from rbda_ros.robot.contacts import Contact, Stop, Wheel
from rbda_ros.robot.poses import pose_matrix

MAX_CONTACTS = 32
"""Contacts of one request: the time to trace and to answer grows with them."""
MAX_ITERATIONS = 1000
"""Proximal iterations of one request."""


def constrained_forward_dynamics(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with accelerations, and with what the contacts exert."""
    messages.check_count("contacts", request.contacts, MAX_CONTACTS)
    state, _ = messages.read_state(robot, settings, request.state, latest)
    names = request.effort_joint_names or robot.actuated_joint_names
    efforts = messages.numbers_or_zero("effort", request.effort, len(names))
    tau = robot.generalized_force(state, messages.spanning_efforts(robot, names, efforts))
    if "friction" in settings.terms:
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
        warm_start=[wrench_vector(each) for each in request.warm_start] or None,
    )
    qdd = robot.spanning_acceleration(state, state.yd, motion.ydd)
    messages.fill_accelerations(robot, qdd, response)
    for force in motion.forces:
        wrench = Wrench()
        messages.fill(wrench.force, wrench.torque, force)
        response.contact_wrenches.append(wrench)
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


def wrench_vector(message: Any) -> list[float]:
    """Force then moment (6) of a ``geometry_msgs/Wrench``."""
    return [*messages.xyz(message.force), *messages.xyz(message.torque)]


def contact(number: int, message: Any) -> Contact | Wheel:
    """A ``rbda_ros/Contact`` as the model takes it."""
    normal = messages.xyz(message.normal)
    if message.radius:
        axis = messages.xyz(message.axis)
        return Wheel(
            link=message.link,
            radius=message.radius,
            xyz=messages.xyz(message.offset),
            axis=axis if any(axis) else None,
            normal=normal if any(normal) else (0.0, 0.0, 1.0),
            rows=tuple(message.rows) or ("x", "y", "z"),
            damping=message.damping,
            weight=message.weight or 1.0,
        )
    target = None
    if message.stiffness:
        place = messages.base_position(f"contacts[{number}].target", message.target)
        target = pose_matrix(place) if message.kind == "weld" else place[:3]
    return Contact(
        link=message.link,
        xyz=messages.xyz(message.offset),
        kind=message.kind or "point",
        normal=normal if any(normal) else (0.0, 0.0, 1.0),
        rows=tuple(message.rows) or None,
        acceleration=messages.six(f"contacts[{number}].acceleration", message.acceleration),
        target=target,
        stiffness=message.stiffness,
        damping=message.damping,
        weight=message.weight or 1.0,
        to=message.to or None,
    )
