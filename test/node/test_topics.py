"""Joint states in, efforts out, between two processes."""

from collections import Counter

import numpy as np
import pytest
from conversation import Conversation, Diagnoses, parameters
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from nav_msgs.msg import Odometry
from pinocchio_oracle import PinocchioOracle, random_state
from ros_requests import odometry_of

TOLERANCE = 1e-9


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


def bad(client, names):
    """Messages that must not be answered, and the reason that is counted."""
    q, qd, nan, inf = [0.1] * len(names), [0.2] * len(names), float("nan"), float("inf")

    def states(*state, **age):
        return lambda: client.joint_states(*state, **age)

    return [
        (states(names, [nan, *q[1:]], qd), "not finite"),
        (states(names, q, [inf, *qd[1:]]), "no velocity"),
        (states([f"left_{n}" for n in names], q, qd), "misnamed joints"),
        (states([*names, names[0]], [*q, 0.1], [*qd, 0.2]), "misnamed joints"),
        (states([], [], []), "misnamed joints"),
        (states(names, q, qd, age=1.0), "stale"),
        (states(names, q, qd, age=-1.0), "stale"),
        (states(names, q, qd, age=0.05), "out of order"),
        (states(names, q[1:], qd), "wrong size"),
        (states(names, q, qd[1:]), "wrong size"),
        (states(names, q, []), "no velocity"),
    ]


def test_refuses_counts_and_recovers(arm, arm_talk):
    client, _, robot = arm
    good = robot.joint_names, [0.1] * 6, [0.2] * 6
    diagnoses = Diagnoses(client)
    before = diagnoses.refusals()
    for make, reason in bad(client, robot.joint_names):
        assert arm_talk.refuses(make, *good), reason
    expected = Counter(reason for _, reason in bad(client, robot.joint_names))
    assert diagnoses.refusals() - before == expected


def test_unstamped_is_stale_unless_any_age_will_do(arm, arm_talk):
    client, _, robot = arm
    good = robot.joint_names, [0.1] * 6, [0.2] * 6
    unstamped = client.joint_states(*good)
    unstamped.header.stamp.sec = unstamped.header.stamp.nanosec = 0
    assert arm_talk.refuses(lambda: unstamped, *good)
    with parameters(client, joint_state_timeout=0.0):
        arm_talk.publisher.publish(unstamped)
        client.until(lambda: arm_talk.answered(unstamped))


def test_diagnostics(arm, arm_talk):
    client, _, robot = arm
    diagnoses = Diagnoses(client)
    status, values = diagnoses.next()
    status, values = diagnoses.next()
    assert (status.level, status.message) == (DiagnosticStatus.STALE, "no joint_states")
    assert values["rate [Hz]"] == "0.0"
    assert values["latency, median [us]"] == "none"
    refused = int(values.get("refused: not finite", 0))

    for _ in range(3):
        arm_talk.publisher.publish(client.joint_states(robot.joint_names, [np.nan] * 6, [0.0] * 6))
    status, values = diagnoses.next()
    assert status.level == DiagnosticStatus.ERROR
    listed = ", ".join(robot.joint_names)
    assert status.message == f"input refused: joint_states are not finite: position of {listed}"
    assert int(values["refused: not finite"]) == refused + 3

    for _ in range(10):
        arm_talk.answer_to(robot.joint_names, [0.1] * 6, [0.2] * 6)
    arm_talk.publisher.publish(client.joint_states(["gripper"], [0.1], [0.2]))  # of someone else
    status, values = diagnoses.next()
    assert (status.level, status.message) == (DiagnosticStatus.OK, "publishing efforts")
    assert status.hardware_id == values["model"] == robot.name
    client.until(lambda: diagnoses.next()[1]["kernel"] == "compiled")
    assert float(values["rate [Hz]"]) > 0.0
    for what in ("processing time", "latency"):
        median, p99 = (float(values[f"{what}, {of} [us]"]) for of in ("median", "99th percentile"))
        assert 0.0 < median <= p99
    assert float(values["latency, median [us]"]) > float(values["processing time, median [us]"])
    assert float(values["loop residual"]) == 0.0
    assert float(values["condition number"]) == 1.0


def test_saturates_at_the_limits_and_says_so(arm, arm_talk):
    client, urdf, robot = arm
    q, qd = [0.1, -1.0, 1.0, 0.5, 0.2, 0.1], [6.0, 40.0, -50.0, 3.0, 30.0, 0.0]
    free = PinocchioOracle(urdf, robot).rnea(np.array(q), np.array(qd), np.zeros(6))
    limit = np.array([j.limits.effort for j in robot.description.joints if j.type == "revolute"])
    assert (np.abs(free) > limit).any()
    assert (np.abs(free) < limit).any()
    with parameters(client, saturate=True):
        answer = arm_talk.answer_to(robot.joint_names, q, qd)
        expected = np.clip(free, -limit, limit)
        np.testing.assert_allclose(answer.effort, expected, TOLERANCE, TOLERANCE)
        diagnoses = Diagnoses(client)
        for _ in range(3):
            arm_talk.answer_to(robot.joint_names, q, qd)
        status, values = diagnoses.next()
        assert status.level == DiagnosticStatus.WARN
        assert "efforts clipped at their limits" in status.message
        assert int(values["saturated"]) > 0
    answer = arm_talk.answer_to(robot.joint_names, q, qd)
    np.testing.assert_allclose(answer.effort, free, TOLERANCE, TOLERANCE)


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

    talk.received.clear()
    for _ in range(20):
        base.publish(odometry_of(client.joint_states(*joints).header, q, qd))
        client.spin(0.02)
        talk.publisher.publish(client.joint_states(*joints))
        client.spin(0.02)
    expected = PinocchioOracle(urdf, robot).rnea(q, qd, np.zeros(robot.nv))[6:]
    np.testing.assert_allclose(talk.received[-1].effort, expected, TOLERANCE, TOLERANCE)


def test_refuses_parameters_while_it_runs(arm):
    client = arm[0]
    for name, value, says in [
        ("acceleration_source", "guess", "use one of zero, reference, estimate"),
        ("velocity_source", "guess", "use one of message, differentiate"),
        ("terms", ["weight"], "'weight' is unknown"),
        ("command_joints", ["gripper"], "gripper not actuated in 'ur5'"),
        ("joint_state_timeout", 11.0, "out of range"),
        ("max_condition_number", 0.5, "out of range"),
        ("acceleration_cutoff", float("nan"), "out of range"),
        ("autostart", False, "read-only"),
        ("gravity", [0.0, 0.0, 0.0], "while unconfigured"),
    ]:
        result = client.set_parameter(name, value)
        assert not result.successful, name
        assert says in result.reason


def test_parameters_are_set_together_or_not_at_all(arm):
    client = arm[0]
    assert not client.set_parameters(saturate=True, terms=["weight"]).successful
    assert not client.parameter("saturate").bool_value
    assert client.set_parameters(saturate=True, terms=["gravity"]).successful
    assert client.parameter("saturate").bool_value
    assert client.parameter("terms").string_array_value == ["gravity"]
    defaults = {"saturate": False, "terms": ["gravity", "coriolis", "inertial"]}
    assert client.set_parameters(**defaults).successful
