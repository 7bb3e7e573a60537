"""Services about one state: forward dynamics, terms of the equation of motion, OSIM, motors.

Controllers call inverse dynamics in every cycle. Most requests are about the independent joints,
without wrenches from outside: these are answered in a few steps. All others, and those that must be
rejected, go the general way. Both give the same.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from rbda_ros.control.joint_map import Vector
from rbda_ros.control.parameter_maps import end_effectors
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, ModelError
from rbda_ros.msg import Matrix
from rbda_ros.node import messages
from rbda_ros.node.messages import LatestState
from rbda_ros.robot import Robot
from rbda_ros.srv import InverseDynamics

MAX_FRAMES = 64
"""Frames of one request: for more, the kernels of their Jacobians would push out all others."""
AXES = ("x", "y", "z", "rx", "ry", "rz")


def forward_dynamics(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with the acceleration of every joint that efforts give."""
    state, _ = messages.read_state(robot, settings, request.state, latest)
    names = request.effort_joint_names or robot.actuated_joint_names
    efforts = messages.numbers_or_zero("effort", request.effort, len(names))
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    tau = messages.spanning_efforts(robot, names, efforts)
    friction = "friction" in settings.terms
    ydd = robot.forward_dynamics(state, state.yd, tau, wrenches, friction=friction)
    qdd = robot.spanning_acceleration(state, state.yd, ydd)
    messages.fill_accelerations(robot, qdd, response)


def mass_matrix(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with the terms of the equation of motion."""
    state, _ = messages.read_state(robot, settings, request.state, latest)
    names = _coordinates(robot)
    response.joint_names = list(robot.independent_joint_names)
    response.mass_matrix = _matrix(robot.mass_matrix(state), names, names)
    response.bias = messages.sequence(robot.bias_force(state, state.yd))
    response.gravity = messages.sequence(robot.gravity_force(state))


def operational_space_inertia(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with the inertia that frames show to an outside force."""
    messages.check_count("frames", request.frames, MAX_FRAMES)
    state, _ = messages.read_state(robot, settings, request.state, latest)
    points = end_effectors(settings.end_effectors)
    frames = messages.frames(request.frames, request.offsets, points)
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


def describe_actuation(
    latest: LatestState, robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with W, the motors' reflected inertia, and what their limits amount to."""
    state, _ = messages.read_state(robot, settings, request.state, latest)
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


NO_WRENCH: Vector = np.zeros(6)


class InverseDynamicsService:
    """Answers requests, in one thread.

    Args:
        latest: the latest state of the robot, for requests with an empty one.
    """

    def __init__(self, latest: LatestState) -> None:
        self._latest = latest
        self._robot: Robot | None = None  # that the last answer was for
        self._motion: tuple[Vector, ...] = ()  # position, velocity and acceleration of its y

    def __call__(
        self,
        robot: Robot,
        settings: Settings,
        request: InverseDynamics.Request,
        response: InverseDynamics.Response,
    ) -> None:
        """Answer with the efforts on the actuated joints that give an acceleration."""
        friction = "friction" in settings.terms
        if robot is not self._robot:
            sizes = (robot.coordinates.base_nq, *[robot.coordinates.base_nv] * 2)
            joints = len(robot.independent_joint_names)
            self._robot, self._motion = robot, tuple(np.zeros(size + joints) for size in sizes)
        answer = None if friction else self._of_independent_joints(robot, request)
        if answer is None:
            answer = _inverse_dynamics(self._latest, robot, settings, request)
        efforts, tau = answer
        response.joint_names = robot.actuated_joint_names
        response.effort = messages.sequence(efforts)
        base = response.base_wrench
        messages.fill(base.force, base.torque, tau[:6] if robot.floating_base else NO_WRENCH)

    def _of_independent_joints(
        self, robot: Robot, request: InverseDynamics.Request
    ) -> tuple[Vector, Vector] | None:
        """Efforts and force on y for most requests; None where one takes the general way."""
        state = request.state
        if request.external_wrenches:
            return None
        names, joints = state.joint_names, len(robot.independent_joint_names)
        if names and tuple(names) != robot.independent_joint_names:
            return None
        of_joints = state.position, state.velocity, request.acceleration
        for vector, given in zip(self._motion, of_joints, strict=True):
            if len(given) != joints and (len(given) or vector is self._motion[0]):
                return None
            vector[len(vector) - joints :] = given if len(given) else 0.0
        y, yd, ydd = self._motion
        try:
            if robot.floating_base:
                y[:7] = messages.base_position("base_pose", state.base_pose)
                yd[:6] = messages.six("base_twist", state.base_twist)
                ydd[:6] = messages.six("base_acceleration", request.base_acceleration)
            return robot.inverse_dynamics_efforts(y, yd, ydd)
        except (InputError, ModelError):
            return None  # for its words


def _inverse_dynamics(
    latest: LatestState, robot: Robot, settings: Settings, request: InverseDynamics.Request
) -> tuple[Vector, Vector]:
    """Efforts (actuated,) and force on y (ny,) for any request."""
    state, joints = messages.read_state(robot, settings, request.state, latest)
    wanted = messages.numbers_or_zero("acceleration", request.acceleration, joints.size)
    base = request.base_acceleration
    of_base = messages.six("base_acceleration", base) if robot.floating_base else None
    ydd = messages.acceleration_vector(robot, joints, state, wanted, of_base)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    friction = "friction" in settings.terms
    return robot.inverse_dynamics_efforts(state, state.yd, ydd, wrenches, friction=friction)
