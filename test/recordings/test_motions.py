"""From bags to regressors and efforts."""

from dataclasses import replace

import numpy as np
import pytest
from bag_maker import (
    JOINT_STATE,
    LEG,
    LOOPS,
    STORE,
    demo_leg,
    joint_state,
    messages_of,
    swinging,
    write_bag,
)
from identification_cases import waving

from rbda_ros import InputError, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.recordings.motions import read_motions
from rbda_ros.robot.effort_evidence import gather, regressor_of_efforts


@pytest.fixture(scope="module")
def robot():
    return demo_leg()


def test_a_bag_becomes_the_motion_that_was_recorded(robot, tmp_path):
    recorded = swinging(robot, 400)
    bag = write_bag(tmp_path / "bag", messages_of(recorded))
    (motion,) = read_motions(robot, bag, Settings())
    np.testing.assert_allclose(motion.yd, recorded.velocity[:, : robot.ny], atol=1e-12)
    paces = 2 * np.pi * (0.4 + 0.17 * np.arange(robot.ny))
    t = np.arange(400) / 200.0
    ydd = -0.15 * paces**2 * np.sin(np.outer(t, paces))
    np.testing.assert_allclose(motion.ydd, ydd, atol=2e-4 * np.abs(ydd).max() * 2)
    # The true model explains the efforts, but for what differences miss of accelerations.
    evidence = gather(robot, [motion])
    left = evidence.efforts - evidence.A @ robot.parameters().values
    assert np.abs(left).max() < 1e-3 * np.abs(evidence.efforts).max()


def test_efforts_are_the_regressor_times_parameters(robot):
    motion = waving(robot, 50)
    A = regressor_of_efforts(robot, motion.q, motion.yd, motion.ydd)
    expected = robot.inverse_dynamics_efforts(motion.q, motion.yd, motion.ydd, friction=True)[0]
    np.testing.assert_allclose(A @ robot.parameters().values, expected, atol=1e-12)


def test_averages_are_those_of_blocks(robot):
    motion = waving(robot, 1001)
    coarse, fine = gather(robot, [motion], cutoff=10.0), gather(robot, [motion], cutoff=1e3)
    assert len(coarse.times) == 200 and len(fine.times) == 1001
    np.testing.assert_allclose(coarse.A[3], fine.A[15:20].mean(axis=0), atol=1e-12)


def test_gaps_part_episodes(robot, tmp_path):
    recorded = swinging(robot, 100)
    messages = []
    for k, row in enumerate(
        zip(recorded.position, recorded.velocity, recorded.effort, strict=True)
    ):
        time = int(recorded.times[k]) + (3 * 10**9 if k >= 60 else 0)
        data = STORE.serialize_cdr(joint_state(recorded.names, *row, time), JOINT_STATE)
        messages.append((time, bytes(data)))
    bag = write_bag(tmp_path / "bag", messages)
    assert [len(m.times) for m in read_motions(robot, bag, Settings())] == [60, 40]


def test_long_episodes_come_in_pieces(robot, tmp_path, monkeypatch):
    monkeypatch.setattr("rbda_ros.recordings.motions.MOST", 40)
    bag = write_bag(tmp_path / "bag", messages_of(swinging(robot, 100)))
    assert [len(m.times) for m in read_motions(robot, bag, Settings())] == [40, 40, 20]


def test_recordings_without_efforts_have_no_motion(robot, tmp_path):
    recorded = swinging(robot, 50)
    messages = []
    for time, position, velocity in zip(
        recorded.times, recorded.position, recorded.velocity, strict=True
    ):
        message = joint_state(recorded.names, position, velocity, [], time)
        messages.append((int(time), bytes(STORE.serialize_cdr(message, JOINT_STATE))))
    bag = write_bag(tmp_path / "bag", messages)
    assert not list(read_motions(robot, bag, Settings()))


@pytest.mark.parametrize("measured", ["independent", "actuated"])
def test_shifted_motions_are_those_that_would_have_been_measured(robot, measured):
    """Motors or joints measure; the others, and all velocities, follow through the loops."""
    motion = waving(robot, 60)
    names = getattr(robot, f"{measured}_joint_names")
    places = robot.coordinates.scalar_positions
    offsets = {name: 0.02 * (k + 1) for k, name in enumerate(names)}
    shifted = replace(motion, joints=names).shifted(robot, offsets)
    moved, still = (
        robot.spanning_velocity(m.q, m.yd)[:, [robot.joint_names.index(n) for n in names]]
        for m in (shifted, motion)
    )
    np.testing.assert_allclose(moved, still, atol=1e-9)
    for name, offset in offsets.items():
        change = shifted.q[:, places[name]] - motion.q[:, places[name]]
        np.testing.assert_allclose(change, offset, atol=1e-9)


def test_refuses_other_than_one_actuator_a_freedom(robot):
    loops = LOOPS.read_text().replace("actuated_joints: [", "actuated_joints: [knee, ")
    with pytest.raises(InputError, match="5 actuators for 4 degrees"):
        gather(load_robot(LEG, loops), [])
