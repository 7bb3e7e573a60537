"""Commands in joint space that are answered without the interpreter: what, when, and when not."""

import gc
import weakref

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from conversation import efforts as feedforward
from native_talk import running
from node_fixtures import example_robot
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbda_ros import Payload
from rbda_ros.demo.resources import share_file

LEG = share_file("config/robots/demo_leg.urdf")
LOOPS = share_file("config/robots/demo_leg_loops.yaml")
JOINTS = ("hip_abduction", "hip_flexion", "knee", "ankle")
Y, YD = np.array([0.1, 0.3, 0.9, -0.1]), np.array([0.5, -1.0, 2.0, 0.3])
MEASURED = np.array([0.12, 0.25, 0.95, -0.05])
EFFORT = np.array([3.0, -4.0, 5.0, 2.0])
CLOSE = {"rtol": 1e-7, "atol": 1e-8}


class Commander:
    """Publishes commands beside joint states, and receives what they mean for the motors."""

    def __init__(self, talk, state):
        self.talk, self.client, self.state = talk, talk.client, state
        self.publisher = talk.client.publisher(JointState, "~/joint_commands")
        self.received = talk.client.listen(JointState, "~/motor_commands")

    def message(self, names=JOINTS, position=(), velocity=(), effort=(), age=0.0):
        message = self.client.joint_states(names, list(position), list(velocity), age=age)
        message.effort = list(effort)
        return message

    def send(self, message, seconds=0.03):
        """The answer to a command, if there is one."""
        self.publisher.publish(message)
        self.client.spin(seconds)
        found = [each for each in self.received if each.header.stamp == message.header.stamp]
        return found[0] if found else None

    @property
    def by_thread(self):
        """How many were answered natively since this was asked."""
        return self.talk.node.stream.stream.read_meters()[1].answers

    def natively(self, **command):
        """An answer of the thread; others come first, until kernels are compiled."""
        for _ in range(200):
            if self.state is not None:
                self.talk.natively(*self.state)
            self.by_thread  # noqa: B018 - forgets those before
            answer = self.send(self.message(**command))
            if answer is not None and self.by_thread:
                return answer
        raise AssertionError("never answered by the thread")

    def by_python(self, message):
        """The response to a command that needs preparation; None if it is rejected."""
        self.by_thread  # noqa: B018 - forgets those before
        answer = self.send(message, 0.1)
        assert not self.by_thread
        return answer


@pytest.fixture(scope="module")
def leg():
    with running(LEG, LOOPS) as talk:
        yield Commander(talk, (JOINTS, MEASURED, YD))


def named(values, names=JOINTS):
    return dict(zip(names, values, strict=True))


def test_positions_need_no_joint_states():
    with running(LEG, LOOPS) as talk:
        answer = Commander(talk, None).natively(position=Y)
        motors = talk.robot.actuated_joint_names
        there = talk.robot.convert(named(Y), targets=motors)
        np.testing.assert_allclose(answer.position, there.position, **CLOSE)


def test_a_tree_without_loops():
    urdf = example_robot("ur5_robot")
    rng = np.random.default_rng(4)
    state, wanted, effort = rng.uniform(-1.0, 1.0, (3, 6))
    with running(urdf, stiffness="{elbow_joint: 50.0}") as talk:
        names = talk.robot.joint_names
        commander = Commander(talk, (names, state, np.zeros(6)))
        order = rng.permutation(6)
        answer = commander.natively(
            names=[names[k] for k in order], position=wanted[order], effort=effort[order]
        )
        np.testing.assert_allclose(answer.position, wanted, **CLOSE)
        elbow = names.index("elbow_joint")
        effort[elbow] += 50.0 * (wanted - state)[elbow]
        np.testing.assert_allclose(answer.effort, effort, **CLOSE)


def test_every_field_alone_and_together(leg):
    robot = leg.talk.robot
    motors = robot.actuated_joint_names
    there = robot.convert(named(Y), named(YD), targets=motors)
    here = robot.convert(named(MEASURED), named(YD), effort=named(EFFORT), targets=motors)
    answer = leg.natively(position=Y, velocity=YD, effort=EFFORT)
    assert tuple(answer.name) == motors
    np.testing.assert_allclose(answer.position, there.position, **CLOSE)
    np.testing.assert_allclose(answer.velocity, there.velocity, **CLOSE)
    np.testing.assert_allclose(answer.effort, here.effort, **CLOSE)
    answer = leg.natively(position=Y)
    np.testing.assert_allclose(answer.position, there.position, **CLOSE)
    assert not answer.velocity
    assert not answer.effort
    answer = leg.natively(velocity=YD)  # holds where the robot is
    np.testing.assert_allclose(answer.velocity, here.velocity, **CLOSE)
    assert not answer.position
    answer = leg.natively(names=("ankle",), effort=[7.0])
    one = robot.convert(named(MEASURED), effort={"ankle": 7.0}, targets=motors)
    np.testing.assert_allclose(answer.effort, one.effort, **CLOSE)
    answer = leg.natively(names=motors[::-1], position=there.position[::-1])
    np.testing.assert_allclose(answer.position, there.position, **CLOSE)


