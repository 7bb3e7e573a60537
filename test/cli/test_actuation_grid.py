"""``rbda_ros actuation``: files and pictures over a grid of poses."""

import csv

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import load_robot
from rbda_ros.cli import main
from rbda_ros.demo.resources import share_file

LEG = str(share_file("config/robots/demo_leg.urdf"))
LOOPS = str(share_file("config/robots/demo_leg_loops.yaml"))
GRID = ["--grid", "knee=0.5:1.0:3", "ankle=-0.2:0.2:2", "--at", "hip_flexion=0.3"]


def test_csv_has_a_row_for_each_pose(tmp_path):
    file = tmp_path / "leg.csv"
    assert main(["actuation", LEG, "--loops", LOOPS, *GRID, "--output", str(file)]) == 0
    rows = list(csv.DictReader(file.open()))
    assert len(rows) == 6
    robot = load_robot(LEG, LOOPS)
    for row in rows:
        y = [0.0, 0.3, float(row["knee"]), float(row["ankle"])]
        found = robot.actuation(y)
        inertia = float(row["reflected_inertia.knee.ankle"])
        assert inertia == pytest.approx(found.reflected_inertia[2, 3], rel=1e-6)
        assert float(row["condition"]) == pytest.approx(float(found.condition), rel=1e-6)


def test_npz_and_picture(tmp_path):
    file, picture = tmp_path / "leg.npz", tmp_path / "leg.svg"
    files = ["--output", str(file), "--picture", str(picture)]
    assert main(["actuation", LEG, "--loops", LOOPS, *GRID, *files]) == 0
    found = np.load(file)
    assert found["W"].shape == (6, 4, 4)
    assert found["poses"].shape == (6, 2)
    assert list(found["grid_joints"]) == ["knee", "ankle"]
    assert "<svg" in picture.read_text()


def test_poses_out_of_reach_have_no_numbers(tmp_path, capsys):
    mechanism = MECHANISMS["distance_cut"]
    files = [str(mechanism.urdf), "--loops", str(mechanism.loops)]
    assert main(["actuation", *files, "--grid", "steering=0.0:1.0:2"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert rows[1]["condition"] == "nan"
    assert rows[0]["condition"] != "nan"


def test_other_joints_of_a_loop_may_be_the_grid(capsys):
    """The rocker's position, and not the crank's, is what the grid says."""
    mechanism = MECHANISMS["four_bar"]
    files = [str(mechanism.urdf), "--loops", str(mechanism.loops)]
    robot = load_robot(mechanism.urdf, mechanism.loops)
    at = robot.tree.home[robot.joint_names.index("rocker")]
    grid = f"rocker={at - 0.02}:{at + 0.02}:3"
    assert main(["actuation", *files, "--grid", grid, "--joints", "rocker", "flag"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    for row in rows:
        q = robot.close({"rocker": float(row["rocker"]), "flag": robot.tree.home[-1]})
        found = robot.actuation(q, ["rocker", "flag"])
        inertia = float(row["reflected_inertia.rocker.rocker"])
        assert inertia == pytest.approx(found.reflected_inertia[0, 0], rel=1e-6)
    assert len({row["reflected_inertia.rocker.rocker"] for row in rows}) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--grid", "knee=0:1"], "write JOINT=FROM:TO:COUNT"),
        (["--grid", "toe=0:1:3"], "no moving joint toe"),
        (["--grid", "knee=0:1:3", "--at", "ankle"], "write JOINT=POSITION"),
        (["--grid", "knee=0:1:3", "--joints", "knee"], "hip_abduction"),
        (["--grid", "knee=0.5:1:3", "--picture", "x.svg"], "a grid of 1 joints; give two"),
    ],
)
def test_mistakes_are_named(arguments, says, capsys):
    assert main(["actuation", LEG, "--loops", LOOPS, *arguments]) == 1
    assert says in capsys.readouterr().err
