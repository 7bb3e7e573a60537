"""Identification of synthetic recordings: intervals hold, noise is all that is left."""

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
from identification_cases import ROBOTS, case, drawn, measured, waving

from rbda_ros import InputError, Payload, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.recordings.identification import identify, identify_motions, read_motions
from rbda_ros.recordings.identified_files import payload_call, payload_of
from rbda_ros.robot.effort_evidence import Evidence, gather, regressor_of_efforts

TRIALS, SEED = 200, 20261117
ALL = ("inertia", "friction", "effort_offset")


def trials(name, count, seed, correlation=0.0):
    """Shares of true parameters in their intervals, and residuals over noise, of each trial."""
    robot, evidence, noise = case(name)
    rng = np.random.default_rng(seed)
    inside, left = [], []
    for _ in range(count):
        values, offsets = drawn(robot, rng), noise * rng.normal(size=robot.ny)
        found = identify(robot, measured(evidence, values, offsets, noise, rng, correlation), ALL)
        true = np.concatenate([values, offsets])
        low, high = found.fit.intervals.T
        inside.append(((low <= true) & (true <= high))[found.fit.before > 0.0])
        left.append(found.identified_rms / noise)
    return np.array(inside), np.array(left)


@pytest.mark.parametrize("name", ROBOTS)
def test_true_parameters_are_in_their_intervals(name):
    inside, left = trials(name, 4, seed=7)
    assert inside.mean() > 0.9  # of some hundred, of which those of one trial go together
    np.testing.assert_allclose(left.mean(axis=0), 1.0, atol=0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("name", ROBOTS)
def test_true_parameters_are_in_their_intervals_in_95_of_100_trials(name, correlation):
    """With noise of one average that tells nothing of the next, and with one that does."""
    inside, left = trials(name, TRIALS, SEED, correlation)
    # Parameters of one trial go together, so that the error of the mean is that of trials.
    error = inside.mean(axis=1).std() / np.sqrt(TRIALS)
    assert abs(inside.mean() - 0.95) < 3 * error
    assert inside.mean(axis=0).min() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / TRIALS)  # of each
    np.testing.assert_allclose(left.mean(axis=0), 1.0, atol=0.05)


def test_outliers_cost_little():
    robot, evidence, noise = case("demo_leg")
    rng = np.random.default_rng(8)
    values = drawn(robot, rng)
    clean = measured(evidence, values, 0.0, noise, rng)
    efforts = clean.efforts.copy()
    hit = rng.random(efforts.shape) < 0.05
    efforts[hit] += 30.0 * (noise * np.ones_like(efforts))[hit]
    dirty = Evidence(clean.times, clean.A, efforts, clean.velocities)
    found = identify(robot, dirty, ALL)
    expected = found.judged.A[..., : len(values)] @ values
    left = found.judged.A @ found.fit.values - expected
    assert (np.sqrt((left**2).mean(axis=0)) < 0.5 * noise).all()
    assert (found.fit.weights[hit[: len(found.fit.weights)]] < 0.5).mean() > 0.95


def test_says_what_a_motion_cannot_tell():
    """Standing still tells something of weights, and nothing of friction."""
    robot, _, noise = case("mini_cheetah_leg")
    motion = waving(robot, count=1000)
    still = type(motion)(
        motion.times,
        np.tile(robot.tree.home, (1000, 1)),
        np.zeros_like(motion.yd),
        np.zeros_like(motion.ydd),
        motion.efforts,
    )
    evidence = gather(robot, [still])
    rng = np.random.default_rng(9)
    found = identify(
        robot,
        measured(evidence, robot.parameters().values, 0.0, noise, rng),
        ("inertia", "friction"),
    )
    assert {f"{name}.damping" for name in robot.independent_joint_names} <= set(found.unknown)
    # Where nothing is told, the description stands.
    names = found.parameters.names
    k = names.index(f"{robot.independent_joint_names[0]}.damping")
    assert abs(found.fit.values[k]) < 0.1 * found.fit.before[k]


