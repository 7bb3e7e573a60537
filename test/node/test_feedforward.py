"""Joint states in, efforts out, between two processes."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from nav_msgs.msg import Odometry
from pinocchio_oracle import PinocchioOracle, random_state
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

SILENCE = 0.5  # [s] that a wrong answer would come in
TOLERANCE = 1e-9


class Conversation:
    """Publishes joint states to a node and hears its efforts."""

    def __init__(self, client):
        self.client = client
        self.publisher = client.publisher(JointState, "joint_states")
        self.heard = client.listen(JointState, "~/feedforward")

    def answer_to(self, *state):
        """The effort that answers a good state; repeated, since the topic is best-effort."""
        self.heard.clear()
        for _ in range(20):
            message = self.client.joint_states(*state)
            self.publisher.publish(message)
            self.client.spin(0.1)
            for heard in self.heard:
                if heard.header.stamp == message.header.stamp:
                    return heard
        raise AssertionError("no effort")

    def silence_after(self, message):
        """Whether a message is not answered."""
        self.heard.clear()
        self.publisher.publish(message)
        self.client.spin(SILENCE)
        return not self.heard


@pytest.fixture(scope="module")
def arm_talk(arm):
    return Conversation(arm[0])


def test_equals_pinocchio_and_carries_the_stamp(arm, arm_talk):
    _, urdf, robot = arm
    oracle, rng = PinocchioOracle(urdf, robot), np.random.default_rng(1)
    for _ in range(3):
        q, qd, _ = random_state(robot, rng)
        order = rng.permutation(6)
        # In any order, and with a joint that belongs to someone else.
        names = ["gripper", *(robot.joint_names[k] for k in order)]
        answer = arm_talk.answer_to(names, [0.5, *q[order]], [0.0, *qd[order]])
        assert tuple(answer.name) == robot.actuated_joint_names
        expected = oracle.rnea(q, qd, np.zeros(6))
        np.testing.assert_allclose(answer.effort, expected, TOLERANCE, TOLERANCE)


def _bad(client, names, what):
    q, qd = [0.1] * len(names), [0.2] * len(names)
    return {
        "not finite": lambda: client.joint_states(names, [float("nan"), *q[1:]], qd),
        "joints missing": lambda: client.joint_states(names[1:], q[1:], qd[1:]),
        "misnamed joints": lambda: client.joint_states([f"left_{n}" for n in names], q, qd),
        "stale": lambda: client.joint_states(names, q, qd, age=1.0),
        "wrong size": lambda: client.joint_states(names, q[1:], qd[1:]),
        "no velocity": lambda: client.joint_states(names, q, []),
    }[what]()


@pytest.mark.parametrize(
    "what",
    ["not finite", "joints missing", "misnamed joints", "stale", "wrong size", "no velocity"],
)
def test_refuses_and_recovers(arm, arm_talk, what):
    client, _, robot = arm
    good = robot.joint_names, [0.1] * 6, [0.2] * 6
    arm_talk.answer_to(*good)
    assert arm_talk.silence_after(_bad(client, robot.joint_names, what))
    arm_talk.answer_to(*good)


def test_from_the_future_and_unstamped_are_stale(arm, arm_talk):
    client, _, robot = arm
    good = robot.joint_names, [0.1] * 6, [0.2] * 6
    assert arm_talk.silence_after(client.joint_states(*good, age=-1.0))
    unstamped = client.joint_states(*good)
    unstamped.header.stamp.sec = unstamped.header.stamp.nanosec = 0
    assert arm_talk.silence_after(unstamped)

    assert client.set_parameter("joint_state_timeout", 0.0).successful
    assert not arm_talk.silence_after(unstamped)
    assert client.set_parameter("joint_state_timeout", 0.1).successful


def test_diagnostics_count_refusals_by_reason(arm, arm_talk):
    client, _, robot = arm
    heard = client.listen(DiagnosticArray, "/diagnostics")

    def status():
        heard.clear()
        client.until(lambda: heard)
        return heard[-1].status[0]

    def count():
        values = {v.key: v.value for v in status().values}
        return int(values.get("refused: not finite", 0))

    before = count()
    for _ in range(3):
        arm_talk.publisher.publish(_bad(client, robot.joint_names, "not finite"))
        client.spin(0.05)
    found = status()
    values = {value.key: value.value for value in found.values}
    assert found.name == "dynamics: feedforward"
    assert found.hardware_id == values["model"] == robot.name
    assert found.level in (DiagnosticStatus.ERROR, DiagnosticStatus.STALE)
    assert int(values["refused: not finite"]) >= before + 1


def test_acceleration_comes_from_the_reference(arm, arm_talk):
    client, urdf, robot = arm
    q, qd, ydd = random_state(robot, np.random.default_rng(2))
    wanted = client.publisher(JointTrajectory, "~/reference")
    assert client.set_parameter("acceleration_source", "reference").successful
    try:
        # Without a reference there is no acceleration, and so no effort.
        assert arm_talk.silence_after(client.joint_states(robot.joint_names, q, qd))

        order = np.array([3, 1, 5, 0, 2, 4])
        point = JointTrajectoryPoint(accelerations=ydd[order].tolist())
        reference = JointTrajectory(
            joint_names=[robot.joint_names[k] for k in order], points=[point]
        )
        arm_talk.heard.clear()
        for _ in range(20):
            wanted.publish(reference)
            client.spin(0.02)
            arm_talk.publisher.publish(client.joint_states(robot.joint_names, q, qd))
            client.spin(0.02)
        expected = PinocchioOracle(urdf, robot).rnea(q, qd, ydd)
        np.testing.assert_allclose(arm_talk.heard[-1].effort, expected, TOLERANCE, TOLERANCE)

        client.spin(0.2)  # longer than joint_state_timeout
        assert arm_talk.silence_after(client.joint_states(robot.joint_names, q, qd))
    finally:
        assert client.set_parameter("acceleration_source", "zero").successful


def test_deactivate_stops_efforts_and_activate_brings_them_back(arm, arm_talk):
    client, _, robot = arm
    good = robot.joint_names, [0.1] * 6, [0.2] * 6
    arm_talk.answer_to(*good)
    assert client.change_state(Transition.TRANSITION_DEACTIVATE)
    assert client.state == "inactive"
    assert arm_talk.silence_after(client.joint_states(*good))
    assert client.change_state(Transition.TRANSITION_ACTIVATE)
    client.until(lambda: arm_talk.publisher.get_subscription_count() > 0)
    arm_talk.answer_to(*good)


def test_floating_base_needs_its_state(solo):
    client, urdf, robot = solo
    talk = Conversation(client)
    base = client.publisher(Odometry, "~/base_state")
    q, qd, _ = random_state(robot, np.random.default_rng(3))
    joints = robot.joint_names, q[7:], qd[6:]
    assert talk.silence_after(client.joint_states(*joints))

    talk.heard.clear()
    for _ in range(20):
        odometry = Odometry(header=client.joint_states(*joints).header)
        pose, twist = odometry.pose.pose, odometry.twist.twist
        pose.position.x, pose.position.y, pose.position.z = q[:3].tolist()
        turn = pose.orientation
        turn.x, turn.y, turn.z, turn.w = q[3:7].tolist()
        twist.linear.x, twist.linear.y, twist.linear.z = qd[:3].tolist()
        twist.angular.x, twist.angular.y, twist.angular.z = qd[3:6].tolist()
        base.publish(odometry)
        client.spin(0.02)
        talk.publisher.publish(client.joint_states(*joints))
        client.spin(0.02)
    expected = PinocchioOracle(urdf, robot).rnea(q, qd, np.zeros(robot.nv))[6:]
    np.testing.assert_allclose(talk.heard[-1].effort, expected, TOLERANCE, TOLERANCE)


def test_loops_give_efforts_on_the_motors(leg):
    client, _, robot = leg
    talk = Conversation(client)
    for ankle in (-0.2, 0.0, 0.1):
        y, yd = np.array([0.1, 0.3, 0.9, ankle]), np.array([0.5, -1.0, 2.0, 1.0])
        answer = talk.answer_to(robot.independent_joint_names, y, yd)
        assert tuple(answer.name) == robot.actuated_joint_names
        q = robot.close(y)
        expected = robot.actuator_efforts(q, robot.inverse_dynamics(q, yd, np.zeros(4)))
        np.testing.assert_allclose(answer.effort, expected, 1e-7, 1e-7)
