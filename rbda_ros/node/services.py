"""The services of the node: requests to the model's vectors, and answers back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rbda_ros.errors import InputError, ModelError
from rbda_ros.node import describe, state
from rbda_ros.node.model import one_line
from rbda_ros.srv import (
    DescribeModel,
    ForwardDynamics,
    InverseDynamics,
    MassMatrix,
    OperationalSpaceInertia,
    SetPayload,
    TrajectoryInverseDynamics,
)

if TYPE_CHECKING:
    from rbda_ros.robot import Robot

Handler = Callable[["Robot", Any, Any], None]


def inverse_dynamics(robot: Robot, request: Any, response: Any) -> None:
    """Answer with the efforts on the actuated joints that give an acceleration."""
    q, qd, joints = state.state_vectors(robot, request.state)
    ydd = state.acceleration_vector(robot, joints, request.acceleration, request.base_acceleration)
    wrenches = state.wrench_vectors(robot, request.external_wrenches)
    tau = robot.inverse_dynamics(q, qd, ydd, wrenches)
    response.joint_names = list(robot.actuated_joint_names)
    response.effort = robot.actuator_efforts(q, tau).tolist()
    if robot.floating_base:
        force, torque = response.base_wrench.force, response.base_wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = tau[:6].tolist()


def _not_yet(what: str) -> Handler:
    def refuse(robot: Robot, request: Any, response: Any) -> None:
        raise InputError(f"{what} is not implemented yet in this version of rbda_ros")

    return refuse


# Service name: (type, handler, whether the node must be active).
SERVICES: dict[str, tuple[Any, Handler, bool]] = {
    "describe_model": (DescribeModel, describe.describe_model, False),
    "inverse_dynamics": (InverseDynamics, inverse_dynamics, True),
    "forward_dynamics": (ForwardDynamics, _not_yet("forward dynamics"), True),
    "operational_space_inertia": (
        OperationalSpaceInertia,
        _not_yet("the operational-space inertia"),
        True,
    ),
    "mass_matrix": (MassMatrix, _not_yet("the mass matrix"), True),
    "trajectory_inverse_dynamics": (
        TrajectoryInverseDynamics,
        _not_yet("inverse dynamics of trajectories"),
        True,
    ),
    "set_payload": (SetPayload, _not_yet("changing payloads"), True),
}


def advertise(node: Any) -> None:
    """Create every service on the node; it asks the node for its model at each call."""
    for name, (kind, handler, needs_active) in SERVICES.items():
        node.create_service(kind, f"~/{name}", _answer(node, handler, needs_active))


def _answer(node: Any, handler: Handler, needs_active: bool) -> Callable[[Any, Any], Any]:
    def answer(request: Any, response: Any) -> Any:
        # An exception that leaves a callback ends the executor's spin: none may.
        try:
            handler(_model(node, needs_active), request, response)
            response.success = True
        except (InputError, ModelError) as error:
            response.success, response.message = False, str(error)
        except Exception as error:  # a bug of ours; the caller still gets an answer
            response.success, response.message = False, f"internal error: {one_line(error)}"
            node.get_logger().error(
                f"service call failed: {type(error).__name__}: {one_line(error)}"
            )
        return response

    return answer


def _model(node: Any, needs_active: bool) -> Robot:
    if node.robot is None:
        raise InputError(
            "no model yet: the node is not configured; give it a robot_description "
            "(parameter or topic) and configure it"
        )
    if needs_active and not node.active:
        raise InputError("the node is inactive; activate it")
    return node.robot
