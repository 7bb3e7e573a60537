"""The joints of a controller are compared with `command_joints` at activation."""

import pytest
from conversation import Diagnoses
from diagnostic_msgs.msg import DiagnosticStatus

from rbda_ros.demo.resources import share_file

URDF = share_file("config/robots/demo_leg.urdf").read_text()
LOOPS = str(share_file("config/robots/demo_leg_loops.yaml"))
MOTORS = ["hip_abduction_rotor", "hip_flexion_rotor"]


def controller(graph, joints):
    """A node like that of forward_command_controller."""
    client = graph.client()
    client.node.declare_parameter("joints", joints)
    return client, client.node.get_fully_qualified_name()


def found(client):
    _, values = Diagnoses(client).next()
    return values.get("joints of the controller", "")


@pytest.mark.parametrize(
    ("joints", "says"),
    [
        (MOTORS, "the same as of"),
        (MOTORS[::-1], "in another order: hip_flexion_rotor, hip_abduction_rotor; give"),
        (["left_motor", "right_motor"], "other joints: left_motor, right_motor; give"),
    ],
    ids=["same", "order", "names"],
)
def test_compares_with_the_joints_of_the_controller(graph, joints, says):
    client, name = controller(graph, joints)
    graph.serve(
        robot_description=URDF,
        loop_constraints=LOOPS,
        command_joints=MOTORS,
        command_controller=name,
    )
    client.until_active()
    diagnoses = Diagnoses(client)
    for _ in range(10):
        status, values = diagnoses.next()
        if says in values["joints of the controller"]:
            break
    assert says in values["joints of the controller"]
    if joints != MOTORS:
        assert status.level == DiagnosticStatus.ERROR and says in status.message
        assert client.set_parameter("command_joints", MOTORS).successful
    assert client.set_parameter("command_controller", "").successful
    assert "joints of the controller" not in diagnoses.next()[1]


def test_waits_for_a_controller_that_is_not_there(graph):
    client = graph.client()
    node = graph.serve(
        robot_description=URDF,
        loop_constraints=LOOPS,
        command_joints=MOTORS,
        command_controller="/nobody",
    )
    client.until_active()
    assert found(client) == "waiting for /nobody"
    client.set_parameter("command_controller", "not a name")
    assert "is no name of a node" in found(client)
    assert node.stop() == 0
