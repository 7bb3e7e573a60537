"""`rbda_ros check`: one page of verdicts, and an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from mechanism_table import MECHANISMS

from rbda_ros import cli


def check(capsys, name, *more):
    mechanism = MECHANISMS[name]
    loops = [] if mechanism.loops is None else ["--loops", str(mechanism.loops)]
    code = cli.main(["check", str(mechanism.urdf), *loops, *more])
    return code, capsys.readouterr().out


def test_a_sound_robot_passes(capsys):
    code, said = check(capsys, "four_bar")
    assert code == 0
    for word in ("mobility", "closes", "redundant", "conditioning"):
        assert word in said
    assert "fail" not in said


OURS = sorted([*Path("config/robots").glob("*.urdf"), *Path("docs/cookbook").glob("*.urdf")])


@pytest.mark.parametrize("urdf", OURS, ids=lambda path: path.stem)
def test_our_own_robots_pass_strictly(capsys, urdf):
    loops = [urdf.with_suffix(".yaml"), urdf.with_name(f"{urdf.stem}_loops.yaml")]
    (file,) = (path for path in loops if path.is_file())
    assert cli.main(["check", str(urdf), "--loops", str(file), "--strict"]) == 0
    assert "warn" not in capsys.readouterr().out


def test_the_end_of_the_range_is_information(capsys):
    ankle = Path("docs/cookbook/parallel_ankle.urdf")
    loops = ankle.with_suffix(".yaml")
    assert cli.main(["check", str(ankle), "--loops", str(loops), "--strict"]) == 0
    assert "info  range" in capsys.readouterr().out


ARM = """<sdf version='1.11'><model name='m'><link name='base'/><link name='arm'/>
<joint name='a' type='revolute'><parent>base</parent><child>arm</child>
<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
MJCF = """<mujoco><worldbody><body><joint name='a' axis='0 0 1'/><geom size='.1'/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("text", [ARM, MJCF])
def test_every_format_is_checked(capsys, tmp_path, text):
    if text is MJCF:
        pytest.importorskip("mujoco")
    robot = tmp_path / "robot.xml"
    robot.write_text(text)
    assert cli.main(["check", str(robot)]) == 0
    assert "1 degree of freedom" in capsys.readouterr().out


def test_an_inverted_gear_is_asked_about(capsys, tmp_path):
    loops = tmp_path / "loops.yaml"
    loops.write_text(
        "constraints: [{name: belt, type: coupling, terms: {rotor: 12.0, swing: -1.0}}]"
    )
    code = cli.main(["check", str(MECHANISMS["gear"].urdf), "--loops", str(loops)])
    assert code == 0
    assert "inverted" in capsys.readouterr().out
    strict = ["check", str(MECHANISMS["gear"].urdf), "--loops", str(loops), "--strict"]
    assert cli.main(strict) == 1


@pytest.mark.parametrize("text", ["constraints: [{type: odd}]", "independent_joints: [nobody]"])
def test_a_robot_that_does_not_load_fails(capsys, tmp_path, text):
    loops = tmp_path / "loops.yaml"
    loops.write_text(text)
    assert cli.main(["check", str(MECHANISMS["gear"].urdf), "--loops", str(loops)]) == 1
    assert capsys.readouterr().out.startswith("fail")


def test_frozen_rods_are_listed(capsys):
    code, said = check(capsys, "parallel_ankle")
    assert code == 0
    (line,) = [line for line in said.splitlines() if " idle " in line]
    assert "left_rod, right_rod" in line
