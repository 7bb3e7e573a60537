"""Starting, changing and stopping the node; and what it says when it cannot."""

import signal

import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from rbda_ros.srv import DescribeModel, InverseDynamics
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from ros_graph import own_domain

from rbda_ros.demo.resources import share_file
from rbda_ros.node.dynamics_node import DynamicsNode

LEG = share_file("config/robots/demo_leg.urdf").read_text()
OTHER_LEG = LEG.replace('name="demo_leg"', 'name="other_leg"')


def model_name(client):
    return client.call(DescribeModel, "~/describe_model").robot_name


def one_clear_line(program, *says):
    """Whether its last words are one line that says so, without a traceback."""
    assert "Traceback" not in program.log
    last = program.log.strip().splitlines()[-1]
    assert all(word in last for word in says), last
    return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_starts_from_a_parameter_and_ends_cleanly(graph, how):
    node, client = graph.serve(robot_description=LEG), graph.client()
    client.until_active()
    assert model_name(client) == "demo_leg"
    node.process.send_signal(how)  # as Ctrl-C under launch: by the terminal, and by launch
    assert node.stop(how) == 0
    assert "Traceback" not in node.log


def test_mjcf_is_a_description_too(graph):
    pytest.importorskip("mujoco")
    body = "<body><joint name='a' axis='0 1 0'/><geom type='box' size='.1 .1 .1' mass='2'/></body>"
    graph.serve(robot_description=f"<mujoco model='arm'><worldbody>{body}</worldbody></mujoco>")
    client = graph.client()
    client.until_active()
    assert model_name(client) == "arm"


def test_starts_from_a_topic_that_was_there_before(graph):
    client = graph.client()
    publisher = client.describe(LEG)
    graph.serve()
    client.until_active()
    assert publisher.get_subscription_count() == 1
    assert model_name(client) == "demo_leg"


def test_waits_for_the_topic_and_follows_it(graph):
    node, client = graph.serve(), graph.client()
    assert client.state == "unconfigured"
    answer = client.call(InverseDynamics, "~/inverse_dynamics")
    assert not answer.success
    assert "robot_description" in answer.message

    # A bad one first: the node says so, and goes on waiting.
    publisher = client.describe("<robot name='broken'>")
    client.until(lambda: "refused" in node.log)
    assert client.state == "unconfigured"

    publisher.publish(type_of(LEG))
    client.until_active()
    assert model_name(client) == "demo_leg"

    # A new one replaces it, a bad one does not.
    publisher.publish(type_of(OTHER_LEG))
    client.until(lambda: model_name(client) == "other_leg")
    publisher.publish(type_of(LEG.replace('child link="hip"', 'child link="nowhere"')))
    client.until(lambda: "'other_leg' stays" in node.log)
    assert client.state == "active"
    assert model_name(client) == "other_leg"
    one_clear_line(node, "robot_description refused", "nowhere")


def type_of(urdf):
    from std_msgs.msg import String

    return String(data=urdf)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"robot_description": "robot.urdf"}, ["'robot.urdf' is not XML", "not its path"]),
        ({"robot_description": "<robot name='a'><link"}, ["robot_description cannot be used"]),
        ({"robot_description": LEG, "loop_constraints": "/no/such.yaml"}, ["/no/such.yaml"]),
        ({"joint_state_timeout": 20.0}, ["joint_state_timeout", "out of range"]),
        ({"joint_state_timeout": "soon"}, ["joint_state_timeout", "DOUBLE"]),
        ({"gravity": [0.0, 0.0, -9810.0]}, ["gravity", "three finite numbers"]),
        ({"gravity": [9.81]}, ["gravity", "three finite numbers"]),
        ({"acceleration_source": "guess"}, ["acceleration_source", "zero, reference"]),
        ({"terms": ["weight"]}, ["terms: 'weight'", "gravity, coriolis, inertial, friction"]),
        ({"robot_description": LEG, "command_joints": ["toe"]}, ["command_joints: toe", "ankle"]),
    ],
)
def test_says_in_one_line_why_it_cannot_start(graph, parameters, says):
    node = graph.serve(**parameters)
    assert node.wait() == 1
    assert one_clear_line(node, *says)


def test_says_what_is_wrong_with_its_arguments(graph):
    node = graph.serve("--params-file", "/no/such/file.yaml")
    assert node.wait() == 2
    assert one_clear_line(node, "/no/such/file.yaml")
    node = graph.run("serve", "--robot", "leg.urdf")
    assert node.wait() == 2
    assert one_clear_line(node, "unrecognized arguments: --robot")


