"""Labelled twins of bags: the same bytes, whole or not there, nothing fatal."""

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from bag_maker import (
    JOINT_STATE,
    LEG,
    LOOPS,
    START,
    STORE,
    demo_leg,
    joint_state,
    messages_of,
    swinging,
    write_bag,
)
from rosbags.rosbag2 import Reader, StoragePlugin

from rbda_ros.control.settings import Settings
from rbda_ros.recordings.label_file import Job, Model, Options, label_file
from rbda_ros.recordings.labeller import LABELS

MODEL = Model(LEG.read_text(), LOOPS.read_text())
SETTINGS = Settings(publish_external_effort=True)


@pytest.fixture(scope="module")
def robot():
    return demo_leg()


@pytest.fixture(scope="module")
def motion(robot):
    return swinging(robot)


def read_all(path):
    """Messages of a bag by topic: (time, message)."""
    found = {}
    with Reader(path) as reader:
        for connection, time, data in reader.messages():
            message = STORE.deserialize_cdr(data, connection.msgtype)
            found.setdefault(connection.topic, []).append((time, message))
    return found


def files_of(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_labels_are_what_the_methods_of_the_robot_give(robot, motion, tmp_path, storage):
    bag = write_bag(tmp_path / "in", messages_of(motion), storage)
    report = label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS))
    assert (report.status, report.messages, report.answered) == ("labelled", 200, 200)
    assert report.refused == {} and report.episodes == 1
    found = read_all(tmp_path / "out")
    assert set(found) == {"/joint_states", "/chatter", *(f"/dynamics/{name}" for name in LABELS)}
    assert len(found["/chatter"]) == 4
    efforts = np.array([m.effort for _, m in found["/dynamics/feedforward"]])
    q = robot.close(motion.position[:, : robot.ny])
    expected = robot.inverse_dynamics_efforts(q, motion.velocity[:, : robot.ny], np.zeros(robot.ny))
    np.testing.assert_allclose(efforts, expected[0], atol=1e-8)
    states = found["/dynamics/joint_states"]
    assert states[0][1].name == list(robot.joint_names)
    np.testing.assert_allclose(np.array([m.position for _, m in states]), q, atol=1e-8)
    residual = np.array([m.effort for _, m in found["/dynamics/residual"]])
    np.testing.assert_allclose(residual, motion.effort[:, robot.ny :] - efforts, atol=1e-12)
    assert [time for time, _ in found["/dynamics/feedforward"]] == motion.times.tolist()
    stamp = found["/dynamics/external_effort"][-1][1].header.stamp
    assert stamp.sec * 10**9 + stamp.nanosec == motion.times[-1]


def test_efforts_of_joints_do_where_those_of_motors_are_not_measured(robot, motion, tmp_path):
    q = robot.close(motion.position[:, : robot.ny])
    efforts = motion.effort[:, robot.ny :]
    spanning = np.zeros((len(q), robot.nv))
    spanning[:, [robot.joint_names.index(name) for name in robot.actuated_joint_names]] = efforts
    joints = replace(
        motion,
        names=motion.names[: robot.ny],
        position=motion.position[:, : robot.ny],
        velocity=motion.velocity[:, : robot.ny],
        effort=robot.generalized_force(q, spanning),
    )
    residuals = []
    for name, recorded in (("motors", motion), ("joints", joints)):
        bag = write_bag(tmp_path / name, messages_of(recorded))
        label_file(Job(bag, tmp_path / f"{name}_out", MODEL, SETTINGS))
        messages = read_all(tmp_path / f"{name}_out")["/dynamics/residual"]
        residuals.append([m.effort for _, m in messages])
    np.testing.assert_allclose(*residuals, atol=1e-8)


def test_the_external_effort_of_a_true_model_is_none(robot, motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS))
    external = [m.effort for _, m in read_all(tmp_path / "out")["/dynamics/external_effort"]]
    # The observer integrates over 5 ms: it errs by the square of that.
    assert np.abs(external).max() < 0.02 * np.abs(motion.effort).max() * 12


