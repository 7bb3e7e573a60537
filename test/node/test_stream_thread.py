"""Joint states that are answered without the interpreter: what, when, and when not."""

import threading
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from conversation import efforts
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from native_talk import CLOSE, LEG, LOOPS, YD, Y, good, running, threads
from nav_msgs.msg import Odometry
from node_fixtures import example_robot
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from ros_requests import odometry_of
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbda_ros import load_robot


@pytest.fixture(scope="module")
def leg():
    with running(LEG, LOOPS) as talk:
        yield talk


def test_the_same_numbers_to_the_last_bit():
    """On a tree, where no answer depends on the one before."""
    urdf = example_robot("ur5_robot")
    with running(urdf) as talk:
        robot, rng = load_robot(urdf), np.random.default_rng(1)
        call = robot.feedforward(robot.joint_names)
        call.kernel.compile()
        for _ in range(5):
            call.position[:], call.velocity[:] = rng.uniform(-1.0, 1.0, (2, 6))
            call()
            order = rng.permutation(6)
            names = [robot.joint_names[k] for k in order]
            answer = talk.natively(names, call.position[order], call.velocity[order])
            assert tuple(answer.name) == robot.actuated_joint_names
            assert answer.effort.tobytes() == call.efforts.tobytes()
            assert not answer.position
            assert not answer.velocity


def test_its_topic_is_remapped():
    with running(LEG, LOOPS, topic="states_of_the_driver") as talk:
        talk.natively(*good(talk.robot))


@pytest.mark.parametrize("executor", [SingleThreadedExecutor, MultiThreadedExecutor])
def test_every_executor_is_woken(executor):
    with running(LEG, LOOPS, executor) as talk:
        answer = talk.natively(*good(talk.robot))
        q = talk.robot.close(Y)
        np.testing.assert_allclose(answer.effort, efforts(talk.robot, q, YD), **CLOSE)


def test_floating_base():
    urdf = example_robot("solo12")
    with running(urdf, floating_base=True) as talk:
        robot, rng = talk.robot, np.random.default_rng(3)
        base = talk.client.publisher(Odometry, "~/base_state")
        turn = rng.normal(size=4)
        q = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), rng.normal(size=12)])
        qd = rng.normal(size=18)
        expected = efforts(robot, q, qd)

        def natively():
            message = talk.client.joint_states(robot.joint_names, q[7:], qd[6:])
            base.publish(odometry_of(message.header, q, qd))
            talk.client.spin(0.01)
            talk.publisher.publish(message)
            talk.client.spin(0.01)
            answer = talk.answered(message)
            if answer is not None:
                np.testing.assert_allclose(answer.effort, expected, **CLOSE)
            return answer is not None and talk.by_thread

        talk.client.until(natively)


def test_completes_states_too(leg):
    received = leg.client.listen(JointState, "~/joint_states")
    robot = leg.robot
    q = robot.close(Y)
    qd = robot.spanning_velocity(q, YD)

    def found():
        answer = leg.natively(*good(robot))
        leg.client.spin(0.02)
        return [message for message in received if message.header.stamp == answer.header.stamp]

    leg.client.until(found)
    assert tuple(received[-1].name) == robot.joint_names
    np.testing.assert_allclose(received[-1].position, q, atol=1e-9)
    np.testing.assert_allclose(received[-1].velocity, qd, atol=1e-8)


def test_commands_go_out_too(leg):
    joints = leg.robot.actuated_joint_names[2:0:-1]
    leg.set(command_joints=list(joints))
    received = leg.client.listen(Float64MultiArray, "~/effort_commands")
    answer = leg.natively(*good(leg.robot))
    leg.client.until(
        lambda: received and received[-1].data.tolist() == answer.effort[2:0:-1].tolist()
    )
    leg.set(command_joints=[""])
    leg.natively(*good(leg.robot))


