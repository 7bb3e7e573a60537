"""``rbda_ros label``: arguments, parameter files, what it prints and returns."""

import json
import os
import subprocess
import sys

import pytest
from bag_maker import LEG, LOOPS, demo_leg, messages_of, swinging, write_bag

from rbda_ros import load_robot
from rbda_ros.cli.commands import main
from rbda_ros.cli.label import read_model, read_settings
from rbda_ros.control.settings import ParameterError
from rbda_ros.demo.resources import share_file

MODEL = ["--robot", str(LEG), "--loops", str(LOOPS)]


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    return write_bag(folder / "monday", messages_of(swinging(demo_leg(), 50)))


def test_labels_a_bag_and_says_so(bag, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["label", str(bag), "-o", str(out), *MODEL, "--parquet", "--workers", "1"]) == 0
    assert "1 labelled" in capsys.readouterr().out
    names = sorted(path.name for path in out.iterdir())
    assert names == ["label_report.json", "monday", "monday.parquet"]
    (report,) = json.loads((out / "label_report.json").read_text())
    assert report["answered"] == 50
    assert main(["label", str(bag.parent), "-o", str(out), *MODEL, "--parquet"]) == 0
    assert "1 there already" in capsys.readouterr().out


def test_one_failed_file_is_named_and_the_exit_code_says_so(bag, tmp_path, capsys):
    broken = tmp_path / "in" / "broken.mcap"
    broken.parent.mkdir()
    broken.write_bytes((bag / "monday.mcap").read_bytes()[:3000])
    out = str(tmp_path / "out")
    assert main(["label", str(bag), str(broken), "-o", out, *MODEL, "--workers", "1"]) == 1
    printed = capsys.readouterr()
    assert "1 labelled" in printed.out and "1 failed" in printed.out
    assert "broken.mcap: ReaderError" in printed.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere/*.mcap", *MODEL], "nowhere/*.mcap: no recording there"),
        (["{bag}", "--robot", "missing.urdf"], "missing.urdf"),
        (["{bag}", *MODEL, "--rate", "-1"], "--rate -1.0"),
    ],
)
def test_says_what_is_wrong(bag, tmp_path, capsys, arguments, says):
    given = [argument.format(bag=bag) for argument in arguments]
    assert main(["label", *given, "-o", str(tmp_path), "--workers", "1"]) == 1
    assert says in capsys.readouterr().err


def test_reads_the_parameter_file_of_the_node(tmp_path):
    settings = read_settings(share_file("config/dynamics.yaml"))
    assert settings.gravity == (0.0, 0.0, -9.81)
    file = tmp_path / "p.yaml"
    file.write_text("dynamics: {ros__parameters: {velocity_cutoff: 30, terms: [gravity]}}")
    settings = read_settings(file)
    assert settings.velocity_cutoff == 30.0 and settings.terms == ("gravity",)
    assert settings.publish_external_effort  # unless told otherwise


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("other: {ros__parameters: {}}", "no ros__parameters under 'dynamics'"),
        ("/**: {ros__parameters: {speed: 1}}", "speed is no parameter"),
        ("/**: {ros__parameters: {saturate: 1}}", "saturate: 1 is no bool"),
        ("/**: {ros__parameters: {terms: [weight]}}", "'weight' is unknown"),
        ("[", "p.yaml"),
    ],
)
def test_refuses_parameters_that_the_node_would_refuse(tmp_path, text, says):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    with pytest.raises(ParameterError, match=says):
        read_settings(file)


def test_an_mjcf_goes_to_workers_as_a_urdf(tmp_path):
    pytest.importorskip("mujoco")
    file = tmp_path / "arm.xml"
    file.write_text(
        '<mujoco><worldbody><body name="arm"><joint name="j" axis="0 1 0"/>'
        '<geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    )
    assert "<robot" in read_model(file, None).urdf


def test_a_xacro_file_goes_to_workers_expanded(tmp_path):
    pytest.importorskip("xacro")
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(
        '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="mass" '
        'default="1"/><link name="post"/><link name="bar"><inertial><mass value="$(arg mass)"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="post"/><child link="bar"/></joint></robot>'
    )
    assert load_robot(read_model(file, None, {"mass": "2.5"}).urdf).mass == 2.5


def test_needs_no_rclpy(bag, tmp_path):
    """Where ROS cannot be imported, labels are made all the same."""
    code = (
        "import sys; sys.modules['rclpy'] = None\n"
        "from rbda_ros.cli.commands import main\n"
        f"sys.exit(main(['label', {str(bag)!r}, '-o', {str(tmp_path)!r}, *{MODEL!r}]))"
    )
    environment = os.environ | {"RBDA_ROS_COMPILE": "0"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
