"""Recordings of a robot whose base floats: its state comes from odometry in the bag."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from bag_maker import LEG, LOOPS, START, STORE, Motion, messages_of, odometry, write_bag
from rosbags.rosbag2 import Reader

from rbda_ros import Payload, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.recordings.identification import identify_motions, read_motions
from rbda_ros.recordings.label_file import Job, Model, Options, label_file

RATE, COUNT = 200.0, 300
SUBSTEPS = 4
SETTINGS = Settings(floating_base=True, joint_state_timeout=0.0)
MUD = {"mud": Payload("foot", 0.5, (0.0, 0.0, -0.03))}


@pytest.fixture(scope="module")
def nominal():
    return load_robot(LEG, LOOPS, floating_base=True)


@pytest.fixture(scope="module")
def flight(nominal):
    """A leg with mud on its foot, thrown, its joints driven: q, yd and efforts of the motors."""
    robot = nominal.with_payloads(MUD)
    names, dt = robot.independent_joint_names, 1.0 / RATE / SUBSTEPS
    q, yd = robot.tree.home.copy(), np.zeros(robot.ny)
    yd[:6] = [0.5, 0.0, 3.0, 0.4, -0.6, 0.3]
    middle = robot.independent_position(q)[7:]
    rows = []
    for k in range(COUNT * SUBSTEPS):
        t = k * dt
        wanted = middle + 0.3 * np.sin(2 * np.pi * (0.7 + 0.3 * np.arange(len(names))) * t)
        joints = robot.independent_position(q)[7:]
        tau = np.zeros(robot.ny)
        tau[6:] = 60.0 * (wanted - joints) - 3.0 * yd[6:]
        if not k % SUBSTEPS:
            rows.append((q, yd, robot.actuator_efforts(q, tau)))
        half = _step(robot, q, yd, robot.forward_dynamics(q, yd, tau), dt / 2, yd)
        slope = robot.forward_dynamics(*half, tau)
        q, yd = _step(robot, q, yd, slope, dt, half[1])
    return [np.array(column) for column in zip(*rows, strict=True)]


def _step(robot, q, yd, ydd, dt, through):
    """Where a robot is that moves with a velocity for a while."""
    moved = robot.tree.integrate(q, dt * robot.spanning_velocity(q, through))
    return robot.close(moved, q), yd + dt * ydd


@pytest.fixture(scope="module")
def bag(nominal, flight, tmp_path_factory):
    q, yd, efforts = flight
    qd = nominal.spanning_velocity(q, yd)
    in_q = [nominal.coordinates.scalar_positions[name] for name in nominal.joint_names]
    times = START + (np.arange(COUNT) / RATE * 1e9).astype(np.int64)
    effort = np.zeros((COUNT, len(nominal.joint_names)))
    effort[:, [nominal.joint_names.index(n) for n in nominal.actuated_joint_names]] = efforts
    motion = Motion(times, nominal.joint_names, q[:, in_q], qd[:, 6:], effort)
    base = [(int(t), odometry(a[:7], b[:6], t)) for t, a, b in zip(times, q, yd, strict=True)]
    path = tmp_path_factory.mktemp("bags") / "flight"
    return write_bag(path, messages_of(motion), base=base)


def test_labels_are_those_of_the_floating_model(nominal, flight, bag, tmp_path):
    model = Model(LEG.read_text(), LOOPS.read_text())
    job = Job(bag, tmp_path / "out", model, SETTINGS, Options(parquet=True))
    report = label_file(job)
    assert report.answered == report.messages == COUNT and not report.refused
    q, yd, efforts = flight
    expected = nominal.inverse_dynamics_efforts(q, yd, np.zeros_like(yd))[0]
    with Reader(job.target) as reader:
        topics = [c for c in reader.connections if c.topic == "/dynamics/feedforward"]
        found = [
            STORE.deserialize_cdr(data, connection.msgtype).effort
            for connection, _, data in reader.messages(topics)
        ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    table = pq.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(table["base.qw"], q[:, 6], atol=1e-12)
    np.testing.assert_allclose(table["base.wz"], yd[:, 5], atol=1e-12)
    residual = [table[f"residual.{name}"] for name in nominal.actuated_joint_names]
    np.testing.assert_allclose(np.transpose(residual), efforts - expected, rtol=1e-5, atol=1e-6)


def test_without_odometry_nothing_is_answered_and_the_report_says_why(nominal, flight, tmp_path):
    q, yd, _ = flight
    qd = nominal.spanning_velocity(q[:5], yd[:5])
    in_q = [nominal.coordinates.scalar_positions[name] for name in nominal.joint_names]
    motion = Motion(
        START + 10**7 * np.arange(5), nominal.joint_names, q[:5, in_q], qd[:, 6:], qd[:, 6:]
    )
    bag = write_bag(tmp_path / "bag", messages_of(motion))
    report = label_file(
        Job(bag, tmp_path / "out", Model(LEG.read_text(), LOOPS.read_text()), SETTINGS)
    )
    assert report.answered == 0 and sum(report.refused.values()) == 5
    assert "base_state" in report.note


def test_a_payload_is_found_in_flight_by_the_base_too(nominal, bag):
    """Gravity alone acts on the base: six rows more, which determine every mass."""
    motions = list(read_motions(nominal, bag, SETTINGS))
    found = identify_motions(nominal, motions, ("payload",), payload="foot")
    mass = found.value("payload.m")
    assert mass == pytest.approx(0.5, rel=0.03)
    assert found.rows[:6] == tuple(f"base {k} {x}" for k in ("force", "moment") for x in "xyz")
    assert (found.identified_rms < 0.2 * found.nominal_rms)[[0, 1, 2]].all()


def test_zeros_are_found_in_flight(nominal, bag):
    true = nominal.with_payloads(MUD)
    (motion,) = read_motions(true, bag, SETTINGS)
    name = nominal.independent_joint_names[2]
    found = identify_motions(true, [motion.shifted(true, {name: -0.05})], ("offset",))
    wanted = {joint: 0.05 if joint == name else 0.0 for joint in nominal.independent_joint_names}
    assert found.offsets == pytest.approx(wanted, abs=0.01)  # accelerations are differences
