"""Joint states as they come in the field, on a leg with loops: which sensors, when, by whom."""

import time

import numpy as np
import pytest
from conversation import Conversation, Diagnoses, efforts, parameters
from geometry_msgs.msg import WrenchStamped
from loop_oracle import LoopOracle
from rclpy.qos import qos_profile_sensor_data
from ros_graph import PATIENCE
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

Y, YD = np.array([0.1, 0.3, 0.9, -0.2]), np.array([0.5, -1.0, 2.0, 1.0])
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


@pytest.fixture(scope="module")
def talk(leg):
    return Conversation(leg[0])


@pytest.fixture(scope="module")
def state(leg):
    """Spanning position and velocity at Y, YD, by joint name."""
    robot = leg[2]
    q = robot.close(Y)
    qd = robot.spanning_velocity(q, YD)
    return {name: (q[k], qd[k]) for k, name in enumerate(robot.joint_names)}


def measured(state, names):
    """Names, positions and velocities of some joints."""
    return names, [state[n][0] for n in names], [state[n][1] for n in names]


def test_equals_pinocchio_with_the_loops(leg, talk):
    robot = leg[2]
    oracle = LoopOracle(robot)
    for ankle in (-0.2, 0.0, 0.1):
        y = np.array([*Y[:3], ankle])
        answer = talk.answer_to(robot.independent_joint_names, y, YD)
        assert tuple(answer.name) == robot.actuated_joint_names
        q = robot.close(y)
        G, g = oracle.explicit(q, robot.spanning_velocity(q, YD))
        tau = G.T @ oracle.rnea(q, G @ YD, g)
        np.testing.assert_allclose(answer.effort, robot.actuator_efforts(q, tau), **CLOSE)


@pytest.mark.parametrize(
    "names",
    [
        ["hip_abduction_rotor", "hip_flexion_rotor", "knee_rotor", "ankle_pulley_rotor"],
        ["ankle_pulley", "knee", "hip_flexion_rotor", "hip_abduction"],
    ],
    ids=["motors", "mixed"],
)
def test_encoders_on_motors_or_on_joints(leg, talk, state, names):
    robot = leg[2]
    answer = talk.answer_to(*measured(state, names))
    np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)


def test_joints_split_over_messages(leg, talk, state):
    client, _, robot = leg
    hips, rest = ["hip_flexion", "hip_abduction"], ["knee", "ankle"]
    client.spin(0.15)  # what other tests have said is too old by now
    talk.received.clear()
    for _ in range(3):
        talk.publisher.publish(client.joint_states(*measured(state, hips)))
        client.spin(0.02)
    assert not talk.efforts

    def second_after_first():
        talk.publisher.publish(client.joint_states(*measured(state, hips)))
        talk.publisher.publish(second := client.joint_states(*measured(state, rest)))
        client.spin(0.03)
        return talk.answered(second)

    client.until(second_after_first)
    expected = efforts(robot, robot.close(Y), YD)
    np.testing.assert_allclose(talk.efforts[-1].effort, expected, **CLOSE)
    # The hips fall silent: nothing is computed from what is left of them.
    client.spin(0.15)
    assert talk.silence_after(client.joint_states(*measured(state, rest)))
    client.until(second_after_first)


def test_prefixes(leg, talk, state):
    client, _, robot = leg
    names = list(robot.independent_joint_names)
    _, q, qd = measured(state, names)
    with parameters(client, joint_prefix="left_"):
        answer = talk.answer_to([f"left_{name}" for name in names], q, qd)
        assert tuple(answer.name) == tuple(f"left_{n}" for n in robot.actuated_joint_names)
        np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)
        assert talk.silence_after(client.joint_states(names, q, qd))
    talk.answer_to(names, q, qd)


