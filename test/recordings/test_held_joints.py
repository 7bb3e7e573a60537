"""Recordings of some joints: the rest is held, and answers are those of the whole robot there."""

import numpy as np
import pytest
from bag_maker import LEG, LOOPS, START, Motion, demo_leg, messages_of, swinging, write_bag
from node_fixtures import example_robot

from rbda_ros import InputError, cli, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.recordings.held_joints import joints_to_hold, recorded_joints, with_held
from rbda_ros.recordings.label_file import Job, Model, Options, label_file
from rbda_ros.recordings.labeller import Labeller

PANDA = example_robot("panda")
COUNT, RATE = 400, 100.0
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def arm_of(robot):
    return tuple(name for name in robot.joint_names if name not in FINGERS)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The arm's seven joints, moving with the fingers at 0.02 m; efforts of the whole robot."""
    robot = load_robot(PANDA)
    arm = arm_of(robot)
    t = np.arange(COUNT) / RATE
    paces = 2 * np.pi * (0.4 + 0.13 * np.arange(7))
    middle = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.8, 0.5])
    y = middle + 0.3 * np.sin(np.outer(t, paces))
    yd, ydd = 0.3 * paces * np.cos(np.outer(t, paces)), -0.3 * paces**2 * np.sin(np.outer(t, paces))
    places = [robot.joint_names.index(name) for name in arm]
    q, qd = np.zeros((COUNT, robot.nq)), np.zeros((COUNT, robot.nq))
    q[:, places], qd[:, places] = y, yd
    q[:, [robot.joint_names.index(name) for name in FINGERS]] = 0.02
    # The second finger mimics the first, so that y has one of them, after the arm.
    assert robot.independent_joint_names == (*arm, FINGERS[0])
    efforts = robot.inverse_dynamics(q, qd, np.pad(ydd, ((0, 0), (0, 1))))[:, :7]
    motion = Motion(START + (t * 1e9).astype(np.int64), arm, y, yd, efforts)
    folder = tmp_path_factory.mktemp("panda")
    return write_bag(folder / "bag", messages_of(motion)), robot, motion, (q, qd)


def test_fingers_that_are_not_recorded_are_held(recording, tmp_path):
    bag, robot, motion, (q, qd) = recording
    assert recorded_joints(bag, "/joint_states") == set(motion.names)
    held = joints_to_hold(robot, motion.names, {FINGERS[0]: 0.02, FINGERS[1]: 0.02})
    assert held == dict.fromkeys(FINGERS, 0.02)
    rest = with_held(robot, held)
    assert rest.joint_names == motion.names
    expected = robot.inverse_dynamics(q, qd, np.zeros((COUNT, 8)))[:, :7]
    found = rest.inverse_dynamics(motion.position, motion.velocity, np.zeros((COUNT, 7)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_label_answers_every_message_and_reports_what_it_held(recording, tmp_path, capsys):
    bag, _, _, _ = recording
    options = Options(hold=tuple(dict.fromkeys(FINGERS, 0.02).items()))
    model = Model(PANDA.read_text())
    report = label_file(Job(bag, tmp_path / "out", model, Settings(), options))
    assert (report.status, report.answered) == ("labelled", COUNT)
    assert report.held == dict.fromkeys(FINGERS, 0.02)
    given = ["label", str(bag), "-o", str(tmp_path / "cli"), "--robot", str(PANDA)]
    assert cli.main([*given, "--workers", "1"]) == 0
    assert "held" in capsys.readouterr().out
    assert cli.main([*given, "--workers", "1", "--hold", "panda_finger_joint1"]) == 1
    assert "JOINT=POSITION" in capsys.readouterr().err


@pytest.mark.nightly
def test_identify_goes_by_the_joints_that_are_there(recording, tmp_path, capsys):
    bag, _, _, _ = recording
    output = tmp_path / "better.urdf"
    given = ["identify", str(bag), "--robot", str(PANDA), "--what", "friction", "-o", str(output)]
    assert cli.main([*given, *(part for f in FINGERS for part in ("--hold", f"{f}=0.02"))]) == 0
    assert "panda_finger_joint1 at 0.02" in capsys.readouterr().out
    assert load_robot(output).joint_names == load_robot(PANDA).joint_names


def test_efforts_that_are_not_measured_are_left_out(tmp_path, capsys):
    """All joints are recorded; one motor has no torque sensor, and its driver says so."""
    robot = demo_leg()
    motion = swinging(robot, 600)
    motion.effort[:, motion.names.index("knee_rotor")] = np.nan
    bag = write_bag(tmp_path / "bag", messages_of(motion))
    labeller = Labeller(robot, Settings())
    _, data = next(messages_of(motion))
    labels, sample = labeller.joint_states(data, START)
    knee = robot.actuated_joint_names.index("knee_rotor")
    assert np.flatnonzero(np.isnan(sample.measured)).tolist() == [knee]
    assert b"knee_rotor" not in dict(labels)["residual"]
    model = ["--robot", str(LEG), "--loops", str(LOOPS)]
    output = str(tmp_path / "x.urdf")
    assert cli.main(["identify", str(bag), *model, "--what", "friction", "-o", output]) == 0
    said = capsys.readouterr().out
    assert "ankle_pulley_rotor: residual" in said
    assert "knee_rotor: residual" not in said


def test_a_loop_of_which_a_part_is_recorded_keeps_moving():
    robot = demo_leg()
    known = ["hip_abduction", "hip_flexion", "knee"]
    held = joints_to_hold(robot, known, {})
    assert len(held) == 1 and not set(held) & set(known)
    rest = with_held(robot, held)
    assert rest.ny == 3
    q = rest.close(dict(zip(known, (0.1, 0.2, 0.9), strict=True)))
    assert np.isfinite(rest.inverse_dynamics(q, np.zeros(3), np.zeros(3))).all()


def test_what_cannot_be_held_is_said(recording):
    _, robot, motion, _ = recording
    with pytest.raises(InputError, match="no moving joint finger"):
        joints_to_hold(robot, motion.names, {"finger": 0.0})
    with pytest.raises(InputError, match="is recorded"):
        joints_to_hold(robot, motion.names, {motion.names[0]: 0.0})
    assert joints_to_hold(robot, ["of another robot"], {}) == {}


def test_no_answer_at_all_is_a_failure(recording, tmp_path, capsys):
    """Messages without velocities: none is answered, and nothing is left that looks labelled."""
    _, _, motion, _ = recording
    silent = Motion(
        motion.times, motion.names, motion.position, motion.velocity[:, :0], motion.effort
    )
    bag = write_bag(tmp_path / "bag", messages_of(silent))
    out = tmp_path / "out"
    given = ["label", str(bag), "-o", str(out), "--robot", str(PANDA), "--workers", "1"]
    assert cli.main(given) == 1
    assert "no labels" in capsys.readouterr().out
    assert not (out / "bag").exists()
