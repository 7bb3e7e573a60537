"""Services and clients with quick messages, beside plain ones: in memory, and over real DDS."""

import ctypes
import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rbda_ros.srv import InverseDynamics, MassMatrix
from ros_requests import wrench_on

from rbda_ros import srv
from rbda_ros.node.services import in_place
from rbda_ros.node.services.in_place import for_client, for_service

NAMES = [
    "ConstrainedForwardDynamics",
    "ForwardDynamics",
    "InverseDynamics",
    "MassMatrix",
    "OperationalSpaceInertia",
    "IdentifyPayload",
    "SetPayload",
    "TrajectoryInverseDynamics",
]


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


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def function(kind, name, *signature):
    """A C function that rclpy would call."""
    return ctypes.PYFUNCTYPE(*signature)(_pointer(getattr(kind, name), None))


def through_memory(message, kind):
    """A message turned into C by its class, and into Python by another."""
    plain = getattr(kind, "plain", kind)
    address = function(plain, "_CREATE_ROS_MESSAGE", ctypes.c_void_p)()
    put = (ctypes.c_bool, ctypes.py_object, ctypes.c_void_p)
    get = (ctypes.py_object, ctypes.c_void_p)
    try:
        function(type(message), "_CONVERT_FROM_PY", *put)(message, address)
        return function(kind, "_CONVERT_TO_PY", *get)(address)
    finally:
        function(plain, "_DESTROY_ROS_MESSAGE", None, ctypes.c_void_p)(address)


@pytest.mark.parametrize("name", NAMES)
def test_new_messages_are_as_those_of_ros(name):
    plain = getattr(srv, name)
    kind = for_client(plain)
    assert kind is not plain
    for ours, theirs in ((kind.Request, plain.Request), (kind.Response, plain.Response)):
        assert through_memory(ours(), theirs) == theirs()
        assert str(through_memory(theirs(), ours)) == str(ours())


TEXTS = st.lists(st.text("ab_é/", max_size=9), max_size=5)
NUMBERS = st.lists(st.floats(allow_nan=False), max_size=5)
WRENCHES = st.lists(st.tuples(st.text("ab", max_size=3), st.floats(-1e3, 1e3)), max_size=3)


@settings(max_examples=50, deadline=None)
@given(TEXTS, NUMBERS, NUMBERS, WRENCHES, st.floats(-1, 1))
def test_whatever_is_written_is_read_by_rclpy(names, position, acceleration, wrenches, w):
    kind = for_client(InverseDynamics)
    plain, ours = InverseDynamics.Request(), kind.Request()
    for request in (plain, ours):
        request.state.joint_names = names
        request.state.position = np.array(position).tolist()
        request.acceleration = acceleration
        request.state.base_pose.orientation.w = w
        request.external_wrenches = [wrench_on(link, [x] * 6) for link, x in wrenches]
    assert through_memory(ours, InverseDynamics.Request) == plain
    back = through_memory(plain, kind.Request)
    assert back.state.joint_names == names
    assert back.state.position.tolist() == position
    assert [wrench.header.frame_id for wrench in back.external_wrenches] == [w[0] for w in wrenches]
    assert through_memory(back, InverseDynamics.Request) == plain


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("positoin", [1.0], AttributeError),
        ("position", ["one"], ValueError),
        ("position", [[1.0]], ValueError),
        ("joint_names", [1], TypeError),
        ("joint_names", 1, TypeError),
        ("base_pose", 1.0, AttributeError),
    ],
)
def test_what_does_not_fit_is_an_error(field, value, error):
    request = for_client(InverseDynamics).Request()
    setattr(request.state, field, value)
    with pytest.raises(error):
        through_memory(request, InverseDynamics.Request)


def test_numbers_beyond_their_type_are_an_error():
    response = for_client(MassMatrix).Response()
    response.mass_matrix.rows = 2**32
    with pytest.raises(OverflowError, match="rows"):
        through_memory(response, MassMatrix.Response)


def test_messages_are_freed():
    kind = for_client(InverseDynamics)
    request = kind.Request(acceleration=[1.0] * 1000)
    request.state.joint_names = ["joint"] * 100
    request.external_wrenches = [wrench_on("link", [1.0] * 6)] * 10
    for k in range(2000):  # the second half takes some 15 MB, were they not
        through_memory(request, kind.Request)
        if k == 1000:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3000  # [kB]


def test_a_type_that_cannot_be_in_place_is_used_as_it_is(monkeypatch):
    from sensor_msgs.srv import SetCameraInfo  # it has arrays of fixed size

    assert for_service(SetCameraInfo) is SetCameraInfo
    assert for_client(SetCameraInfo) is SetCameraInfo

    in_place._service_type.cache_clear()
    monkeypatch.setattr(in_place, "c_messages", None)  # it was not built
    assert for_service(InverseDynamics) is InverseDynamics
    assert for_client(InverseDynamics) is InverseDynamics
    in_place._service_type.cache_clear()
