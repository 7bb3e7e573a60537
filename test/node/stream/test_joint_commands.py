"""Commands in joint space into motor space, between two processes."""

from concurrent.futures import Future
from itertools import permutations

import numpy as np
import pytest
from conversation import Conversation, Diagnoses
from rbda_ros.node.stream.joint_commands import MOST_WAYS, JointCommands
from rbda_ros.node.stream.ros_codec import RosCodec
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbda_ros import load_robot
from rbda_ros.control.rejections import RefusalError
from rbda_ros.demo.resources import share_file
from rbda_ros.node.parameters import Settings

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
JOINTS = ("hip_abduction", "hip_flexion", "knee", "ankle")
Y = np.array([0.1, 0.3, 0.9, -0.1])
MEASURED = np.array([0.12, 0.25, 0.95, -0.05])
YD = np.array([0.5, -1.0, 2.0, 0.3])


class Commander:
    """Publishes commands beside joint states, and hears what they mean for the motors."""

    def __init__(self, client):
        self.client = client
        self.talk = Conversation(client)
        self.commands = client.publisher(JointState, "~/joint_commands")
        self.heard = client.listen(JointState, "~/motor_commands")

    def message(self, names=JOINTS, position=(), velocity=(), effort=(), age=0.0):
        message = self.client.joint_states(names, list(position), list(velocity), age=age)
        message.effort = list(effort)
        return message

    def answer_to(self, state=True, **command):
        for _ in range(50):
            if state:
                self.talk.answer_to(JOINTS, MEASURED.tolist(), YD.tolist())
            message = self.message(**command)
            self.commands.publish(message)
            self.client.spin(0.03)
            for heard in self.heard:
                if heard.header.stamp == message.header.stamp:
                    return heard
        raise AssertionError("no motor command")


@pytest.fixture(scope="module")
def commander(leg):
    return Commander(leg[0])


def test_position_velocity_and_effort(leg, commander):
    _, _, robot = leg
    effort = np.array([3.0, -4.0, 5.0, 2.0])
    answer = commander.answer_to(position=Y, velocity=YD, effort=effort)
    assert tuple(answer.name) == robot.actuated_joint_names
    at, motors = dict(zip(JOINTS, Y, strict=True)), robot.actuated_joint_names
    wanted = robot.convert(at, dict(zip(JOINTS, YD, strict=True)), targets=motors)
    np.testing.assert_allclose(answer.position, wanted.position, atol=1e-9)
    np.testing.assert_allclose(answer.velocity, wanted.velocity, atol=1e-8)
    # Efforts act where the robot is, not where it should be.
    here = robot.convert(
        dict(zip(JOINTS, MEASURED, strict=True)),
        effort=dict(zip(JOINTS, effort, strict=True)),
        targets=motors,
    )
    np.testing.assert_allclose(answer.effort, here.effort, rtol=1e-9)


def test_motors_may_command_too(leg, commander):
    _, _, robot = leg
    motors = robot.actuated_joint_names
    at = robot.convert(dict(zip(JOINTS, Y, strict=True)), targets=motors)
    answer = commander.answer_to(names=motors, position=at.position)
    np.testing.assert_allclose(answer.position, at.position, atol=1e-9)
    assert len(answer.effort) == 0


def test_a_velocity_alone_holds_where_the_robot_is(leg, commander):
    _, _, robot = leg
    answer = commander.answer_to(velocity=YD)
    wanted = robot.convert(
        dict(zip(JOINTS, MEASURED, strict=True)),
        dict(zip(JOINTS, YD, strict=True)),
        targets=robot.actuated_joint_names,
    )
    assert len(answer.position) == 0
    np.testing.assert_allclose(answer.velocity, wanted.velocity, atol=1e-7)


def test_an_effort_on_one_joint(leg, commander):
    _, _, robot = leg
    answer = commander.answer_to(names=("ankle",), effort=[7.0])
    wanted = robot.convert(
        dict(zip(JOINTS, MEASURED, strict=True)),
        effort={"ankle": 7.0},
        targets=robot.actuated_joint_names,
    )
    np.testing.assert_allclose(answer.effort, wanted.effort, rtol=1e-9, atol=1e-12)
    assert len(answer.velocity) == 0


def test_refused_and_counted(leg, commander):
    client, _, _ = leg
    diagnoses = Diagnoses(client)
    nan = float("nan")
    bad = {
        "misnamed joints": {"names": ("heel",), "position": [0.1]},
        "wrong size": {"position": Y[:3]},
        "not finite": {"position": [*Y[:3], nan]},
        "joints missing": {"names": ("knee",), "position": [0.1]},
        "stale": {"position": Y, "age": 1.0},
        "loops do not close": {"position": [*Y[:3], 9.0]},
    }
    before = diagnoses.refusals()
    for reason, command in bad.items():
        commander.answer_to(position=Y)
        commander.client.spin(0.05)
        commander.heard.clear()
        commander.commands.publish(commander.message(**command))
        client.spin(0.2)
        assert not commander.heard, reason
    commander.answer_to(position=Y)  # recovers
    after = diagnoses.refusals()
    assert all(after[reason] > before[reason] for reason in bad)