def test_impedance_feedforward_limits_and_arrays(leg):
    robot, talk = leg.talk.robot, leg.talk
    q = robot.close(MEASURED)
    joints = robot.actuated_joint_names[2:0:-1]
    talk.set(
        stiffness="{knee: 80.0, ankle: 30.0}",
        damping="{ankle: 2.0}",
        add_feedforward=True,
        command_joints=list(joints),
        command_source="joint_commands",
    )
    arrays = {
        field: leg.client.listen(Float64MultiArray, f"~/{field}_commands")
        for field in ("position", "velocity", "effort")
    }
    answer = leg.natively(position=Y, velocity=0.5 * YD)
    error = Y - MEASURED
    torque = np.array([0.0, 0.0, 80.0 * error[2], 30.0 * error[3] - 2.0 * 0.5 * YD[3]])
    impedance, needed = robot.actuator_efforts(q, torque), feedforward(robot, q, YD)
    np.testing.assert_allclose(answer.effort, impedance + needed, **CLOSE)
    for field, received in arrays.items():
        values = list(getattr(answer, field)[2:0:-1])
        leg.client.until(
            lambda received=received, values=values: received and list(received[-1].data) == values
        )
    talk.set(effort_limits="{knee_rotor: 0.01}")
    answer = leg.natively(position=Y, velocity=0.5 * YD)
    limit = np.array([0.01 if name == "knee_rotor" else np.inf for name in answer.name])
    limited = np.clip(impedance + needed, -limit, limit)
    np.testing.assert_allclose(answer.effort, limited, **CLOSE)
    talk.set(effort_limits="", stiffness="", damping="", add_feedforward=False)
    talk.set(command_joints=[""], command_source="feedforward")


def test_what_must_not_be_followed_is_for_python(leg):
    refusals, good = leg.talk.node.stream.rejections, {"position": Y, "effort": EFFORT}
    leg.natively(effort=EFFORT)
    bad = {
        "wrong size": {"position": Y[:3], "effort": EFFORT},  # not taken for efforts alone
        "not finite": {"position": [*Y[:3], np.nan], "effort": EFFORT},
        "loops do not close": {"position": [*Y[:3], 9.0], "effort": EFFORT},
        "stale": {**good, "age": 1.0},
        "out of order": good,
        "misnamed joints": {"names": ("heel",), "position": [0.1]},
    }
    for reason, command in bad.items():
        stamp = leg.natively(**good).header.stamp
        before, message = refusals.counts[reason], leg.message(**command)
        if reason == "out of order":
            message.header.stamp = Time(sec=stamp.sec, nanosec=max(stamp.nanosec - 10**6, 0))
        assert leg.by_python(message) is None, reason
        leg.talk.natively(*leg.state)
        message.header.stamp = leg.client.joint_states((), (), ()).header.stamp
        if reason not in ("stale", "out of order"):  # nor, once it is known, the next one
            assert leg.by_python(message) is None, reason
        assert refusals.counts[reason] > before
    leg.natively(**good)
    leg.client.spin(0.3)
    before = refusals.counts["no fresh joint states"]
    assert leg.by_python(leg.message(**good)) is None
    assert refusals.counts["no fresh joint states"] == before + 1
    leg.natively(**good)


def test_a_far_pose_is_approached_in_parts(leg):
    robot = leg.talk.robot
    far = Y + np.array([0.4, -0.6, 0.5, -0.3])
    leg.natively(position=Y)
    answer = leg.natively(position=far)
    there = robot.convert(named(far), targets=robot.actuated_joint_names, guess=robot.close(far))
    np.testing.assert_allclose(answer.position, there.position, **CLOSE)
    answer = leg.natively(position=far, velocity=YD)  # another form, from the same pose
    np.testing.assert_allclose(answer.position, there.position, **CLOSE)
    leg.natively(position=Y)


def test_another_load_leaves_no_gap_and_nothing_behind(leg):
    talk, robot = leg.talk, leg.talk.robot
    talk.set(add_feedforward=True)
    leg.natively(position=Y)
    waited = talk.node.stream.rejections.counts["kernel not ready"]
    old = weakref.ref(talk.node.stream.stream._made)
    loaded = robot.with_payloads({"box": Payload("foot", 2.0)})

    def swap(to):
        talk.node.stream.prepare(to)
        talk.node.replace_model(talk.node.robot, to)

    swapped = talk.node.executor.create_task(swap, loaded)
    leg.client.until(swapped.done)
    assert talk.robot is loaded
    answer = leg.natively(position=Y)
    assert talk.node.stream.rejections.counts["kernel not ready"] == waited
    wanted = feedforward(loaded, robot.close(MEASURED), YD)
    np.testing.assert_allclose(answer.effort, wanted, **CLOSE)
    gc.collect()
    assert old() is None
    talk.set(add_feedforward=False)
    swapped = talk.node.executor.create_task(swap, robot)
    leg.client.until(swapped.done)
    assert talk.robot is robot
    leg.natively(position=Y)
