"""The services of the node: requests to the model's vectors, and answers back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rbda_ros.errors import InputError, ModelError
from rbda_ros.msg import Matrix
from rbda_ros.node import messages
from rbda_ros.node.end_effectors import end_effectors
from rbda_ros.node.model_builder import one_line
from rbda_ros.node.parameters import Settings
from rbda_ros.node.services.actuation_service import describe_actuation
from rbda_ros.node.services.contact_service import constrained_forward_dynamics
from rbda_ros.node.services.conversion_service import (
    LimitError,
    convert_state,
    convert_trajectory,
)
from rbda_ros.node.services.describe_model import describe_model
from rbda_ros.node.services.in_place import for_service
from rbda_ros.node.services.inverse_dynamics_service import InverseDynamicsService
from rbda_ros.node.services.payload_service import set_payload
from rbda_ros.node.services.slow_services import SlowServices
from rbda_ros.node.services.trajectory_service import trajectory_inverse_dynamics
from rbda_ros.srv import (
    ConstrainedForwardDynamics,
    ConvertState,
    ConvertTrajectory,
    DescribeActuation,
    DescribeModel,
    ForwardDynamics,
    InverseDynamics,
    MassMatrix,
    OperationalSpaceInertia,
    SetPayload,
    TrajectoryInverseDynamics,
)

if TYPE_CHECKING:
    from rbda_ros.robot.robot import Robot

Handler = Callable[["Robot", Settings, Any, Any], None]

AXES = ("x", "y", "z", "rx", "ry", "rz")


def forward_dynamics(robot: Robot, settings: Settings, request: Any, response: Any) -> None:
    """Answer with the acceleration of every joint that efforts give."""
    q, yd, _ = messages.state_vectors(robot, request.state)
    names = request.effort_joint_names or robot.actuated_joint_names
    efforts = messages.numbers_or_zero("effort", request.effort, len(names))
    wrenches = messages.wrench_vectors(robot, request.external_wrenches)
    tau = messages.spanning_efforts(robot, names, efforts)
    friction = "friction" in settings.terms
    ydd = robot.forward_dynamics(q, yd, tau, wrenches, friction=friction)
    messages.fill_accelerations(robot, robot.spanning_acceleration(q, yd, ydd), response)


def mass_matrix(robot: Robot, settings: Settings, request: Any, response: Any) -> None:
    """Answer with the terms of the equation of motion."""
    q, yd, _ = messages.state_vectors(robot, request.state)
    names = _coordinates(robot)
    response.joint_names = list(robot.independent_joint_names)
    response.mass_matrix = _matrix(robot.mass_matrix(q), names, names)
    response.bias = messages.sequence(robot.bias_force(q, yd))
    response.gravity = messages.sequence(robot.gravity_force(q))


def operational_space_inertia(
    robot: Robot, settings: Settings, request: Any, response: Any
) -> None:
    """Answer with the inertia that frames show to an outside force."""
    q, _, _ = messages.state_vectors(robot, request.state)
    points = end_effectors(settings.end_effectors)
    frames = messages.frames(request.frames, request.offsets, points)
    space = robot.operational_space_inertia(q, frames, request.damping, request.linear_only)
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
    link = robot.tree.spanning.bodies[0].name if robot.floating_base else ""
    base = [f"{link}.{axis}" for axis in AXES] if link else []
    return [*base, *robot.independent_joint_names]


def _matrix(values: Any, row_names: list[str], col_names: list[str]) -> Matrix:
    rows, cols = values.shape
    data = messages.sequence(values)
    return Matrix(rows=rows, cols=cols, row_names=row_names, col_names=col_names, data=data)


class Service(NamedTuple):
    """A type, what answers it, and whether the node must be active."""

    kind: Any
    handler: Handler
    needs_active: bool = True


def advertise(node: Any) -> SlowServices:
    """Create every service of the node; they ask it for its model at each call.

    Returns:
        Those that are answered in another thread; to be closed with the node.
    """
    slow = SlowServices(node)
    # What controllers may ask for in every cycle: messages are read and written in place.
    in_place = {
        "inverse_dynamics": Service(InverseDynamics, InverseDynamicsService()),
        "forward_dynamics": Service(ForwardDynamics, forward_dynamics),
    }
    plain = {
        "describe_model": Service(DescribeModel, describe_model, needs_active=False),
        "mass_matrix": Service(MassMatrix, mass_matrix),
    }
    # Those that trace kernels on the way, or take long.
    trajectories = partial(trajectory_inverse_dynamics, slow.ending)
    payloads = partial(set_payload, node, slow.ending)
    long = {
        "constrained_forward_dynamics": Service(
            ConstrainedForwardDynamics, constrained_forward_dynamics
        ),
        "operational_space_inertia": Service(OperationalSpaceInertia, operational_space_inertia),
        "trajectory_inverse_dynamics": Service(TrajectoryInverseDynamics, trajectories),
        "set_payload": Service(SetPayload, payloads, needs_active=False),
        "convert_state": Service(ConvertState, convert_state),
        "convert_trajectory": Service(ConvertTrajectory, convert_trajectory),
        "describe_actuation": Service(DescribeActuation, describe_actuation),
    }
    for name, service in in_place.items():
        node.create_service(for_service(service.kind), f"~/{name}", _answer(node, service))
    for name, service in plain.items():
        node.create_service(service.kind, f"~/{name}", _answer(node, service))
    for name, service in long.items():
        slow.add(service.kind, f"~/{name}", _answer(node, service))
    slow.start()
    return slow


def _answer(node: Any, service: Service) -> Callable[[Any, Any], Any]:
    kind, handler, needs_active = service

    def answer(request: Any, response: Any) -> Any:
        # An exception that leaves a callback ends the executor's spin: none may.
        try:
            handler(_model(node, needs_active), node.settings, request, response)
        except (InputError, ModelError) as error:
            refused = kind.Response(success=False, message=str(error))
            if isinstance(error, LimitError):
                refused.violations = error.violations
            return refused
        except Exception as error:  # a bug of ours; the caller still gets an answer
            node.get_logger().error(
                f"service call failed: {type(error).__name__}: {one_line(error)}"
            )
            return kind.Response(success=False, message=f"internal error: {one_line(error)}")
        response.success = True
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
