"""The service of robots in contact."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Wrench

from rbda_ros.node import messages
from rbda_ros.control.settings import Settings
from rbda_ros.robot import Robot
from rbda_ros.robot.contacts import Contact
from rbda_ros.robot.poses import pose_matrix

MOST_CONTACTS = 32
"""Contacts of one request: the time to trace and to answer grows with them."""


def constrained_forward_dynamics(
    robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with accelerations, and with what the contacts exert."""
    messages.check_count("contacts", request.contacts, MOST_CONTACTS)
    state, _ = messages.read_state(robot, request.state)
    names = request.effort_joint_names or robot.actuated_joint_names
    efforts = messages.numbers_or_zero("effort", request.effort, len(names))
    tau = robot.generalized_force(state, messages.spanning_efforts(robot, names, efforts))
    if "friction" in settings.terms:
        tau = tau - robot.friction_force(state, state.yd)
    motion = robot.constrained_forward_dynamics(
        state,
        state.yd,
        tau,
        [contact(k, message) for k, message in enumerate(request.contacts)],
        external_wrenches=messages.wrench_vectors(robot, request.external_wrenches),
    )
    qdd = robot.spanning_acceleration(state, state.yd, motion.ydd)
    messages.fill_accelerations(robot, qdd, response)
    for force in motion.forces:
        wrench = Wrench()
        messages.fill(wrench.force, wrench.torque, force)
        response.contact_wrenches.append(wrench)
    response.residual, response.iterations = motion.residual, motion.iterations
    if not motion.converged:
        response.message = f"not settled after {motion.iterations} iterations"
    elif motion.residual > CONTRADICTION:
        response.message = (
            f"contacts contradict each other, or none can be met: they miss {motion.residual:.3g}"
        )


CONTRADICTION = 1e-6
"""Residual above which contacts are said to contradict each other [m/s^2, rad/s^2]."""


def contact(number: int, message: Any) -> Contact:
    """A ``rbda_ros/Contact`` as the model takes it."""
    normal = messages.xyz(message.normal)
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
    )
