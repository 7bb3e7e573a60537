"""Services and clients with messages in place, beside plain ones, over real DDS."""

import numpy as np
import pytest
from rbda_ros.srv import InverseDynamics
from ros_requests import wrench_on

from rbda_ros.node.services import in_place
from rbda_ros.node.services.in_place import for_client, for_service


def answer(request, response):
    """Twice the positions, under the names of the request; no position is refused."""
    if not len(request.state.position):
        return InverseDynamics.Response(success=False, message="no position")
    response.success, response.message = True, f"{len(request.external_wrenches)} wrenches"
    response.joint_names = request.state.joint_names
    response.effort = [2.0 * x for x in request.state.position]
    response.base_wrench.force.x = sum(w.wrench.force.x for w in request.external_wrenches)
    response.base_wrench.torque.z = request.state.base_pose.orientation.w
    return response


@pytest.mark.parametrize("client_type", [for_client, lambda kind: kind], ids=["in place", "plain"])
@pytest.mark.parametrize(
    "service_type", [for_service, lambda kind: kind], ids=["in place", "plain"]
)
def test_requests_and_responses_arrive_as_they_were_sent(graph, service_type, client_type):
    client = graph.client()
    client.node.create_service(service_type(InverseDynamics), "dynamics/double", answer)
    kind = client_type(InverseDynamics)
    for size in (3, 3, 1, 30, 0, 2):
        request, names = kind.Request(), [f"joint_{k}_é" for k in range(size)]
        request.state.joint_names, request.state.position = names, np.arange(float(size)).tolist()
        request.state.base_pose.orientation.w = 0.5
        request.external_wrenches = [
            wrench_on(f"link_{k}", [k, 0, 0, 0, 0, 0]) for k in range(size)
        ]
        found = client.call(kind, "~/double", request)
        if not size:
            assert (found.success, found.message) == (False, "no position")
            continue
        assert (found.success, found.message) == (True, f"{size} wrenches")
        assert list(found.joint_names) == names
        assert list(found.effort) == [2.0 * k for k in range(size)]
        assert found.base_wrench.force.x == sum(range(size))
        assert found.base_wrench.torque.z == 0.5


def test_a_type_that_cannot_be_in_place_is_used_as_it_is(monkeypatch):
    from sensor_msgs.srv import SetCameraInfo  # it has arrays of fixed size

    assert for_service(SetCameraInfo) is SetCameraInfo
    assert for_client(SetCameraInfo) is SetCameraInfo

    def forbidden(*_):
        raise OSError("memory cannot be made executable")

    monkeypatch.setattr(in_place, "_CREATE", forbidden)
    assert for_service(InverseDynamics) is InverseDynamics
    assert for_client(InverseDynamics) is InverseDynamics
