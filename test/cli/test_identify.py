"""``rbda_ros identify``: from a bag to a URDF that explains it."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from bag_maker import LEG, LOOPS, START, Motion, demo_leg, messages_of, swinging, write_bag
from identification_cases import waving

from rbda_ros import Payload, load_robot
from rbda_ros.cli.commands import main

MODEL = ["--robot", str(LEG), "--loops", str(LOOPS)]


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A leg with a heavier foot and friction in its knee, and noisy efforts."""
    robot = demo_leg()
    urdf = LEG.read_text().replace(
        '<joint name="knee" type="revolute">',
        '<joint name="knee" type="revolute"><dynamics damping="0.4" friction="0.3"/>',
    )
    true = load_robot(urdf, LOOPS).with_payloads({"mud": Payload("foot", 0.4, (0.0, 0.0, -0.03))})
    moved = waving(robot, 2000)
    qd = robot.spanning_velocity(moved.q, moved.yd)
    efforts = true.inverse_dynamics_efforts(moved.q, moved.yd, moved.ydd, friction=True)[0]
    rng = np.random.default_rng(13)
    efforts += 0.01 * np.abs(efforts).max(axis=0) * rng.normal(size=efforts.shape)
    motion = Motion(
        START + (moved.times * 1e9).astype(np.int64),
        robot.joint_names,
        moved.q,
        qd,
        np.zeros_like(moved.q),
    )
    at = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
    motion.effort[:, at] = efforts
    return write_bag(tmp_path_factory.mktemp("bags") / "bag", messages_of(motion))


def residuals(printed):
    """Before, now and noise of each joint."""
    lines = [line for line in printed.splitlines() if ": residual " in line]
    return np.array(
        [[float(word.strip(",")) for word in line.split() if _number(word)] for line in lines]
    )


def _number(word):
    try:
        float(word.strip(","))
    except ValueError:
        return False
    return True


def test_writes_a_urdf_that_explains_the_bag_and_a_report(bag, tmp_path, capsys):
    output = tmp_path / "identified.urdf"
    assert main(["identify", str(bag), *MODEL, "-o", str(output)]) == 0
    before, now, noise = residuals(capsys.readouterr().out).T
    assert (now < 1.2 * noise).all() and (now < 0.5 * before).any()
    identified = load_robot(output, tmp_path / "identified_loops.yaml")
    knee = {joint.name: joint for joint in identified.description.joints}["knee"]
    assert knee.damping == pytest.approx(0.4, abs=0.1)
    assert knee.friction == pytest.approx(0.3, abs=0.1)
    report = (tmp_path / "identified.html").read_text()
    assert report.count("<svg") == 1 and "knee.friction" in report
    assert "does not determine" in report


def test_finds_a_payload_and_says_how_to_set_it(bag, tmp_path, capsys):
    output = tmp_path / "p.urdf"
    given = ["--what", "payload,friction", "--payload", "foot", "-o", str(output)]
    assert main(["identify", str(bag), *MODEL, *given]) == 0
    printed = capsys.readouterr().out
    assert "ros2 service call /dynamics/set_payload" in printed
    mass = float(printed.rpartition("m: ")[2].split("}")[0].split(",")[0])
    assert mass == pytest.approx(0.4, rel=0.2)


def test_zeros_of_joints_become_a_parameter_that_labels_go_by(tmp_path, capsys):
    """With the offsets that were found, a leg with wrong zeros is labelled as one with right."""
    right = swinging(demo_leg(), 600)
    shift = 0.06 * (np.array(right.names) == "knee") - 0.03 * (np.array(right.names) == "ankle")
    wrong = replace(right, position=right.position - shift)
    bags = {"right": right, "wrong": wrong}
    for name, motion in bags.items():
        write_bag(tmp_path / "bags" / name, messages_of(motion))
    output = tmp_path / "found.urdf"
    bag = str(tmp_path / "bags" / "wrong")
    assert main(["identify", bag, *MODEL, "--what", "offset", "-o", str(output)]) == 0
    parameters = tmp_path / "found_params.yaml"
    assert "Offsets of positions" in (tmp_path / "found.html").read_text()
    text = yaml.safe_load(parameters.read_text())["/**"]["ros__parameters"]["joint_offsets"]
    offsets = yaml.safe_load(text)
    assert offsets["knee"] == pytest.approx(0.06, abs=2e-3)
    assert offsets["ankle"] == pytest.approx(-0.03, abs=5e-3)

    common = [*MODEL, "--parquet", "--workers", "1"]
    given = {"right": [], "wrong": ["--params", str(parameters)]}
    labels = {}
    for name in bags:
        folder = tmp_path / f"labelled_{name}"
        bag = str(tmp_path / "bags" / name)
        assert main(["label", bag, "-o", str(folder), *common, *given[name]]) == 0
        table = pq.read_table(folder / f"{name}.parquet")
        labels[name] = np.array([table[f"position.{k}"] for k in ("knee", "ankle", "ankle_rod")])
    assert np.abs(labels["right"] - labels["wrong"]).max() < 0.01


def test_a_bag_that_cannot_be_read_costs_no_other(bag, tmp_path, capsys):
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"no bag at all")
    given = ["--what", "friction", "-o", str(tmp_path / "x.urdf")]
    assert main(["identify", str(bag), str(broken), *MODEL, *given]) == 0
    assert str(broken) in capsys.readouterr().out
    assert main(["identify", str(broken), *MODEL, *given]) == 1
    assert "efforts of some actuated joint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--what", "colour"], "what: colour"),
        (["--payload", "nowhere", "--what", "payload"], "no link 'nowhere'"),
        (["--cutoff", "0"], "--cutoff 0.0"),
    ],
)
def test_says_what_is_wrong(bag, tmp_path, capsys, given, says):
    assert main(["identify", str(bag), *MODEL, "-o", str(tmp_path / "x.urdf"), *given]) == 1
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