def test_references_and_wrenches_reach_the_thread(leg):
    robot, client = leg.robot, leg.client
    q = robot.close(Y)
    reference = client.publisher(JointTrajectory, "~/reference")
    wrench = client.publisher(WrenchStamped, "~/external_wrench")
    leg.set(acceleration_source="reference", external_wrench=True)
    try:
        for k in range(3):
            ydd, force = np.array([0.5, -0.3, 1.0, 0.2]) * (k + 1), [1.0, 2.0 * k, -30.0]
            point = JointTrajectoryPoint(accelerations=ydd.tolist())
            desired = JointTrajectory(joint_names=list(robot.independent_joint_names))
            desired.points.append(point)
            pushed = WrenchStamped()
            pushed.header.frame_id = "foot"
            pushed.wrench.force.x, pushed.wrench.force.y, pushed.wrench.force.z = force
            expected = efforts(robot, q, YD, ydd, {"foot": [*force, 0.0, 0.0, 0.0]})

            def matches(desired=desired, pushed=pushed, expected=expected):
                reference.publish(desired)
                wrench.publish(pushed)
                client.spin(0.01)
                message = client.joint_states(*good(robot))
                leg.publisher.publish(message)
                client.spin(0.01)
                answer = leg.answered(message)
                return answer is not None and np.allclose(answer.effort, expected, **CLOSE)

            client.until(lambda: matches() and leg.by_thread)
        # And they are refused once they are old.
        time.sleep(0.2)
        assert leg.silence_after(client.joint_states(*good(robot)))
    finally:
        leg.set(acceleration_source="zero", external_wrench=False)
    leg.natively(*good(robot))


def test_old_states_are_counted_without_python(leg):
    robot, refusals = leg.robot, leg.node.stream.rejections
    leg.natively(*good(robot))
    leg.node.stream.collect()
    before = refusals.counts["stale"]
    with leg.held():
        for _ in range(5):
            leg.publisher.publish(leg.client.joint_states(*good(robot), age=1.0))
            leg.client.spin(0.01)
            assert leg.natively(*good(robot))
    leg.node.stream.collect()
    assert refusals.counts["stale"] == before + 5
    assert "1 s old by their stamp" in refusals.last_message


def test_numbers_that_are_not_finite_are_counted(leg):
    robot, refusals = leg.robot, leg.node.stream.rejections
    leg.natively(*good(robot))
    before = refusals.total
    bad = leg.client.joint_states(robot.independent_joint_names, [np.nan, *Y[1:]], YD)
    leg.publisher.publish(bad)
    leg.client.until(lambda: refusals.total == before + 1)
    assert "not finite: position of hip_abduction" in refusals.last_message
    leg.natively(*good(robot))


def test_differences_are_its_own_too(leg):
    """On a parabola, with filters so fast that they pass the differences on as they are."""
    robot, names, dt = leg.robot, leg.robot.independent_joint_names, 0.004
    leg.set(velocity_cutoff=1e4, acceleration_cutoff=1e4)
    leg.set(velocity_source="differentiate", acceleration_source="estimate")
    ydd = np.array([1.0, -2.0, 0.5, 3.0])

    def at(k):
        return Y + YD * (k * dt) + 0.5 * ydd * (k * dt) ** 2

    def natively():
        leg.client.spin(0.15)  # until all that was measured is too old
        sent = [leg.client.joint_states(names, at(k), []) for k in range(20)]
        start = sent[-1].header.stamp
        for k, message in enumerate(sent):
            stamp = start.sec * 10**9 + start.nanosec + int(k * dt * 1e9)
            message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
            leg.publisher.publish(message)
            leg.client.spin(0.003)
        leg.client.spin(0.02)
        answers, by_thread = [leg.answered(message) for message in sent], leg.by_thread
        for k in range(4, 20):
            if None not in answers[k - 2 : k + 1]:
                q, yd = robot.close(at(k)), (at(k) - at(k - 1)) / dt
                expected = efforts(robot, q, yd, ydd)
                np.testing.assert_allclose(answers[k].effort, expected, 1e-4, 1e-4)
        return by_thread

    leg.client.until(natively)
    leg.set(velocity_source="message", acceleration_source="zero")
    leg.set(velocity_cutoff=50.0, acceleration_cutoff=20.0)
    leg.natively(*good(robot))


