"""Maps by joint as nested parameters, declared from the joints of the robot."""

import math

import numpy as np
import pytest
import yaml
from rbda_ros.msg import State
from rbda_ros.srv import OperationalSpaceInertia
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import ListParameters

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file

URDF = share_file("config/robots/demo_leg.urdf").read_text()
LOOPS = str(share_file("config/robots/demo_leg_loops.yaml"))
Y, STILL = [0.1, 0.3, 0.9, -0.2], [0.0] * 4
NAMES = ["hip_abduction", "hip_flexion", "knee", "ankle"]


def test_nested_parameters_of_joints(graph):
    """Given at the start, listed, set while it runs, and rejected with the reason."""
    from conversation import Conversation

    graph.serve(
        robot_description=URDF,
        loop_constraints=LOOPS,
        **{"effort_limits.knee_rotor": 0.01, "gains.knee.stiffness": 3},
    )
    client = graph.client()
    client.until_active()
    listed = client.call(ListParameters, "~/list_parameters", ListParameters.Request())
    names = set(listed.result.names)
    assert {"effort_limits.knee_rotor", "gains.knee.damping", "joint_offsets.ankle"} <= names
    assert not {"effort_limits", "joint_offsets", "stiffness", "damping"} & names
    assert client.parameter("gains.knee.stiffness").integer_value == 3
    assert math.isinf(client.parameter("effort_limits.hip_flexion_rotor").double_value)
    talk = Conversation(client)

    def knee():
        answer = talk.answer_to(NAMES, Y, STILL)
        return abs(dict(zip(answer.name, answer.effort, strict=True))["knee_rotor"])

    assert knee() == pytest.approx(0.01)
    assert client.set_parameter("effort_limits.knee_rotor", 0.02).successful
    assert knee() == pytest.approx(0.02)
    assert client.set_parameter("effort_limits.knee_rotor", math.inf).successful
    assert knee() > 0.05
    # The old form still works, and replaces the whole map.
    assert client.set_parameter("effort_limits", "{knee_rotor: 0.03}").successful
    assert knee() == pytest.approx(0.03)
    for name, value, why in (
        ("effort_limits.knee_rotor", -1.0, "of zero or more"),
        ("effort_limits.knee_rotor", "much", "give a number"),
        ("effort_limits.nothing", 1.0, "no such parameter"),
        ("effort_limitz", 1.0, "no such parameter"),
        ("effort_limits", 1.0, "YAML text"),
    ):
        answer = client.set_parameter(name, value)
        assert not answer.successful and why in answer.reason, name
    assert knee() == pytest.approx(0.03)


def test_a_limit_of_a_joint_that_is_not_there_stops_the_start(graph):
    node = graph.serve(
        robot_description=URDF, loop_constraints=LOOPS, **{"effort_limits.kneee_rotor": 0.01}
    )
    assert node.wait() != 0
    assert "effort_limits.kneee_rotor: no such joint" in node.log


def test_end_effectors_are_nested_parameters(graph):
    """Given at the start, added and removed while the node runs."""
    graph.serve(
        robot_description=URDF,
        loop_constraints=LOOPS,
        **{"end_effectors.toe.link": "foot", "end_effectors.toe.xyz": [0.15, 0.0, -0.05]},
    )
    client = graph.client()
    client.until_active()

    def lever(name):
        request = OperationalSpaceInertia.Request(frames=[name], state=State(position=Y))
        return client.call(OperationalSpaceInertia, "~/operational_space_inertia", request)

    toe = lever("toe")
    assert toe.success, toe.message
    robot = load_robot(URDF, LOOPS)
    wanted = robot.jacobian(robot.close(Y), ("foot", [0.15, 0.0, -0.05]))
    np.testing.assert_allclose(
        np.reshape(toe.jacobian.data, wanted.shape), wanted, rtol=1e-9, atol=1e-12
    )
    assert not lever("heel").success
    answer = client.set_parameter("end_effectors.heel.xyz", [0.0, 0.0, 0.0])
    assert not answer.successful and "link" in answer.reason
    assert client.set_parameter("end_effectors.heel.link", "foot").successful
    assert client.set_parameter("end_effectors.heel.xyz", [-0.05, 0.0, -0.05]).successful
    assert lever("heel").success and lever("toe").success
    answer = client.set_parameter("end_effectors.heel.link", "hoof")
    assert not answer.successful and "'hoof'" in answer.reason
    assert client.set_parameter("end_effectors.heel.link", "").successful
    assert not lever("heel").success and lever("toe").success


def test_empty_lists(graph):
    """An empty list is written as one: in a file, and while the node runs."""
    graph.serve(robot_description=URDF, loop_constraints=LOOPS, command_joints=[], model_folders=[])
    client = graph.client()
    client.until_active()
    assert client.parameter("command_joints").type == ParameterType.PARAMETER_STRING_ARRAY
    assert client.set_parameter("command_joints", ["knee_rotor"]).successful
    topics = lambda: dict(client.node.get_topic_names_and_types())  # noqa: E731
    client.until(lambda: "/dynamics/effort_commands" in topics())
    assert client.set_parameter("command_joints", []).successful
    client.until(lambda: "/dynamics/effort_commands" not in topics())
    for wrong in ([1, 2], "knee_rotor", 3):
        answer = client.set_parameter("command_joints", wrong)
        assert not answer.successful and "list of names" in answer.reason


@pytest.mark.parametrize("wanted", ["best_effort", "reliable"])
def test_reliability_of_commands(graph, wanted):
    graph.serve(robot_description=URDF, loop_constraints=LOOPS, command_reliability=wanted)
    client = graph.client()
    client.until_active()
    for topic in ("/dynamics/reference", "/dynamics/joint_commands", "/joint_states"):
        found = lambda topic=topic: client.node.get_subscriptions_info_by_topic(topic)  # noqa: E731
        client.until(found)
        (info,) = found()
        expected = "best_effort" if topic == "/joint_states" else wanted
        assert info.qos_profile.reliability.name.lower() == expected, topic


def test_recordings_read_nested_parameters(tmp_path):
    """The same file serves the node and `rbda_ros label --params`."""
    from rbda_ros.cli.label import read_settings

    file = tmp_path / "dynamics.yaml"
    file.write_text(
        "/**:\n  ros__parameters:\n    effort_limits: {knee_rotor: 12}\n"
        "    gains:\n      knee: {stiffness: 80.0, damping: 2.0}\n      ankle: {stiffness: 3.0}\n"
    )
    settings = read_settings(file)
    assert yaml.safe_load(settings.effort_limits) == {"knee_rotor": 12}
    assert yaml.safe_load(settings.stiffness) == {"knee": 80.0, "ankle": 3.0}
    assert yaml.safe_load(settings.damping) == {"knee": 2.0}
