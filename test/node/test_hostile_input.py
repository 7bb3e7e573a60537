"""Input that means harm, or comes from a broken program: refused in a line, and nothing else."""

import struct

import pytest
from chain import chain
from conversation import Conversation
from geometry_msgs.msg import Inertia
from lifecycle_msgs.msg import Transition
from rbda_ros.msg import State
from rbda_ros.srv import DescribeModel, InverseDynamics, SetPayload
from rcl_interfaces.msg import Log
from ros_requests import wrench_on
from sensor_msgs.msg import JointState

from rbda_ros.errors import LONGEST_MESSAGE

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    "request_with_a_long_name",
    [
        InverseDynamics.Request(state=State(joint_names=[LONG], position=[0.0])),
        InverseDynamics.Request(
            state=State(position=[0.0] * 6), external_wrenches=[wrench_on(LONG, [0.0] * 6)]
        ),
        SetPayload.Request(name="load", link=LONG, inertia=Inertia(m=1.0)),
        SetPayload.Request(name=LONG),
    ],
)
def test_messages_do_not_echo_a_long_name(arm, request_with_a_long_name):
    client, _, _ = arm
    kind = SetPayload if hasattr(request_with_a_long_name, "link") else InverseDynamics
    name = "~/set_payload" if kind is SetPayload else "~/inverse_dynamics"
    answer = client.call(kind, name, request_with_a_long_name)
    assert not answer.success
    assert len(answer.message) <= LONGEST_MESSAGE + 10


@pytest.mark.parametrize("mass", [1e308, 1e12, float("inf")])
def test_no_load_is_that_heavy(arm, mass):
    client, _, robot = arm
    request = SetPayload.Request(name="load", link="tool0", inertia=Inertia(m=mass))
    answer = client.call(SetPayload, "~/set_payload", request)
    assert not answer.success
    assert "above 1e+09" in answer.message or "not finite" in answer.message
    assert client.call(DescribeModel, "~/describe_model").total_mass == pytest.approx(robot.mass)


def test_no_robot_writes_a_line_of_the_log(graph):
    node = graph.serve(robot_description=chain(2, "arm&#10;[ERROR] [dynamics]: forged"))
    client = graph.client()
    client.until_active()
    client.describe(chain(2, "b&#10;[ERROR] [dynamics]: forged too"))
    client.until(lambda: "the model is now" in node.log)
    assert "forged" in node.log
    assert not any(line.startswith("[ERROR]") for line in node.log.splitlines())


def test_no_file_is_read_that_only_the_node_may_read(graph):
    """Neither by path, nor by a link in a folder that files may be in; errors quote no file."""
    allowed = graph.folder / "allowed"
    allowed.mkdir()
    secret = graph.folder / "shadow"
    for path in (secret, allowed / "shadow"):
        path.write_text("root:$6$hunter2:19000:0\n")
    (allowed / "link").symlink_to(secret)
    graph.serve(autostart=False, robot_description=chain(2), model_folders=[str(allowed)])
    client = graph.client()
    logged = client.listen(Log, "/rosout")
    for path in (secret, allowed / "link", allowed / ".." / "shadow", "/etc/shadow", "shadow"):
        answer = client.set_parameter("loop_constraints", str(path))
        assert not answer.successful
        assert "outside the folders" in answer.reason and "hunter" not in answer.reason
    assert client.set_parameter("loop_constraints", str(allowed / "shadow")).successful
    assert not client.change_state(Transition.TRANSITION_CONFIGURE)
    client.until(lambda: any("problems" in each.msg for each in logged))
    assert not any("hunter" in each.msg for each in logged)
    assert not client.set_parameter("model_folders", ["/"]).successful


def test_names_given_twice_in_a_long_list_do_not_hold_up_efforts(arm):
    client, _, robot = arm
    talk = Conversation(client)
    names = [f"other_{k // 2}" for k in range(9_990)] + list(robot.joint_names)
    for _ in range(3):
        message = client.joint_states(names, [0.1] * len(names), [0.1] * len(names))
        talk.publisher.publish(message)
        assert talk.answer_to(robot.joint_names, [0.1] * 6, [0.2] * 6)


def big_endian(message):
    """A JointState as a computer of the other byte order writes it."""
    data = bytearray(b"\x00\x00\x00\x00")

    def number(form, value):
        size = struct.calcsize(form)
        data.extend(b"\x00" * (-(len(data) - 4) % size) + struct.pack(f">{form}", value))

    def text(value):
        number("I", len(value) + 1)
        data.extend(value.encode() + b"\x00")

    number("i", message.header.stamp.sec)
    number("I", message.header.stamp.nanosec)
    text(message.header.frame_id)
    number("I", len(message.name))
    for name in message.name:
        text(name)
    for field in (message.position, message.velocity, message.effort):
        number("I", len(field))
        for value in field:
            number("d", value)
    return bytes(data)


def test_a_computer_of_the_other_byte_order_is_answered_with_its_stamp(arm):
    client, _, robot = arm
    talk = Conversation(client)
    state = robot.joint_names, [0.1] * 6, [0.2] * 6
    expected = talk.answer_to(*state).effort

    def answered():
        message = client.joint_states(*state)
        talk.publisher.publish(big_endian(message))
        client.spin(0.02)
        return (found := talk.answered(message)) and list(found.effort) == list(expected)

    client.until(answered)
    assert all(isinstance(each, JointState) for each in talk.received)
