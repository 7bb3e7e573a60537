"""Every joint from those measured, between two processes."""

import numpy as np
import pinocchio as pin
import pytest
from conversation import Conversation, Diagnoses
from sensor_msgs.msg import JointState

from rbda_ros import load_robot
from rbda_ros.demo.resources import share_file
from rbda_ros.description.model import CutJoint

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
Y, YD = np.array([0.1, 0.3, 0.9, -0.1]), np.array([0.5, -1.0, 2.0, 0.3])


@pytest.fixture(scope="module")
def talk(leg):
    client, _, _ = leg
    return Conversation(client), client.listen(JointState, "~/joint_states")


def of(robot, names):
    """Position and velocity of some joints in the pose of these tests."""
    q = robot.close(Y)
    qd = robot.spanning_velocity(q, YD)
    places = [robot.joint_names.index(name) for name in names]
    return q[places].tolist(), qd[places].tolist()


def completed(talk, names, position, velocity):
    """The completed state for these, with the stamp of the message that it completes."""
    conversation, received = talk
    for _ in range(50):
        answer = conversation.answer_to(names, position, velocity)
        conversation.client.spin(0.05)
        found = [message for message in received if message.header.stamp == answer.header.stamp]
        if found:
            return found[0]
    raise AssertionError("no completed state")


def check(robot, message, prefix=""):
    assert list(message.name) == [prefix + name for name in robot.joint_names]
    q, qd = of(robot, robot.joint_names)
    np.testing.assert_allclose(message.position, q, atol=1e-9)
    np.testing.assert_allclose(message.velocity, qd, atol=1e-8)


@pytest.mark.parametrize(
    "names",
    [
        ("hip_abduction", "hip_flexion", "knee", "ankle"),
        ("ankle_pulley_rotor", "knee_rotor", "hip_flexion_rotor", "hip_abduction_rotor"),
        ("ankle", "knee_rotor", "hip_flexion", "hip_abduction_rotor", "gripper"),
    ],
    ids=["joints only", "motors only", "some of each, and a stranger"],
)
def test_completes(leg, talk, names):
    _, _, robot = leg
    q, qd = of(robot, [name for name in names if name != "gripper"])
    more = [0.7] * (len(names) - len(q))
    check(robot, completed(talk, names, [*q, *more], [*qd, *more]))


@pytest.mark.parametrize(
    ("efforts", "known"),
    [
        ([1.5, -2.0, 0.25, 3.0], True),
        ([1.5, np.nan, 0.25, 3.0], True),
        ([np.nan] * 4, False),
        ([], False),
    ],
    ids=["all", "one not finite", "none finite", "none"],
)
def test_efforts_are_those_of_the_message(leg, talk, efforts, known):
    """Whoever answers: Python the first message, the native thread those after it."""
    client, _, robot = leg
    conversation, received = talk
    names = robot.independent_joint_names
    completed(talk, names, *of(robot, names))
    received.clear()
    wanted = dict(zip(names, np.nan_to_num(efforts).tolist(), strict=True)) if known else {}

    def told():
        message = client.joint_states(names, *of(robot, names))
        message.effort = efforts
        conversation.publisher.publish(message)
        client.spin(0.02)
        return sum(list(message.effort) == expected for message in received) > 20

    expected = [wanted.get(name, 0.0) for name in robot.joint_names] if known else []
    client.until(told)
    check(robot, received[-1])


def test_two_drivers_with_a_half_each(leg, talk):
    client, _, robot = leg
    conversation, received = talk
    halves = ("hip_abduction_rotor", "hip_flexion_rotor"), ("knee", "ankle_pulley_rotor")
    client.spin(0.3)  # until all that was measured is too old
    received.clear()
    messages = []

    def both():
        for names in halves:
            messages.append(client.joint_states(names, *of(robot, names)))
            conversation.publisher.publish(messages[-1])
        client.spin(0.02)
        return received

    client.until(both)
    check(robot, received[-1])
    assert any(received[-1].header.stamp == message.header.stamp for message in messages)


def test_links_meet_where_loops_are_cut(leg, talk):
    """As robot_state_publisher draws it: by Pinocchio, from names and positions alone."""
    _, urdf, robot = leg
    names = robot.actuated_joint_names
    message = completed(talk, names, *of(robot, names))
    model = pin.buildModelFromUrdf(str(urdf))
    q = pin.neutral(model)
    for name, position in zip(message.name, message.position, strict=True):
        if model.existJointName(name):  # rotors of the loop file are no links of the URDF
            q[model.joints[model.getJointId(name)].idx_q] = position
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    cuts = [each for each in robot.description.constraints if isinstance(each, CutJoint)]
    assert cuts
    for cut in cuts:
        here, there = (
            data.oMf[model.getFrameId(side.link, pin.BODY)].act(np.array(side.origin.xyz))
            for side in (cut.predecessor, cut.successor)
        )
        np.testing.assert_allclose(here, there, atol=1e-9)