def test_a_payload_is_found_with_its_interval():
    robot = ROBOTS["demo_leg"]()
    motion = waving(robot)
    payload = Payload("foot", 1.3, (0.05, 0.01, -0.04), (4e-3, 0.0, 0.0, 3e-3, 0.0, 2e-3))
    loaded = robot.with_payloads({"box": payload})
    efforts = loaded.inverse_dynamics_efforts(motion.q, motion.yd, motion.ydd)[0]
    rng = np.random.default_rng(10)
    noise = 0.05 * np.abs(efforts).max(axis=0)
    motion = type(motion)(
        motion.times, motion.q, motion.yd, motion.ydd,
        efforts + noise * rng.normal(size=efforts.shape),
    )  # fmt: skip
    evidence = gather(robot, [motion], "foot")
    found = identify(robot, evidence, ("payload",), payload="foot")
    start = found.parameters.names.index("payload.m")
    low, high = found.fit.intervals[start]
    assert low < 1.3 < high and high - low < 0.3
    identified = payload_of(found)
    assert identified.mass == pytest.approx(1.3, rel=0.05)
    np.testing.assert_allclose(identified.com, payload.com, atol=0.02)
    robot.with_payloads({"it": identified})  # physical
    assert "set_payload rbda_ros/srv/SetPayload" in payload_call(identified, "/dynamics")


def with_wrong_zeros(robot, motion, offsets, rng):
    """Measurements of a motion by joints whose zeros are off, with noisy efforts."""
    efforts = robot.inverse_dynamics_efforts(motion.q, motion.yd, motion.ydd, friction=True)[0]
    noise = 0.01 * np.abs(efforts).max(axis=0)
    wrong = motion.shifted(robot, {name: -offset for name, offset in offsets.items()})
    return replace(wrong, efforts=efforts + noise * rng.normal(size=efforts.shape))


@pytest.mark.parametrize(
    "measured_by", ["actuated", pytest.param("independent", marks=pytest.mark.nightly)]
)
def test_zeros_of_joints_are_found_with_their_intervals(measured_by):
    robot = ROBOTS["demo_leg"]()
    joints = getattr(robot, f"{measured_by}_joint_names")
    motion = replace(waving(robot, 2000), joints=joints)
    offsets = dict(zip(joints, (0.08, -0.05, 0.04, 0.03), strict=True))
    recorded = with_wrong_zeros(robot, motion, offsets, np.random.default_rng(11))
    found = identify_motions(robot, [recorded], ("offset", "friction"))
    for name, offset in found.offsets.items():
        low, high = found.fit.intervals[found.parameters.names.index(f"{name}.offset")]
        assert low < offsets[name] < high and high - low < 0.2, name
        assert offset == pytest.approx(offsets[name], abs=0.02)
    assert len(found.offsets) >= 3
    assert (found.identified_rms < 1.2 * found.fit.noise).all()
    assert (found.nominal_rms > 1.5 * found.identified_rms).any()


@pytest.mark.nightly
def test_zeros_are_in_their_intervals_in_95_of_100_trials():
    robot, rng = ROBOTS["demo_leg"](), np.random.default_rng(SEED)
    motion, inside = waving(robot, 800), []
    for _ in range(100):
        offsets = dict(zip(robot.independent_joint_names, 0.05 * rng.normal(size=4), strict=True))
        recorded = with_wrong_zeros(robot, motion, offsets, rng)
        found = identify_motions(robot, [recorded], ("offset", "friction"), cutoff=50.0)
        low, high = found.fit.intervals[-4:].T
        true = np.array(list(offsets.values()))
        inside.append((low <= true) & (true <= high))
    error = np.mean(inside, axis=1).std() / np.sqrt(len(inside))
    assert abs(np.mean(inside) - 0.95) < 3 * error


def test_a_joint_without_gravity_tells_nothing_of_its_zero():
    """About a vertical axis, all zeros are as good."""
    urdf = (
        '<robot name="arm"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
        '</inertial></link><joint name="j" type="revolute"><parent link="base"/><child link="arm"/>'
        '<axis xyz="0 0 1"/><limit lower="-2" upper="2" velocity="9" effort="9"/></joint></robot>'
    )
    robot = load_robot(urdf)
    recorded = with_wrong_zeros(robot, waving(robot, 500), {"j": 0.1}, np.random.default_rng(12))
    found = identify_motions(robot, [recorded], ("offset",))
    assert found.offsets == {} and found.unknown == ("j.offset",)


@pytest.mark.parametrize(
    ("what", "payload", "says"),
    [
        (("mass",), None, "what: mass"),
        ((), None, "what: nothing"),
        (("payload",), None, "name the link"),
        (("inertia",), "foot", "only with 'payload'"),
        (("offset",), None, "see identify_motions"),
    ],
)
def test_refuses_what_cannot_be_identified(what, payload, says):
    robot, evidence, _ = case("demo_leg")
    with pytest.raises(InputError, match=says):
        identify(robot, evidence, what, payload=payload)


def test_refuses_too_little():
    robot, evidence, _ = case("demo_leg")
    with pytest.raises(InputError, match="record for longer"):
        identify(robot, evidence.part(slice(0, 10)), ALL)


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
    monkeypatch.setattr("rbda_ros.recordings.identification.MOST", 40)
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