def test_the_same_bag_gives_the_same_bytes(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    options = Options(parquet=True)
    for name in ("one", "two"):
        label_file(Job(bag, tmp_path / name / "bag", MODEL, SETTINGS, options))
    one = files_of(tmp_path / "one")
    assert set(one) == {"bag.mcap", "metadata.yaml", "bag.parquet"}
    assert one == files_of(tmp_path / "two")


def test_what_is_there_already_is_not_done_again(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    job = Job(bag, tmp_path / "out", MODEL, SETTINGS)
    label_file(job)
    made = (tmp_path / "out" / "metadata.yaml").stat().st_mtime_ns
    assert label_file(job).status == "there already"
    assert (tmp_path / "out" / "metadata.yaml").stat().st_mtime_ns == made
    # By other settings it is another one, and takes the place of the first.
    other = Job(bag, tmp_path / "out", MODEL, Settings(terms=("gravity",)))
    assert label_file(other).status == "labelled"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_a_table_has_a_row_a_sample(robot, motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS, Options(parquet=True)))
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    found = read_all(tmp_path / "out")
    assert table["stamp"] == motion.times.tolist()
    for k, name in enumerate(robot.actuated_joint_names):
        for topic in ("feedforward", "residual"):
            values = [m.effort[k] for _, m in found[f"/dynamics/{topic}"]]
            assert table[f"{topic}.{name}"] == values
    for k, name in enumerate(robot.joint_names):
        values = [m.velocity[k] for _, m in found["/dynamics/joint_states"]]
        assert table[f"velocity.{name}"] == values


def test_bad_messages_are_counted_by_reason_and_never_fatal(robot, motion, tmp_path):
    good = list(messages_of(motion))
    names, ny = motion.names, robot.ny

    def bad(k, names=names, size=None, **values):
        numbers = {
            "position": motion.position[k][:size],
            "velocity": motion.velocity[k][:size],
            "effort": motion.effort[k][:size],
        } | values
        message = joint_state(names, *numbers.values(), motion.times[k] + 1)
        return int(motion.times[k]) + 1, bytes(STORE.serialize_cdr(message, JOINT_STATE))

    nan = motion.position[5].copy()
    nan[0] = np.nan
    wrong = [
        bad(1, names=[f"other_{n}" for n in names]),
        bad(2, names=names[:2], size=2),
        bad(3, position=motion.position[3][:3]),
        bad(4, velocity=[]),
        bad(5, position=nan),
        (good[6][0] + 1, good[6][1][:40]),
        (good[7][0] + 10**9, good[7][1]),
        bad(8, names=[names[0]] * len(names)),
    ]
    messages = sorted([*good, *wrong])
    bag = write_bag(tmp_path / "in", messages)
    report = label_file(Job(bag, tmp_path / "out", MODEL, Settings()))
    # A joint whose number is not finite is absent: here its motor determines it.
    assert report.messages == 208 and report.answered == 201
    assert Counter(report.refused) == {
        "misnamed joints": 2,
        "joints missing": 1,
        "wrong size": 1,
        "no velocity": 1,
        "not readable": 1,
        "stale": 1,
    }
    assert report.note
    assert ny  # of the leg


def test_without_efforts_there_is_no_residual(robot, motion, tmp_path):
    def silent():
        for time, position, velocity in zip(
            motion.times, motion.position, motion.velocity, strict=True
        ):
            message = joint_state(motion.names, position, velocity, [], time)
            yield int(time), bytes(STORE.serialize_cdr(message, JOINT_STATE))

    bag = write_bag(tmp_path / "in", silent())
    report = label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS, Options(parquet=True)))
    assert report.answered == 200 and report.refused == {"no measured effort": 200}
    found = read_all(tmp_path / "out")
    assert "/dynamics/residual" not in found and "/dynamics/external_effort" not in found
    table = pq.read_table(tmp_path / "out.parquet")
    assert table[f"residual.{robot.actuated_joint_names[0]}"].null_count == 200


