"""Identification of synthetic recordings: intervals hold, noise is all that is left."""

import numpy as np
import pytest
from identification_cases import ROBOTS, case, drawn, measured, waving

from rbda_ros import InputError, Payload
from rbda_ros.recordings.identification import identify
from rbda_ros.recordings.patched_files import payload_call, payload_of
from rbda_ros.robot.effort_evidence import Evidence, gather

ALL = ("inertia", "friction", "offset")


def trials(name, count):
    """Shares of true parameters in their intervals, and residuals over noise, of each trial."""
    robot, evidence, noise = case(name)
    rng = np.random.default_rng(7)
    inside, left = [], []
    for _ in range(count):
        values, offsets = drawn(robot, rng), noise * rng.normal(size=robot.ny)
        found = identify(robot, measured(evidence, values, offsets, noise, rng), ALL)
        true = np.concatenate([values, offsets])
        low, high = found.fit.intervals.T
        inside.append(((low <= true) & (true <= high))[found.fit.before > 0.0])
        left.append(found.identified_rms / noise)
    return np.array(inside), np.array(left)


@pytest.mark.parametrize("name", ROBOTS)
def test_true_parameters_are_in_their_intervals(name):
    inside, left = trials(name, 4)
    assert inside.mean() > 0.9  # of some hundred, of which those of one trial go together
    np.testing.assert_allclose(left.mean(axis=0), 1.0, atol=0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROBOTS)
def test_true_parameters_are_in_their_intervals_in_95_of_100_trials(name):
    inside, left = trials(name, 200)
    assert 0.94 < inside.mean() < 0.965
    assert inside.mean(axis=0).min() > 0.88  # of each; three deviations of 200 trials are 4.6 %
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


@pytest.mark.parametrize(
    ("what", "payload", "says"),
    [
        (("mass",), None, "what: mass"),
        ((), None, "what: nothing"),
        (("payload",), None, "name the link"),
        (("inertia",), "foot", "only with 'payload'"),
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
