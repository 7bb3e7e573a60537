"""Efforts do not jump, do not pass their limits, and end in a word where that is asked for."""

from dataclasses import replace

import numpy as np
import pytest
from conversation import Conversation, parameters
from lifecycle_msgs.msg import Transition
from rbda_ros.node.stream.effort_safety import LONGEST_STEP, EffortSafety

from rbda_ros.control.rejections import Reason
from rbda_ros.node.parameters import Settings

MS = 1_000_000  # [ns]


def limited(safety, efforts, now):
    efforts = np.array(efforts, float)
    safety.limit(efforts, now)
    return efforts


def test_without_settings_it_has_nothing_to_do():
    assert not EffortSafety(Settings()).active
    for setting in ({"ramp_in": 1.0}, {"effort_rate_limit": 1.0}, {"on_refusal": "zero"}):
        assert EffortSafety(replace(Settings(), **setting)).active


def test_efforts_grow_over_the_ramp_and_again_after_activation():
    safety = EffortSafety(replace(Settings(), ramp_in=0.1))
    start = 5_000 * MS
    for _ in range(2):
        for ms, share in ((0, 0.0), (25, 0.25), (50, 0.5), (100, 1.0), (200, 1.0)):
            found = limited(safety, [8.0, -4.0], start + ms * MS)
            np.testing.assert_allclose(found, [8.0 * share, -4.0 * share], 1e-12)
        safety.forget()
        start += 10_000 * MS


def test_efforts_change_at_their_rate_from_zero_on():
    safety = EffortSafety(replace(Settings(), effort_rate_limit=100.0))
    assert limited(safety, [5.0], 0).tolist() == [0.0]
    assert limited(safety, [5.0], 10 * MS).tolist() == pytest.approx([1.0])
    assert limited(safety, [-5.0], 20 * MS).tolist() == pytest.approx([0.0])
    assert limited(safety, [0.5], 30 * MS).tolist() == pytest.approx([0.5])
    # A long pause is no reason for a jump, nor is time that goes back.
    after = limited(safety, [1e6], 30 * MS + 10_000 * MS)
    assert after.tolist() == pytest.approx([0.5 + 100.0 * LONGEST_STEP * 1e-9])
    assert limited(safety, [0.0], 0).tolist() == pytest.approx(after.tolist())


def test_one_message_of_zeros_follows_a_refusal():
    safety = EffortSafety(replace(Settings(), on_refusal="zero", effort_rate_limit=100.0))
    assert not safety.zero_follows(Reason.STALE)  # nothing was sent
    limited(safety, [5.0], 0)
    limited(safety, [5.0], 10 * MS)
    assert not safety.zero_follows(Reason.MISNAMED)  # may be another's
    assert safety.zero_follows(Reason.STALE)
    assert not safety.zero_follows(Reason.STALE)
    assert limited(safety, [5.0], 20 * MS).tolist() == pytest.approx([1.0])  # from zero
    assert not EffortSafety(Settings()).zero_follows(Reason.STALE)


@pytest.fixture(scope="module")
def talk(arm):
    return Conversation(arm[0])


GOOD = [0.1] * 6, [0.2] * 6


def test_clips_at_its_own_limits(arm, talk):
    client, _, robot = arm
    names = robot.joint_names
    free = np.array(talk.answer_to(names, *GOOD).effort)
    assert abs(free[1]) > 5.0
    with parameters(client, effort_limits="{shoulder_lift_joint: 2.5}"):
        clipped = np.array(talk.answer_to(names, *GOOD).effort)
    assert clipped[1] == pytest.approx(np.copysign(2.5, free[1]))
    np.testing.assert_allclose(np.delete(clipped, 1), np.delete(free, 1), 1e-12)
    refused = client.set_parameter("effort_limits", "{toe: 1.0}")
    assert not refused.successful and "toe not actuated" in refused.reason
    refused = client.set_parameter("effort_limits", "{shoulder_lift_joint: -1.0}")
    assert not refused.successful and "zero or more" in refused.reason


def test_ramps_in_after_activation(arm, talk):
    client, _, robot = arm
    names = robot.joint_names
    full = np.array(talk.answer_to(names, *GOOD).effort)
    with parameters(client, ramp_in=60.0):
        assert client.change_state(Transition.TRANSITION_DEACTIVATE)
        assert client.change_state(Transition.TRANSITION_ACTIVATE)
        client.until(lambda: talk.publisher.get_subscription_count() > 0)
        small = np.array(talk.answer_to(names, *GOOD).effort)
        assert np.abs(small).max() < 0.5 * np.abs(full).max()
    np.testing.assert_allclose(talk.answer_to(names, *GOOD).effort, full, 1e-12)


def test_says_zero_once_when_states_are_refused(arm, talk):
    client, _, robot = arm
    names = robot.joint_names
    with parameters(client, on_refusal="zero"):
        talk.answer_to(names, *GOOD)
        talk.heard.clear()
        for _ in range(3):
            talk.publisher.publish(client.joint_states(names, [float("nan")] * 6, GOOD[1]))
        client.until(lambda: talk.heard)
        client.spin(0.3)
        assert [list(message.effort) for message in talk.heard] == [[0.0] * 6]
        assert np.abs(talk.answer_to(names, *GOOD).effort).max() > 1.0
