"""The service that controllers call in every cycle: efforts that give an acceleration.

Most requests are about the independent joints, with no wrenches from outside. These are answered
in machine code from the request to the response, where messages are in place (`in_place`). All
others, and those that it does not answer, go by the methods of the robot. Both give the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rbda_ros.kernels.background import Lazy
from rbda_ros.node import messages
from rbda_ros.node.joint_map import Vector
from rbda_ros.node.parameters import Settings
from rbda_ros.node.services.native_answer import native_answer
from rbda_ros.robot import Robot

NO_WRENCH: Vector = np.zeros(6)


class InverseDynamicsService:
    """Answers requests, in one thread."""

    def __init__(self) -> None:
        self._robot: Robot | None = None  # that the last answer was for
        self._native: Lazy[Callable[[], bool]] | None = None  # for this robot

    def __call__(self, robot: Robot, settings: Settings, request: Any, response: Any) -> None:
        """Answer with the efforts on the actuated joints that give an acceleration."""
        friction = "friction" in settings.terms
        if robot is self._robot and not friction and self._in_machine_code(robot, request):
            return  # but for the forces, the response is as it was
        efforts, tau = _inverse_dynamics(robot, request, friction)
        response.joint_names = robot.actuated_joint_names
        response.effort = messages.sequence(efforts)
        base = response.base_wrench
        messages.fill(base.force, base.torque, tau[:6] if robot.floating_base else NO_WRENCH)
        if robot is not self._robot:
            self._robot, self._native = robot, None
            if isinstance(request, ctypes.Structure):  # in place
                make = partial(native_answer, robot, request, response)
                self._native = Lazy("the service inverse_dynamics", make)
                self._native.request()

    def _in_machine_code(self, robot: Robot, request: Any) -> bool:
        """Write efforts and base wrench, if that can be."""
        answer = None if self._native is None else self._native.value
        if answer is None:
            return False
        names = request.state.joint_names
        return answer() if not names or tuple(names) == robot.independent_joint_names else False


def _inverse_dynamics(robot: Robot, request: Any, friction: bool) -> tuple[Vector, Vector]:
    """Efforts (actuated,) and force on y (ny,) for any request."""
    state, joints = messages.read_state(robot, request.state)
    wanted = messages.numbers_or_zero("acceleration", request.acceleration, joints.size)
    base = request.base_acceleration
    of_base = messages.six("base_acceleration", base) if robot.floating_base else None
    ydd = messages.acceleration_vector(robot, joints, state, wanted, of_base)
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    return robot.inverse_dynamics_efforts(state, state.yd, ydd, wrenches, friction=friction)