def test_prefixes_and_choice(graph):
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        joint_prefix="left_",
    )
    client = graph.client()
    client.until_active()
    robot = load_robot(LEG, LOOPS)
    talk = Conversation(client), client.listen(JointState, "~/joint_states")
    names = robot.independent_joint_names
    given = ["left_" + name for name in names], *of(robot, names)
    check(robot, completed(talk, *given), "left_")
    assert client.set_parameter("publish_joint_states", "never").successful
    talk[0].answer_to(*given)
    client.until(lambda: not client.node.count_publishers("/dynamics/joint_states"))
    refused = client.set_parameter("publish_joint_states", "sometimes")
    assert not refused.successful
    assert "publish_joint_states: 'sometimes' is unknown" in refused.reason


def test_a_robot_without_loops_needs_none(arm):
    client, _, _ = arm
    assert not client.node.count_publishers("/dynamics/joint_states")


def test_joints_are_completed_while_efforts_wait_for_a_reference(graph):
    """robot_state_publisher shows the robot before a controller begins."""
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        acceleration_source="reference",
    )
    client = graph.client()
    client.until_active()
    robot = load_robot(LEG, LOOPS)
    received, efforts = (
        client.listen(JointState, f"~/{n}") for n in ("joint_states", "feedforward")
    )
    publisher = client.publisher(JointState, "joint_states")
    names = robot.independent_joint_names

    def shown():
        publisher.publish(client.joint_states(names, *of(robot, names)))
        client.spin(0.02)
        return received

    client.until(shown)
    check(robot, received[-1])
    assert not efforts


@pytest.mark.parametrize("split", [4, 2], ids=["one driver", "two drivers, one without velocities"])
def test_positions_alone_are_completed_without_velocities(leg, talk, split):
    """Encoders without velocities move the robot on the screen, though no effort can be told."""
    client, _, robot = leg
    conversation, received = talk
    names = robot.independent_joint_names
    q, qd = of(robot, names)
    client.spin(0.3)  # until all that was measured is too old
    received.clear()
    conversation.received.clear()

    def shown():
        first = client.joint_states(names[:split], q[:split], [])
        first.effort = [0.5] * split
        conversation.publisher.publish(first)
        if split < len(names):
            rest = client.joint_states(names[split:], q[split:], qd[split:])
            conversation.publisher.publish(rest)
        client.spin(0.02)
        return [message for message in received if len(message.effort)]

    client.until(shown)
    assert list(received[-1].name) == list(robot.joint_names)
    np.testing.assert_allclose(received[-1].position, robot.close(Y), atol=1e-9)
    assert all(len(message.velocity) == 0 for message in received)
    efforts = shown()[-1].effort
    wanted = [0.5 if name in names[:split] else 0.0 for name in robot.joint_names]
    assert list(efforts) == wanted
    assert not conversation.received
    assert Diagnoses(client).refusals()["no velocity"] > 0


def test_the_first_of_two_messages_is_completed_while_velocities_are_differences(graph):
    graph.serve(
        robot_description=LEG.read_text(),
        loop_constraints=str(LOOPS),
        velocity_source="differentiate",
        joint_state_timeout=0.0,
    )
    client = graph.client()
    client.until_active()
    robot = load_robot(LEG, LOOPS)
    received = client.listen(JointState, "~/joint_states")
    publisher = client.publisher(JointState, "joint_states")
    names = robot.independent_joint_names
    client.until(lambda: publisher.get_subscription_count() > 0)
    message = client.joint_states(names, of(robot, names)[0], [])

    def again():
        publisher.publish(message)  # the same time once more makes no difference
        client.spin(0.02)
        return received

    client.until(again)
    np.testing.assert_allclose(received[-1].position, robot.close(Y), atol=1e-9)
    assert len(received[-1].velocity) == 0

    def later():
        publisher.publish(client.joint_states(names, of(robot, names)[0], []))
        client.spin(0.02)
        return len(received[-1].velocity)

    client.until(later)
    np.testing.assert_allclose(received[-1].velocity, 0.0, atol=1e-9)
