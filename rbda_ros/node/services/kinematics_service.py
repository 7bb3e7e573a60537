"""The service of inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbda_ros.control.parameter_maps import end_effectors
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError
from rbda_ros.node import messages
from rbda_ros.node.messages import LatestState
from rbda_ros.robot import Robot
from rbda_ros.robot.kinematic_tasks import (
    CenterOfMassTask,
    OrientationTask,
    PoseTask,
    PositionTask,
    PostureTask,
    Task,
)
from rbda_ros.robot.poses import pose_matrix
from rbda_ros.srv import InverseKinematics

MAX_TARGETS = 64
"""Frames of one request: for more, the kernels of their Jacobians would push out all others."""
TOLERANCE = 1e-8
"""Largest error [m, rad] where the request has none."""


def inverse_kinematics(
    latest: LatestState,
    robot: Robot,
    settings: Settings,
    request: InverseKinematics.Request,
    response: InverseKinematics.Response,
) -> None:
    """Answer with a position that brings frames to their targets."""
    messages.check_count("frames", request.frames, MAX_TARGETS)
    state, _ = messages.read_state(robot, settings, request.state, latest)
    tasks = _frame_tasks(request, settings)
    if request.center_of_mass_weight:
        target = messages.xyz(request.center_of_mass)
        tasks.append(CenterOfMassTask(target, request.center_of_mass_weight))
    if request.posture_weight:
        tasks.append(PostureTask(state.q, request.posture_weight))
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


def _frame_tasks(request: InverseKinematics.Request, settings: Settings) -> list[Task]:
    count = len(request.frames)
    places = messages.frames(request.frames, request.offsets, end_effectors(settings.end_effectors))
    kinds = _one_each("kinds", request.kinds, count, "pose")
    weights = _one_each("weights", request.weights, count, 1.0)
    targets = _one_each("targets", request.targets, count, None)
    tasks: list[Task] = []
    for k, (frame, kind, weight) in enumerate(zip(places, kinds, weights, strict=True)):
        pose = pose_matrix(messages.base_position(f"targets[{k}]", targets[k]))
        if kind == "pose":
            tasks.append(PoseTask(frame, pose, weight))
        elif kind == "position":
            tasks.append(PositionTask(frame, pose[:3, 3], weight))
        elif kind == "orientation":
            tasks.append(OrientationTask(frame, pose[:3, :3], weight))
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
