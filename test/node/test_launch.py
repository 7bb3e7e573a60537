"""The launch files, where launch is installed (it is not on PyPI)."""

import importlib.util
import shutil

import pytest
import yaml
from rbda_ros.srv import DescribeModel
from sensor_msgs.msg import JointState

from rbda_ros.demo.resources import share_file

pytest.importorskip("launch_ros")

DISPLAY = share_file("launch/display.launch.py")
DYNAMICS, DEMO = share_file("launch/dynamics.launch.py"), share_file("launch/demo.launch.py")
SIMULATION = share_file("launch/simulation.launch.py")
LEG = share_file("config/robots/demo_leg.urdf")


def parameters(folder, **values):
    file = folder / "parameters of mine.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    return str(file)


def test_two_demos_in_two_namespaces(graph):
    """Each with its own source of joint states; all that is launched ends with it."""
    launched = [graph.launch(DEMO, namespace=name) for name in ("left", "/right")]
    for name in ("left", "right"):
        client = graph.client(name)
        client.until_active()
        received = client.listen(JointState, "~/feedforward")
        client.until(lambda received=received: len(received) > 10)
    for program in launched:
        assert program.stop() == 0, program.log
        assert program.log.count("process has finished cleanly") == 2
        assert "Traceback" not in program.log


def test_a_simulated_robot_follows_the_node(graph):
    program = graph.launch(SIMULATION, namespace="lab")
    client = graph.client("lab")
    client.until_active()
    client.until(lambda: "largest error" in program.log)
    assert program.stop() == 0, program.log


def test_a_file_says_what_arguments_do_not(graph):
    file = parameters(graph.folder, autostart=False, robot_description=LEG.read_text())
    graph.launch(DYNAMICS, namespace="a", params_file=file)
    graph.launch(DYNAMICS, namespace="b", params_file=file, autostart="true")
    graph.client("b").until_active()
    assert graph.client("a").state == "unconfigured"


def test_a_file_may_have_substitutions(graph):
    loops = "$(dirname)/../config/robots/demo_leg_loops.yaml"
    file = parameters(graph.folder, loop_constraints=loops)
    graph.launch(DYNAMICS, description_file=str(LEG), params_file=file)
    client = graph.client()
    client.until_active()
    assert len(client.call(DescribeModel, "~/describe_model").constraints) > 0


@pytest.mark.skipif(shutil.which("xacro") is None, reason="xacro is not installed")
def test_xacro_files_with_spaces_in_their_names(graph):
    file = graph.folder / "my leg.urdf.xacro"
    file.write_text(LEG.read_text())
    graph.launch(DYNAMICS, description_file=str(file))
    client = graph.client()
    client.until_active()
    assert client.call(DescribeModel, "~/describe_model").robot_name == "demo_leg"


def test_a_file_that_is_not_there_ends_the_launch(graph):
    program = graph.launch(DYNAMICS, description_file=str(graph.folder / "nowhere.urdf"))
    assert program.wait() != 0
    assert "nowhere.urdf" in program.log


@pytest.mark.skipif(
    shutil.which("robot_state_publisher") is None and not importlib.util.find_spec("tf2_msgs"),
    reason="robot_state_publisher is not installed",
)
def test_the_display_closes_the_loops(graph):
    """Transforms of the rod and of the foot, which joint_states of the driver do not determine."""
    from tf2_msgs.msg import TFMessage

    graph.launch(DISPLAY)
    client = graph.client()
    client.until_active()
    received = client.listen(TFMessage, "/tf")
    client.until(
        lambda: (
            {"ankle_rod_link", "foot"}
            <= {
                transform.child_frame_id for message in received for transform in message.transforms
            }
        )
    )
