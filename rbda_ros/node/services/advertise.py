"""The services of the node: types, handlers, and the thread of each."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

from rbda_ros import srv
from rbda_ros.cluster_tree.cancelling import CancelledWorkError
from rbda_ros.errors import InputError, ModelError, one_line, readable
from rbda_ros.node.messages import Call
from rbda_ros.node.services import dynamics_services as dynamics
from rbda_ros.node.services import model_services as model
from rbda_ros.node.services import trajectory_services as trajectory
from rbda_ros.node.services.in_place import for_service
from rbda_ros.node.slow_services import SERVICE_QOS, SlowServices
from rbda_ros.robot import Robot

Handler = Callable[[Call, Any, Any], None]


class Runs(Enum):
    """Where a service runs, and by what its messages are converted."""

    ON_EXECUTOR = auto()
    IN_PLACE = auto()
    """On the executor, messages converted in C: controllers may call it in every cycle."""
    IN_THREAD = auto()
    """Its own: it traces kernels, or takes long."""


class Service(NamedTuple):
    """A type, what answers it, and whether the node must be active. Its name is the handler's."""

    kind: Any
    handler: Handler
    runs: Runs
    needs_active: bool = True


SERVICES = (
    Service(srv.InverseDynamics, dynamics.inverse_dynamics, Runs.IN_PLACE),
    Service(srv.ForwardDynamics, dynamics.forward_dynamics, Runs.IN_PLACE),
    Service(srv.DescribeModel, model.describe_model, Runs.ON_EXECUTOR, needs_active=False),
    Service(srv.MassMatrix, dynamics.mass_matrix, Runs.ON_EXECUTOR),
    Service(srv.ConstrainedForwardDynamics, dynamics.constrained_forward_dynamics, Runs.IN_THREAD),
    Service(srv.OperationalSpaceInertia, dynamics.operational_space_inertia, Runs.IN_THREAD),
    Service(srv.TrajectoryInverseDynamics, trajectory.trajectory_inverse_dynamics, Runs.IN_THREAD),
    Service(srv.SetPayload, model.set_payload, Runs.IN_THREAD, needs_active=False),
    Service(srv.IdentifyPayload, model.identify_payload, Runs.IN_THREAD),
    Service(srv.ConvertState, trajectory.convert_state, Runs.IN_THREAD),
    Service(srv.ConvertTrajectory, trajectory.convert_trajectory, Runs.IN_THREAD),
    Service(srv.DescribeActuation, dynamics.describe_actuation, Runs.IN_THREAD),
    Service(srv.InverseKinematics, dynamics.inverse_kinematics, Runs.IN_THREAD),
)


def advertise(node: Any) -> SlowServices:
    """Create every service of the node; they ask it for its model at each call.

    Returns:
        Those that are answered in other threads; to be ended with the node.
    """
    slow = SlowServices(node)
    for service in SERVICES:
        name, answer = f"~/{service.handler.__name__}", answering(node, service)
        if service.runs is Runs.IN_THREAD:
            slow.add(service.kind, name, answer)
            continue
        kind = for_service(service.kind) if service.runs is Runs.IN_PLACE else service.kind
        node.create_service(kind, name, answer, qos_profile=SERVICE_QOS)
    return slow


def answering(node: Any, service: Service) -> Callable[[Any, Any], Any]:
    """The callback of a service: fills in a response, or says in it why there is none."""
    kind = service.kind

    def answer(request: Any, response: Any) -> Any:
        # An exception that leaves a callback ends the executor's spin: none may.
        try:
            robot = _model(node, service.needs_active)
            call = Call(robot, node.settings, node.stream.latest_state, node)
            service.handler(call, request, response)
        except (InputError, ModelError) as error:
            refused = kind.Response(success=False, message=readable(str(error)))
            if isinstance(error, trajectory.LimitError):
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