def test_best_effort_drivers_that_come_late_and_restart(leg, talk, state):
    client, _, robot = leg
    for _ in range(2):
        driver = client.publisher(JointState, "joint_states", qos_profile_sensor_data)
        for _ in range(100):
            message = client.joint_states(*measured(state, list(robot.joint_names)))
            driver.publish(message)
            client.spin(0.02)
            if talk.answered(message):
                break
        else:
            raise AssertionError("not answered")
        client.node.destroy_publisher(driver)


def test_velocities_are_differences_where_none_are_measured(leg, talk):
    client, _, robot = leg
    period, names = 0.01, robot.independent_joint_names
    positions = [Y + k * period * YD for k in range(6)]
    with parameters(client, velocity_source="differentiate"):
        client.spin(0.12)
        answers = talk.stream([(names, y, []) for y in positions], period)
    assert answers[0] is None
    assert sum(answer is not None for answer in answers) >= 3
    for y, answer in zip(positions, answers, strict=True):
        if answer is not None:  # constant velocity: the differences are exact
            expected = efforts(robot, robot.close(y), YD)
            np.testing.assert_allclose(answer.effort, expected, rtol=1e-5, atol=1e-6)


def test_accelerations_are_differences_of_velocities(leg, talk):
    client, _, robot = leg
    ydd = np.array([3.0, -2.0, 4.0, -5.0])
    names, period = robot.independent_joint_names, 0.01
    times = period * np.arange(6)
    states = [(Y + t * YD + 0.5 * t**2 * ydd, YD + t * ydd) for t in times]
    with parameters(client, acceleration_source="estimate"):
        client.spin(0.12)
        answers = talk.stream([(names, *s) for s in states], period)
    assert answers[0] is None
    assert sum(answer is not None for answer in answers) >= 3
    for (y, yd), answer in zip(states, answers, strict=True):
        if answer is not None:
            expected = efforts(robot, robot.close(y), yd, ydd)
            np.testing.assert_allclose(answer.effort, expected, rtol=1e-5, atol=1e-6)


def test_accelerations_of_a_reference_for_any_joints(leg, talk, state):
    client, _, robot = leg
    q, ydd = robot.close(Y), np.array([3.0, -2.0, 4.0, -5.0])
    qdd = dict(
        zip(robot.joint_names, robot.spanning_acceleration(q, YD, ydd).tolist(), strict=True)
    )
    joints = ["knee_rotor", "hip_flexion", "ankle_pulley", "hip_abduction"]
    point = JointTrajectoryPoint(accelerations=[qdd[joint] for joint in joints])
    reference = JointTrajectory(joint_names=joints, points=[point])
    good = client.joint_states(*measured(state, robot.independent_joint_names))
    wanted = client.publisher(JointTrajectory, "~/reference")
    with parameters(client, acceleration_source="reference"):
        assert talk.silence_after(good)
        for _ in range(200):
            wanted.publish(reference)
            client.spin(0.02)
            message = client.joint_states(*measured(state, robot.independent_joint_names))
            talk.publisher.publish(message)
            client.spin(0.02)
            if talk.answered(message):
                break
        expected = efforts(robot, q, YD, ydd)
        np.testing.assert_allclose(talk.efforts[-1].effort, expected, **CLOSE)
        client.spin(0.15)  # longer than joint_state_timeout
        message = client.joint_states(*measured(state, robot.independent_joint_names))
        assert talk.silence_after(message)