def test_by_hand(graph):
    node, client = graph.serve(autostart=False), graph.client()
    assert client.state == "unconfigured"

    # Nothing to configure from: the transition fails, and can be tried again.
    assert not client.change_state(Transition.TRANSITION_CONFIGURE)
    assert client.state == "unconfigured"
    assert one_clear_line(node, "no robot_description", "/robot_description")

    assert client.set_parameter("robot_description", "not XML").successful
    assert not client.change_state(Transition.TRANSITION_CONFIGURE)
    assert one_clear_line(node, "not XML")

    assert client.set_parameter("robot_description", LEG).successful
    configuring = client.begin_change_state(Transition.TRANSITION_CONFIGURE)
    assert client.state == "unconfigured"  # it answers while the model is built
    late = client.set_parameter("floating_base", True)
    assert "while unconfigured" in late.reason
    assert not configuring.done()
    client.until(configuring.done)
    assert configuring.result().success
    assert client.state == "inactive"
    assert model_name(client) == "demo_leg"
    answer = client.call(InverseDynamics, "~/inverse_dynamics")
    assert not answer.success
    assert "inactive" in answer.message

    refused = client.set_parameter("floating_base", True)
    assert not refused.successful
    assert "while unconfigured" in refused.reason

    assert client.change_state(Transition.TRANSITION_ACTIVATE)
    # A transition that does not exist is refused, and the node lives on.
    assert not client.change_state(Transition.TRANSITION_ACTIVATE)
    assert client.state == "active"

    assert client.change_state(Transition.TRANSITION_DEACTIVATE)
    assert client.change_state(Transition.TRANSITION_CLEANUP)
    assert client.state == "unconfigured"
    assert not client.call(DescribeModel, "~/describe_model").success

    assert client.set_parameter("floating_base", True).successful
    assert client.change_state(Transition.TRANSITION_CONFIGURE)
    assert client.call(DescribeModel, "~/describe_model").floating_base
    assert "Traceback" not in node.log


def test_recovers_from_an_error_in_a_transition(ros):
    node = DynamicsNode(parameter_overrides=[Parameter("robot_description", value=LEG)])
    create_timer = node.create_timer

    def fail(*args, **kwargs):
        raise RuntimeError("out of resources")

    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    node.create_timer = fail
    assert node.trigger_activate() == TransitionCallbackReturn.ERROR
    assert not node.active
    assert node.robot is None
    node.create_timer = create_timer
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    assert node.active
    node.destroy_node()


@pytest.fixture
def ros():
    """ROS for a node in this process."""
    with own_domain() as domain:
        rclpy.init(domain_id=domain)
        yield
        rclpy.shutdown()


def test_two_robots_in_two_namespaces(graph):
    graph.serve("-r", "__ns:=/left", robot_description=LEG)
    graph.serve("-r", "__ns:=/right", robot_description=OTHER_LEG)
    left, right = graph.client("/left"), graph.client("/right")
    left.until_active()
    right.until_active()
    assert model_name(left) == "demo_leg"
    assert model_name(right) == "other_leg"
    # A description for one is not for the other.
    publisher = left.describe(LEG.replace('name="demo_leg"', 'name="third_leg"'))
    left.until(lambda: model_name(left) == "third_leg")
    assert publisher.get_subscription_count() == 1
    assert model_name(right) == "other_leg"


@pytest.mark.parametrize("home", [None, "/proc/nowhere"])
def test_needs_no_home(graph, home):
    node = graph.serve(robot_description=LEG, environment={"HOME": home, "ROS_LOG_DIR": None})
    client = graph.client()
    client.until_active()
    assert "the log is in" in node.log
    assert node.stop() == 0


def test_writes_nothing_but_log_and_cache(graph, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    before = {path for path in graph.folder.rglob("*") if home not in (path, *path.parents)}
    away = {"HOME": str(home)} | dict.fromkeys(["ROS_LOG_DIR", "XDG_CACHE_HOME", "RBDA_ROS_CACHE"])
    node, client = graph.serve(robot_description=LEG, environment=away), graph.client()
    client.until_active()
    assert node.stop() == 0
    written = {path.relative_to(home).parts[:2] for path in home.rglob("*") if path.is_file()}
    assert written == {(".ros", "log"), (".cache", "rbda_ros")}
    after = {path for path in graph.folder.rglob("*") if home not in (path, *path.parents)}
    ours = {node.log_file, graph.folder / "parameters_0.yaml"}
    assert after - before <= ours
