"""The node ends when told to, whatever it is at: exit code 0, and no crash."""

import signal
import time
from pathlib import Path

import pytest
from chain import chain
from geometry_msgs.msg import Inertia, Vector3
from rbda_ros.msg import State
from rbda_ros.srv import OperationalSpaceInertia, SetPayload


def ends_well(node, how=signal.SIGINT):
    """Whether it ends with exit code 0 and without a traceback, within the patience of `stop`."""
    code = node.stop(how)
    assert code == 0, node.log[-2000:]
    assert "Traceback" not in node.log
    assert "terminate called" not in node.log
    return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_while_a_long_robot_is_built(graph, how):
    node, client = graph.serve(robot_description=chain(100)), graph.client()
    assert client.state == "unconfigured"  # it answers: the model is being built
    client.spin(0.5)
    assert ends_well(node, how)


def test_while_a_payload_is_put_on(graph):
    node, client = graph.serve(robot_description=chain(30)), graph.client()
    client.until_active()
    inertia = Inertia(m=1.0, com=Vector3(x=0.1, y=0.0, z=0.0))
    asked = SetPayload.Request(name="load", link="link30", inertia=inertia)
    client.begin_call(SetPayload, "~/set_payload", asked)
    client.spin(0.3)
    assert ends_well(node)


@pytest.mark.nightly
def test_while_many_frames_are_asked_for(graph):
    node, client = graph.serve(robot_description=chain(30)), graph.client()
    client.until_active()
    request = OperationalSpaceInertia.Request(state=State(position=[0.1] * 30))
    request.frames = [f"link{1 + k % 30}" for k in range(60)]
    client.begin_call(OperationalSpaceInertia, "~/operational_space_inertia", request)
    client.spin(0.3)
    assert ends_well(node)


@pytest.mark.parametrize("library", ["_multiarray_umath", "_casadi", "_rclpy_pybind11"])
def test_while_it_imports(graph, library):
    node = graph.serve(robot_description=chain(10))
    maps = Path(f"/proc/{node.process.pid}/maps")
    while library not in maps.read_text():
        time.sleep(0.001)
        assert node.running
    assert ends_well(node)
