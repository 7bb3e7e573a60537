"""Faults of the safety promises, on a node in a process of its own; see test_faults.py."""

import signal

import numpy as np
import pytest
from conversation import Conversation
from known_faults import ARM, FAULTS, TORQUE
from known_input_faults import INPUT_FAULTS
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from mechanism_table import MECHANISMS
from rbda_ros.srv import ConvertState, InverseDynamics
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbda_ros import load_robot


class Arm:
    """A node for one joint, and all that it says to motors."""

    def __init__(self, graph, **values):
        self.program = graph.serve(robot_description=ARM, command_joints=["hip"], **values)
        self.client = graph.client()
        self.client.until_active()
        self.talk = Conversation(self.client)
        self.array = self.client.listen(Float64MultiArray, "~/effort_commands")
        self.motors = self.client.listen(JointState, "~/motor_commands")
        self.commands = self.client.publisher(JointState, "~/joint_commands")

    def hold(self, position=0.0):
        """An effort for a state; the topics are connected once one has come."""
        return self.talk.answer_to(["hip"], [position], [0.0]).effort[0]

    def command(self, **fields):
        message = self.client.joint_states(["hip"], [], [])
        for field, values in fields.items():
            setattr(message, field, values)
        self.commands.publish(message)


@pytest.fixture
def arm(graph):
    arm = Arm(graph)
    arm.client.until(lambda: arm.hold() and arm.array)
    return arm


@pytest.mark.parametrize("end", ("states stop", "deactivated", "SIGINT", "SIGTERM", "SIGHUP"))
def test_zeros_end_the_stream(arm, end):
    """Fault 8."""
    assert abs(arm.hold()) == pytest.approx(TORQUE)
    arm.talk.received.clear()
    arm.array.clear()
    if end == "deactivated":
        request = ChangeState.Request()
        request.transition.id = Transition.TRANSITION_DEACTIVATE
        assert arm.client.call(ChangeState, "~/change_state", request).success
    elif end != "states stop":
        arm.program.stop(getattr(signal, end))
    arm.client.until(lambda: arm.talk.received and arm.array)
    assert list(arm.talk.received[-1].effort) == [0.0] == list(arm.array[-1].data)


@pytest.mark.parametrize("end", ("commands stop", "deactivated", "SIGTERM", "another source"))
def test_velocities_end_too(graph, end):
    """A drive in velocity mode goes on with the last velocity."""
    arm = Arm(graph, command_source="joint_commands")
    array = arm.client.listen(Float64MultiArray, "~/velocity_commands")

    def moving():
        arm.hold()
        arm.command(velocity=[0.5])
        arm.client.spin(0.02)
        return array and arm.motors and list(array[-1].data) == [0.5]

    arm.client.until(moving)
    if end == "deactivated":
        assert arm.client.change_state(Transition.TRANSITION_DEACTIVATE)
    elif end == "SIGTERM":
        arm.program.stop(signal.SIGTERM)
    elif end == "another source":
        assert arm.client.set_parameter("command_source", "feedforward").successful
    arm.client.until(lambda: list(array[-1].data) == [0.0])
    arm.client.until(lambda: list(arm.motors[-1].velocity) == [0.0])


def test_simulated_time_that_nobody_tells_stops_no_watchdog(arm):
    """Set by mistake on hardware, where there is no /clock."""
    assert arm.hold()
    arm.talk.received.clear()
    assert arm.client.set_parameter("use_sim_time", True).successful
    arm.client.until(lambda: arm.talk.received and not any(arm.talk.received[-1].effort))
    arm.client.until(lambda: not any(arm.array[-1].data))


def test_no_motor_command_follows_from_a_frozen_state(graph):
    """Fault 1: the topic has another robot's joint states, and old ones of ours."""
    arm = Arm(graph, stiffness="{hip: 10.0}", joint_state_timeout=0.5)

    def commanded():
        arm.hold()
        arm.command(position=[0.1])
        arm.client.spin(0.02)
        return any(message.effort for message in arm.motors)

    arm.client.until(commanded)
    arm.client.spin(1.0)
    arm.motors.clear()
    for _ in range(30):
        arm.talk.publisher.publish(arm.client.joint_states(["other"], [0.0], [0.0]))
        arm.talk.publisher.publish(arm.client.joint_states(["hip"], [0.0], [0.0], age=1.0))
        arm.command(position=[0.1])
        arm.client.spin(0.01)
    assert not [message for message in arm.motors if any(message.effort)]


def test_limits_and_rates_hold_while_parameters_change(graph):
    """Faults 2, 3 and 4; states may pause while a parameter is set."""
    arm = Arm(graph, joint_state_timeout=10.0)
    assert abs(arm.hold()) == pytest.approx(TORQUE)
    assert arm.client.set_parameter("effort_rate_limit", 0.5).successful
    assert abs(arm.hold()) > 9.0  # no jump to zero
    assert arm.client.set_parameter("terms", ["gravity"]).successful
    assert arm.client.set_parameter("effort_limits", "{hip: 0.1}").successful
    arm.talk.received.clear()
    for _ in range(20):
        arm.hold()
    assert max(abs(message.effort[0]) for message in arm.talk.received) <= 0.1 + 1e-12


def test_no_effort_stays_with_a_topic_that_a_parameter_changes(arm):
    """Joints taken out of the array; a time-out that is set after the states have stopped."""
    arm.array.clear()
    assert arm.hold()
    assert arm.client.set_parameter("command_joints", [""]).successful
    arm.client.until(lambda: arm.array and not any(arm.array[-1].data))
    assert arm.client.set_parameter("joint_state_timeout", 0.0).successful
    assert arm.hold()
    arm.talk.received.clear()
    assert arm.client.set_parameter("joint_state_timeout", 0.1).successful
    arm.client.until(lambda: arm.talk.received and not any(arm.talk.received[-1].effort))


def test_requests_that_contradict_themselves_are_rejected(graph):
    """Fault 5: both ends of a four-bar are given, and do not belong together."""
    mechanism = MECHANISMS["geared_four_bar"]
    robot = load_robot(mechanism.urdf, mechanism.loops)
    loops = mechanism.loops if isinstance(mechanism.loops, str) else str(mechanism.loops)
    graph.serve(robot_description=mechanism.urdf.read_text(), loop_constraints=loops)
    client = graph.client()
    client.until_active()
    names = list(robot.joint_names)
    q = robot.close(robot.independent_position(robot.tree.home))
    request = InverseDynamics.Request()
    request.state.joint_names, request.state.position = names, q.tolist()
    assert client.call(InverseDynamics, "~/inverse_dynamics", request).success
    request.state.position[names.index("rocker")] += 0.5
    answer = client.call(InverseDynamics, "~/inverse_dynamics", request)
    assert not answer.success and "follows from the other joints" in answer.message
    asked = ConvertState.Request(joint_names=names, position=request.state.position)
    answer = client.call(ConvertState, "~/convert_state", asked)
    assert not answer.success and "follows from the other joints" in answer.message
    np.testing.assert_allclose(robot.close(q), q)


@pytest.mark.parametrize("number", (6, 7, 9, 10))
def test_a_known_fault_does_not_come_back(graph, number):
    finding = FAULTS[number](graph)
    assert finding.kept, finding.text


@pytest.mark.nightly
@pytest.mark.parametrize("number", (1, 2, 3, 4, 5, 8, 11, 12, 13, 14))
def test_other_known_faults_do_not_come_back(graph, number):
    finding = (FAULTS | INPUT_FAULTS)[number](graph)
    assert finding.kept, finding.text