def test_two_drivers_with_a_half_each(leg):
    robot, client = leg.robot, leg.client
    q = robot.close(Y)
    qd = robot.spanning_velocity(q, YD)
    expected = efforts(robot, q, YD)
    halves = ("hip_abduction_rotor", "knee"), ("hip_flexion", "ankle_pulley_rotor", "gripper")
    values = {name: (q[k], qd[k]) for k, name in enumerate(robot.joint_names)}
    values["gripper"] = 0.5, 0.5
    client.spin(0.15)

    def natively():
        leg.received.clear()
        for names in halves:
            position, velocity = zip(*(values[name] for name in names), strict=True)
            leg.publisher.publish(client.joint_states(names, position, velocity))
            client.spin(0.01)
        for answer in leg.received:
            np.testing.assert_allclose(answer.effort, expected, **CLOSE)
        return len(leg.received) == 2 and leg.by_thread == 2

    client.until(natively)
    # One of them falls silent: what it said is too old before long.
    refusals = leg.node.stream.rejections
    before = refusals.counts["joints missing"]

    def refused():
        position, velocity = zip(*(values[name] for name in halves[0]), strict=True)
        leg.publisher.publish(client.joint_states(halves[0], position, velocity))
        client.spin(0.02)
        return refusals.counts["joints missing"] > before

    client.until(refused)
    leg.natively(*good(robot))


def test_it_ends_when_the_node_is_not_active(leg):
    leg.natively(*good(leg.robot))
    assert threads() == 1  # and that of commands
    for _ in range(3):
        assert leg.client.change_state(Transition.TRANSITION_DEACTIVATE)
        assert not threads()
        assert leg.silence_after(leg.client.joint_states(*good(leg.robot)))
        assert leg.client.change_state(Transition.TRANSITION_ACTIVATE)
        assert threads() == 1  # and that of commands
        leg.client.until(lambda: leg.publisher.get_subscription_count() > 0)
    leg.natively(*good(leg.robot))


def test_joint_states_of_others_are_counted_without_python(leg):
    robot, refusals = leg.robot, leg.node.stream.rejections
    leg.natively(*good(robot))
    before = refusals.counts["misnamed joints"]
    for _ in range(5):
        leg.publisher.publish(leg.client.joint_states(["gripper"], [0.1], [0.2]))
        leg.client.spin(0.01)
        assert leg.natively(*good(robot))
    leg.node.stream.collect()
    assert refusals.counts["misnamed joints"] == before + 5


def test_far_jumps_are_searched_for_and_come_back(leg):
    robot = leg.robot
    for ankle in (-0.4, 0.3, -0.2):
        y = np.array([-0.5, 0.9, 1.4, ankle])
        answer = leg.answer_to(*good(robot, y))
        np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(y), YD), **CLOSE)
        answer = leg.natively(*good(robot))
        np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)


@pytest.mark.parametrize("acceleration_source", ["zero", "estimate"])
def test_offsets_are_added_to_what_is_measured(leg, acceleration_source):
    robot, offset = leg.robot, np.array([0.0, 0.03, -0.02, 0.0])
    named = zip(robot.independent_joint_names, offset.tolist(), strict=True)
    leg.set(joint_offsets=str(dict(named)), acceleration_source=acceleration_source)
    answer = leg.natively(*good(robot, Y - offset, 0.0 * YD))
    expected = efforts(robot, robot.close(Y), 0.0 * YD)
    np.testing.assert_allclose(answer.effort, expected, **CLOSE)
    leg.set(joint_offsets="", acceleration_source="zero")
    answer = leg.natively(*good(robot))
    np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)


def test_a_thread_of_python_that_never_rests_does_not_stop_it(leg):
    """Times are for the benchmark; here it must but go on."""
    stop = threading.Event()

    def never_rest():
        while not stop.is_set():
            sum(range(1000))

    robot = leg.robot
    leg.natively(*good(robot))
    busy = threading.Thread(target=never_rest)
    busy.start()
    try:
        leg.natively(*good(robot))
    finally:
        stop.set()
        busy.join()
