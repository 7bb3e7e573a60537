"""The services of the node: types, handlers, and the thread of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rbda_ros.cluster_tree.cancelling import CancelledWorkError
from rbda_ros.control.settings import Settings
from rbda_ros.errors import InputError, ModelError, one_line, readable
from rbda_ros.node.services.dynamics_services import (
    InverseDynamicsService,
    constrained_forward_dynamics,
    describe_actuation,
    forward_dynamics,
    inverse_kinematics,
    mass_matrix,
    operational_space_inertia,
)
from rbda_ros.node.services.in_place import for_service
from rbda_ros.node.services.model_services import describe_model, identify_payload, set_payload
from rbda_ros.node.services.trajectory_services import (
    LimitError,
    convert_state,
    convert_trajectory,
    trajectory_inverse_dynamics,
)
from rbda_ros.node.slow_services import SERVICE_QOS, SlowServices
from rbda_ros.robot import Robot
from rbda_ros.srv import (
    ConstrainedForwardDynamics,
    ConvertState,
    ConvertTrajectory,
    DescribeActuation,
    DescribeModel,
    ForwardDynamics,
    IdentifyPayload,
    InverseDynamics,
    InverseKinematics,
    MassMatrix,
    OperationalSpaceInertia,
    SetPayload,
    TrajectoryInverseDynamics,
)

Handler = Callable[[Robot, Settings, Any, Any], None]


class Service(NamedTuple):
    """A type, what answers it, and whether the node must be active."""

    kind: Any
    handler: Handler
    needs_active: bool = True


def advertise(node: Any) -> SlowServices:
    """Create every service of the node; they ask it for its model at each call.

    Returns:
        Those that are answered in other threads; to be ended with the node.
    """
    slow = SlowServices(node)
    latest = node.stream.latest_state
    # What controllers may ask for in every cycle: messages are converted in C.
    in_place = {
        "inverse_dynamics": Service(InverseDynamics, InverseDynamicsService(latest)),
        "forward_dynamics": Service(ForwardDynamics, partial(forward_dynamics, latest)),
    }
    plain = {
        "describe_model": Service(DescribeModel, describe_model, needs_active=False),
        "mass_matrix": Service(MassMatrix, partial(mass_matrix, latest)),
    }
    # Those that trace kernels on the way, or take long.
    long = {
        "constrained_forward_dynamics": Service(
            ConstrainedForwardDynamics, partial(constrained_forward_dynamics, latest)
        ),
        "operational_space_inertia": Service(
            OperationalSpaceInertia, partial(operational_space_inertia, latest)
        ),
        "trajectory_inverse_dynamics": Service(
            TrajectoryInverseDynamics, trajectory_inverse_dynamics
        ),
        "set_payload": Service(SetPayload, partial(set_payload, node), needs_active=False),
        "identify_payload": Service(IdentifyPayload, partial(identify_payload, node)),
        "convert_state": Service(ConvertState, convert_state),
        "convert_trajectory": Service(ConvertTrajectory, convert_trajectory),
        "describe_actuation": Service(DescribeActuation, partial(describe_actuation, latest)),
        "inverse_kinematics": Service(InverseKinematics, partial(inverse_kinematics, latest)),
    }
    for name, service in in_place.items():
        kind, answer = for_service(service.kind), _answer(node, service)
        node.create_service(kind, f"~/{name}", answer, qos_profile=SERVICE_QOS)
    for name, service in plain.items():
        answer = _answer(node, service)
        node.create_service(service.kind, f"~/{name}", answer, qos_profile=SERVICE_QOS)
    for name, service in long.items():
        slow.add(service.kind, f"~/{name}", _answer(node, service))
    return slow


def _answer(node: Any, service: Service) -> Callable[[Any, Any], Any]:
    kind, handler, needs_active = service

    def answer(request: Any, response: Any) -> Any:
        # An exception that leaves a callback ends the executor's spin: none may.
        try:
            handler(_model(node, needs_active), node.settings, request, response)
        except (InputError, ModelError) as error:
            refused = kind.Response(success=False, message=readable(str(error)))
            if isinstance(error, LimitError):
                refused.violations = error.violations
            return refused
        except CancelledWorkError:
            return kind.Response(success=False, message="the node is ending")
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
