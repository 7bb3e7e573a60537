"""Loads attached and taken off while the node runs."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from rbda_ros.cluster_tree.cancelling import check_cancelled
from rbda_ros.control.model_builder import warm
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, listed
from rbda_ros.robot import Robot
from rbda_ros.robot.payloads import Payload
from rbda_ros.srv import SetPayload


def set_payload(
    node: Any,
    robot: Robot,
    settings: Settings,
    request: SetPayload.Request,
    response: SetPayload.Response,
) -> None:
    """Put a robot with other payloads in the place of the node's. Not on the node's executor."""
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


def _wanted(robot: Robot, request: SetPayload.Request) -> dict[str, Payload]:
    """The payloads there should be, by name."""
    payloads = dict(robot.payloads)
    if not request.name:
        raise InputError("name is empty; give the load a name, to take it off by")
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
            f"there is no load '{request.name}' to take off (mass is zero); there are: "
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
