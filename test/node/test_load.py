"""Many things at once, and large ones: the newest counts, nobody starves, memory is bounded."""

from contextlib import suppress

import numpy as np
import pytest
from chain import chain
from geometry_msgs.msg import Inertia, Point, Vector3
from rbda_ros.msg import Contact, State
from rbda_ros.srv import (
    ConstrainedForwardDynamics,
    ConvertState,
    DescribeModel,
    InverseDynamics,
    OperationalSpaceInertia,
    SetPayload,
    TrajectoryInverseDynamics,
)
from ros_graph import Graph, own_domain
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import load_robot
from rbda_ros.node.slow_services import MAX_WAITING


def model_name(client):
    return client.call(DescribeModel, "~/describe_model").robot_name


def test_only_the_newest_of_many_descriptions_is_built(graph):
    node, client = graph.serve(robot_description=chain(3)), graph.client()
    client.until_active()
    publisher = client.describe(chain(20, "number_0"))
    for k in range(1, 40):
        publisher.publish(String(data=chain(20, f"number_{k}")))
        client.spin(0.02)
    client.until(lambda: model_name(client) == "number_39")
    # Few of those before it were ever finished: there was no time for them.
    assert node.log.count("the model is now") < 10


def test_a_load_that_meets_a_new_description_is_put_on_it(graph):
    graph.serve(robot_description=chain(20, "first"))
    client = graph.client()
    client.until_active()
    publisher = client.describe(chain(20, "first"))
    inertia = Inertia(m=1.0, com=Vector3(x=0.1, y=0.0, z=0.0))
    load = SetPayload.Request(name="load", link="link20", inertia=inertia)
    client.call(SetPayload, "~/set_payload", SetPayload.Request(name="none"))  # known by now
    publisher.publish(String(data=chain(20, "second")))
    answer = client.begin_call(SetPayload, "~/set_payload", load)
    client.until(answer.done)
    assert answer.result().success, answer.result().message
    client.until(lambda: model_name(client) == "second")
    described = client.call(DescribeModel, "~/describe_model")
    assert [payload.name for payload in described.payloads] == ["load"]
    assert described.total_mass == pytest.approx(21.0)


@pytest.fixture(scope="module")
def long_arm(tmp_path_factory):
    """A node on a chain of twenty links, and a client."""
    with own_domain() as domain:
        graph = Graph(domain, tmp_path_factory.mktemp("graph"))
        node, client = graph.serve(robot_description=chain(20)), graph.client()
        client.until_active()
        yield node, client
        graph.close()


def test_any_points_may_touch_and_memory_stays(long_arm):
    node, client = long_arm
    request = ConstrainedForwardDynamics.Request(state=State(position=[0.1] * 20))
    rng = np.random.default_rng(1)

    def ask(count):
        for _ in range(count):
            x, y, z = rng.normal(size=3)
            link = f"link{rng.integers(18, 21)}"
            request.contacts = [Contact(link=link, offset=Point(x=x, y=y, z=z))]
            answer = client.call(
                ConstrainedForwardDynamics, "~/constrained_forward_dynamics", request
            )
            assert answer.success, answer.message

    ask(20)
    before = node.resident()
    ask(60)
    assert node.resident() - before < 20.0


def test_many_frames_hold_up_nobody(long_arm):
    _, client = long_arm
    other = ConvertState.Request(position=[0.1] * 20)
    client.call(ConvertState, "~/convert_state", other)  # known by now
    request = OperationalSpaceInertia.Request(state=State(position=[0.1] * 20))
    request.frames = [f"link{1 + k % 20}" for k in range(40)]
    request.linear_only = True
    slow = client.begin_call(OperationalSpaceInertia, "~/operational_space_inertia", request)
    for _ in range(3):
        assert client.call(ConvertState, "~/convert_state", other).success
    assert not slow.done()
    client.until(slow.done)
    answer = slow.result()
    assert answer.success, answer.message
    robot = load_robot(chain(20))
    q = np.full(20, 0.1)
    J = np.vstack([robot.jacobian(q, frame)[:3] for frame in request.frames])
    expected = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    found = np.array(answer.inverse_inertia.data).reshape(120, 120)
    np.testing.assert_allclose(found, expected, 1e-8, 1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kind", "name", "field", "entries", "says"),
    [
        (OperationalSpaceInertia, "operational_space_inertia", "frames", ["link1"] * 65, "64 at"),
        (
            ConstrainedForwardDynamics,
            "constrained_forward_dynamics",
            "contacts",
            [Contact(link="link1")] * 33,
            "32 at most",
        ),
    ],
)
def test_says_how_much_is_too_much(long_arm, kind, name, field, entries, says):
    _, client = long_arm
    answer = client.call(kind, f"~/{name}", kind.Request(**{field: entries}))
    assert not answer.success
    assert says in answer.message


@pytest.mark.nightly
def test_long_trajectories_take_bounded_memory(long_arm):
    node, client = long_arm
    point = JointTrajectoryPoint(positions=[0.1] * 20, velocities=[0.2] * 20)
    before = node.resident()
    request = TrajectoryInverseDynamics.Request(trajectory=JointTrajectory(points=[point] * 50_001))
    name = "~/trajectory_inverse_dynamics"
    answer = client.call(TrajectoryInverseDynamics, name, request)
    assert not answer.success
    assert "50000 at most" in answer.message
    request.trajectory.points.pop()
    answer = client.call(TrajectoryInverseDynamics, name, request)
    assert answer.success, answer.message
    assert len(answer.trajectory.points) == 50_000
    assert node.resident("VmHWM") - before < 350.0


@pytest.mark.parametrize(
    "name",
    [
        "inverse_dynamics",
        # Beside other tests an answer of a hundred is still lost now and then.
        pytest.param("convert_state", marks=pytest.mark.nightly),
    ],
)
def test_a_burst_of_requests_is_answered(long_arm, name):
    _, client = long_arm
    kind = {"inverse_dynamics": InverseDynamics, "convert_state": ConvertState}[name]
    request = kind.Request()
    if name == "inverse_dynamics":
        request.state.position = [0.1] * 20
    else:
        request.position = [0.1] * 20
    client.call(kind, f"~/{name}", request, deep=True)
    for _ in range(3):  # on a loaded machine even a deep queue may lose one of a hundred
        futures = [client.begin_call(kind, f"~/{name}", request) for _ in range(100)]
        with suppress(AssertionError):
            client.until(lambda futures=futures: all(f.done() for f in futures), 7.0)
            break
    assert all(future.done() and future.result().success for future in futures)


@pytest.mark.nightly
def test_a_flood_of_requests_is_refused_in_words(long_arm):
    _, client = long_arm
    request = OperationalSpaceInertia.Request(state=State(position=[0.1] * 20))
    request.frames = [f"link{k}" for k in range(1, 21)]
    name = "~/operational_space_inertia"
    client.call(OperationalSpaceInertia, name, request, deep=True)
    futures = [
        client.begin_call(OperationalSpaceInertia, name, request) for _ in range(MAX_WAITING + 50)
    ]
    client.until(lambda: all(future.done() for future in futures))
    answers = [future.result() for future in futures]
    assert all(a.success or "ask again later" in a.message for a in answers)
    assert sum(a.success for a in answers) >= MAX_WAITING