def test_no_effort_without_a_fresh_state(leg, commander):
    client, _, _ = leg
    commander.answer_to(position=Y)
    client.spin(0.3)
    commander.heard.clear()
    commander.commands.publish(commander.message(position=Y, effort=[1.0] * 4))
    client.spin(0.3)
    assert not commander.heard
    assert commander.answer_to(state=False, position=Y)  # positions need none


def test_impedance_and_feedforward_and_arrays(graph):
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        stiffness="{knee: 80.0, ankle: 30.0}",
        damping="{ankle: 2.0}",
        add_feedforward=True,
        command_joints=["ankle_pulley_rotor", "knee_rotor"],
        command_source="joint_commands",
    )
    client = graph.client()
    client.until_active()
    robot = load_robot(LEG, LOOPS)
    commander = Commander(client)
    arrays = {
        field: client.listen(Float64MultiArray, f"~/{field}_commands")
        for field in ("position", "velocity", "effort")
    }
    answer = commander.answer_to(position=Y, velocity=[0.0] * 4)
    q = robot.close(MEASURED)
    error = Y - MEASURED
    torque = np.array([0.0, 0.0, 80.0 * error[2], 30.0 * error[3] - 2.0 * YD[3]])
    feedforward = robot.actuator_efforts(q, robot.inverse_dynamics(q, YD, np.zeros(4)))
    wanted = robot.actuator_efforts(q, torque) + feedforward
    np.testing.assert_allclose(answer.effort, wanted, rtol=1e-8, atol=1e-8)
    client.until(lambda: all(arrays.values()))
    order = [robot.actuated_joint_names.index(n) for n in ("ankle_pulley_rotor", "knee_rotor")]
    np.testing.assert_allclose(arrays["effort"][-1].data, np.array(answer.effort)[order])
    np.testing.assert_allclose(arrays["position"][-1].data, np.array(answer.position)[order])
    for name, value, says in (
        ("stiffness", "{toe: 1.0}", "toe no joint"),
        ("stiffness", "{knee: -1.0}", "'knee' is -1.0"),
        ("damping", "[1]", "no mapping"),
        ("joint_offsets", "{toe: 1.0}", "toe no joint"),
        ("command_source", "luck", "'luck' is unknown"),
    ):
        refused = client.set_parameter(name, value)
        assert not refused.successful
        assert says in refused.reason
    # A motor whose zero is off is told where to go by its own.
    before = np.array(commander.answer_to(position=Y, velocity=[0.0] * 4).position)
    assert client.set_parameter("joint_offsets", "{knee_rotor: -0.5}").successful
    after = np.array(commander.answer_to(position=Y, velocity=[0.0] * 4).position)
    np.testing.assert_allclose(after - before, [0.0, 0.0, 0.5, 0.0], atol=1e-9)


def at_once(make):
    """What runs in the background, in the foreground."""
    future = Future()
    future.set_result(make())
    return future


def test_ways_are_bounded():
    """Whoever names joints in ever other orders fills no memory."""
    robot, message = load_robot(LEG, LOOPS), JointState()
    commands = JointCommands(
        robot, Settings(), lambda data: None, lambda arrays: None, at_once, RosCodec()
    )
    message.header.stamp.sec = 10
    call = robot.feedforward(JOINTS)
    call.position[:], call.velocity[:] = Y, 0.0
    call()
    commands.on_state(call, 10**10)
    for order in permutations(range(4)):
        for field in ("position", "effort"):
            message.name = [JOINTS[k] for k in order]
            message.position = Y[list(order)].tolist() if field == "position" else []
            message.effort = [1.0] * 4 if field == "effort" else []
            commands.on_command(bytes(serialize_message(message)), 10**10)
            assert len(commands._ways) <= MOST_WAYS
            assert len(commands._making) <= MOST_WAYS
    assert 0 < len(commands._ways) < 48


def test_time_that_jumps_back_begins_anew():
    """As when a simulation is reset: old stamps must not silence new commands."""
    robot, heard = load_robot(LEG, LOOPS), []
    commands = JointCommands(
        robot, Settings(), heard.append, lambda arrays: None, at_once, RosCodec()
    )
    message = JointState(name=list(JOINTS), position=Y.tolist())
    for seconds in (10, 11, 1):
        message.header.stamp.sec = seconds
        commands.on_command(bytes(serialize_message(message)), seconds * 10**9)
    assert len(heard) == 3
    with pytest.raises(RefusalError, match="older than the last"):
        message.header.stamp.sec, message.header.stamp.nanosec = 0, 999_000_000
        commands.on_command(bytes(serialize_message(message)), 10**9 + 10**6)