def test_external_wrenches(leg, talk, state):
    client, _, robot = leg
    numbers = np.array([10.0, -20.0, 30.0, 1.0, 2.0, -3.0])
    wrench = WrenchStamped()
    wrench.header.frame_id = "foot"
    f, t = wrench.wrench.force, wrench.wrench.torque
    f.x, f.y, f.z, t.x, t.y, t.z = numbers.tolist()
    names = robot.independent_joint_names
    sensor = client.publisher(WrenchStamped, "~/external_wrench")
    with parameters(client, external_wrench=True):
        assert talk.silence_after(client.joint_states(*measured(state, names)))
        for _ in range(200):
            sensor.publish(wrench)
            client.spin(0.02)
            message = client.joint_states(*measured(state, names))
            talk.publisher.publish(message)
            client.spin(0.02)
            if talk.answered(message):
                break
        expected = efforts(robot, robot.close(Y), YD, None, {"foot": numbers})
        np.testing.assert_allclose(talk.efforts[-1].effort, expected, **CLOSE)
        client.spin(0.15)
        assert talk.silence_after(client.joint_states(*measured(state, names)))
    answer = talk.answer_to(*measured(state, names))
    np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(Y), YD), **CLOSE)


def test_commands_in_their_own_order(leg, talk, state):
    client, _, robot = leg
    order = ["knee_rotor", "hip_abduction_rotor"]
    refused = client.set_parameter("command_joints", ["knee"])
    assert not refused.successful
    assert "knee not actuated in 'demo_leg'; use some of hip_abduction_rotor" in refused.reason
    refused = client.set_parameter("command_joints", [order[0], order[0]])
    assert "name each once" in refused.reason
    assert client.node.count_publishers("dynamics/effort_commands") == 0
    with parameters(client, command_joints=order):
        talk.answer_to(*measured(state, robot.joint_names))
        commands = client.listen(Float64MultiArray, "~/effort_commands")
        for _ in range(200):
            answer = talk.answer_to(*measured(state, robot.joint_names))
            if commands:
                break
        place = [robot.actuated_joint_names.index(name) for name in order]
        assert commands[-1].data.tolist() == [answer.effort[k] for k in place]
        # What is refused gives no command either.
        commands.clear()
        bad = client.joint_states(*measured(state, robot.joint_names))
        for lost in ("knee", "knee_rotor"):  # either determines the other
            bad.position[robot.joint_names.index(lost)] = float("nan")
        assert talk.silence_after(bad)
        assert not any(any(command.data) for command in commands)


def test_terms(leg, talk, state):
    client, _, robot = leg
    q = robot.close(Y)
    still = efforts(robot, q, 0.0 * YD)
    with parameters(client, terms=["gravity"]):
        names, position, velocity = measured(state, robot.joint_names)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:  # the kernel is made beside the stream
            answer = talk.answer_to(names, position, velocity)
            if np.allclose(answer.effort, still, **CLOSE):
                break
        np.testing.assert_allclose(answer.effort, still, **CLOSE)
    for terms, says in ((["weight"], "'weight' is unknown"), ([""], "'' is unknown")):
        refused = client.set_parameter("terms", terms)
        assert not refused.successful
        assert says in refused.reason


def test_near_a_dead_point_there_is_no_effort(leg, talk, state):
    client, _, robot = leg
    good = measured(state, robot.joint_names)
    with parameters(client, max_condition_number=2.0):
        assert talk.silence_after(client.joint_states(*good))
    talk.answer_to(*good)


def test_out_of_reach_there_is_no_effort_and_no_waiting(leg, talk, state):
    client, _, robot = leg
    names, position, velocity = measured(state, robot.independent_joint_names)
    good = names, position, velocity
    beyond = names, [*position[:3], -1.5], velocity
    diagnoses = Diagnoses(client)

    def searched():
        talk.publisher.publish(client.joint_states(*beyond))
        return diagnoses.received and "ankle_linkage" in diagnoses.received[-1].status[0].message

    talk.answer_to(*good)
    talk.received.clear()
    client.until(searched)
    assert not talk.efforts
    assert diagnoses.refusals()["loops do not close"] > 1
    # It stops at nothing: the next good one is answered, wherever it is.
    for ankle in (0.6, -0.6):
        y = np.array([*position[:3], ankle])
        answer = talk.answer_to(names, y, velocity)
        np.testing.assert_allclose(answer.effort, efforts(robot, robot.close(y), YD), **CLOSE)