def test_gaps_begin_new_episodes_and_a_rate_thins(motion, tmp_path):
    messages = [
        (time + (5 * 10**9 if k >= 120 else 0), data)
        for k, (time, data) in enumerate(messages_of(motion))
    ]
    bag = write_bag(tmp_path / "in", messages)
    settings = Settings(joint_state_timeout=0.0)
    # Stamps are the messages' own, and these have no gap.
    report = label_file(Job(bag, tmp_path / "a", MODEL, settings))
    assert report.episodes == 1
    shifted = []
    for k, row in enumerate(zip(motion.position, motion.velocity, motion.effort, strict=True)):
        time = int(motion.times[k]) + (5 * 10**9 if k >= 120 else 0)
        data = STORE.serialize_cdr(joint_state(motion.names, *row, time), JOINT_STATE)
        shifted.append((time, bytes(data)))
    bag = write_bag(tmp_path / "shifted", shifted)
    options = Options(parquet=True, rate=50.0)
    report = label_file(Job(bag, tmp_path / "b", MODEL, Settings(), options))
    assert report.episodes == 2 and report.answered == 50
    episodes = pq.read_table(tmp_path / "b.parquet")["episode"].to_pylist()
    assert Counter(episodes) == {0: 30, 1: 20}


def test_a_cutoff_smooths_efforts_and_keeps_all_else(robot, motion, tmp_path):
    rng = np.random.default_rng(3)
    noisy = replace(motion, effort=motion.effort + rng.normal(size=motion.effort.shape))
    bag = write_bag(tmp_path / "in", messages_of(noisy))
    for name, options in (("as_is", Options()), ("smooth", Options(cutoff=10.0, parquet=True))):
        assert label_file(Job(bag, tmp_path / name, MODEL, SETTINGS, options)).answered == 200
    as_is, smooth = read_all(tmp_path / "as_is"), read_all(tmp_path / "smooth")
    for topic, messages in as_is.items():
        assert [time for time, _ in smooth[topic]] == [time for time, _ in messages]
    states = [
        [m.position.tobytes() for _, m in x["/dynamics/joint_states"]] for x in (as_is, smooth)
    ]
    assert states[0] == states[1]
    window = 0.5 * (1 + np.cos(np.pi * np.arange(-7, 8) * 5 / 36))  # 200 Hz, 36 ms either side
    for label in ("feedforward", "residual", "external_effort"):
        rough, fine = (
            np.array([m.effort for _, m in x[f"/dynamics/{label}"]]) for x in (as_is, smooth)
        )
        averages = [np.average(rough[k - 7 : k + 8], axis=0, weights=window) for k in (20, 100)]
        np.testing.assert_allclose(fine[[20, 100]], averages, atol=1e-6)
    table = pq.read_table(tmp_path / "smooth.parquet")
    assert table[f"residual.{robot.actuated_joint_names[0]}"].to_pylist() == [
        m.effort[0] for _, m in smooth["/dynamics/residual"]
    ]


def test_a_bag_without_the_topic_says_which_it_has(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion), topic="/left/joint_states")
    with pytest.raises(ValueError, match="/left/joint_states: name one with --joint-states"):
        label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS))
    assert not (tmp_path / "out").exists()
    options = Options(node="/left/dynamics", joint_states="/left/joint_states")
    assert label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS, options)).answered == 200
    assert "/left/dynamics/feedforward" in read_all(tmp_path / "out")


def test_a_truncated_bag_fails_and_leaves_nothing(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    file = bag / "in.mcap"
    file.write_bytes(file.read_bytes()[:-5000])
    with pytest.raises(Exception, match="magic"):
        label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS))
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_what_a_killed_process_left_is_removed(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    left = tmp_path / ".out.partial-x1"
    shutil.copytree(bag, left)
    label_file(Job(bag, tmp_path / "out", MODEL, SETTINGS))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_labels_that_are_there_already_are_replaced(motion, tmp_path):
    bag = write_bag(tmp_path / "in", messages_of(motion))
    label_file(Job(bag, tmp_path / "once", MODEL, SETTINGS))
    report = label_file(Job(tmp_path / "once", tmp_path / "twice", MODEL, SETTINGS))
    assert "replaced: /dynamics/external_effort" in report.note
    once, twice = read_all(tmp_path / "once"), read_all(tmp_path / "twice")
    assert {topic: len(m) for topic, m in once.items()} == {t: len(m) for t, m in twice.items()}
    assert once["/joint_states"][0][0] == START
