"""The service that controllers call in every cycle: efforts that give an acceleration.

Most requests are about the independent joints, with no wrenches from outside: these are answered in
a few steps. All others, and those that must be refused, go the general way. Both give the same.
"""

from __future__ import annotations

import numpy as np

from rbda_ros.control.joint_map import Vector
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, ModelError
from rbda_ros.node import messages
from rbda_ros.node.messages import LatestState
from rbda_ros.robot import Robot
from rbda_ros.srv import InverseDynamics

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
