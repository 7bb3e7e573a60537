"""The first closed position and the choice of y: over units, rounding, and starts from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, Robot, load_robot


def loops_of(name: str, **changes: Any) -> dict[str, Any]:
    """A mechanism's loop file with some entries changed; None removes one."""
    entries = yaml.safe_load(MECHANISMS[name].loops.read_text()) | changes
    return {key: value for key, value in entries.items() if value is not None}


def load(name: str, **changes: Any) -> Robot:
    return load_robot(MECHANISMS[name].urdf, loops_of(name, **changes))


def refusal(name: str, **changes: Any) -> str:
    with pytest.raises(DescriptionError) as caught:
        load(name, **changes)
    return str(caught.value)


def coupling(name: str, **terms: float) -> dict[str, Any]:
    return {"name": name, "type": "coupling", "terms": terms}


@pytest.mark.parametrize("ratio", [10_001.0, 12_566.0, 1e6])
def test_a_fine_screw_loads(ratio):
    """Which joints are independent does not depend on units: 0.5 mm a turn is 12,566 rad/m."""
    robot = load(
        "gear", constraints=[coupling("screw", rotor=1.0, swing=-ratio)], independent_joints=None
    )
    assert robot.ny == 2
    chosen = load(
        "gear",
        constraints=[coupling("screw", rotor=1.0, swing=-ratio)],
        independent_joints=["swing", "elbow"],
    )
    assert chosen.independent_joint_names == ("swing", "elbow")


def test_frames_that_are_off_by_a_micrometre_still_close():
    """A hinge written twice, a micrometre out of place: its second half is dropped, and said so."""
    pin = loops_of("four_bar")["constraints"][0]
    again = dict(pin, name="again", successor=dict(pin["successor"]))
    x, y, z = again["successor"]["xyz"]
    again["successor"]["xyz"] = [x + 3e-7, y, z]
    robot = load("four_bar", constraints=[pin, again])
    assert robot.ny == 2
    assert any("are dropped" in warning for warning in robot.warnings)


def test_a_gap_that_is_no_rounding_is_refused_with_every_gap():
    pin = loops_of("four_bar")["constraints"][0]
    again = dict(pin, name="again", successor=dict(pin["successor"]))
    x, y, z = again["successor"]["xyz"]
    again["successor"]["xyz"] = [x + 1e-3, y, z]
    message = refusal("four_bar", constraints=[pin, again])
    assert "'pin'" in message
    assert "'again'" in message


def test_dimensions_that_cannot_close_are_told_from_a_search_that_failed():
    pin = loops_of("four_bar")["constraints"][0]
    pin["successor"]["xyz"] = [5.0, 0.0, 0.03]
    assert "its dimensions cannot close" in refusal("four_bar", constraints=[pin])


@pytest.mark.parametrize("seed", range(8))
def test_whole_frames_close_from_anywhere(seed):
    """Rows of sines have four roots for a welded frame; the assembly finds the right one."""
    rng = np.random.default_rng(seed)
    bare = load("fixed_cut", independent_joints=None, assembly=None)
    guess = dict(zip(bare.joint_names, rng.uniform(-3.0, 3.0, len(bare.joint_names)), strict=True))
    sizes = bare.coordinates.scalar_positions
    robot = load(
        "fixed_cut",
        independent_joints=None,
        assembly={name: float(value) for name, value in guess.items() if name in sizes},
    )
    assert robot.ny == bare.ny


def test_a_gap_along_parallel_hinges_stays_at_any_angles():
    """Three parallel hinges and a ball, whose heights along them differ by 40.75 mm."""
    rpy = "0.4 -0.7 0.2"  # tilted, so that no coordinate shows it by itself
    urdf = (
        f"<robot name='r'><link name='base'/><link name='tilted'/><joint name='t' type='fixed'>"
        f"<parent link='base'/><child link='tilted'/><origin rpy='{rpy}'/></joint>"
        f"{hinge('hip', 'tilted', 'thigh', '0 0 0')}{hinge('knee', 'thigh', 'shank', '.3 0 .02')}"
        f"{hinge('crank', 'tilted', 'rod', '.4 0 .1')}</robot>"
    )
    ball = {"name": "ball", "type": "spherical"}
    ball |= {"predecessor": {"link": "shank", "xyz": [0.3, 0, 0.12075]}}
    ball |= {"successor": {"link": "rod", "xyz": [0.25, 0, 0]}}
    with pytest.raises(DescriptionError) as refused:
        load_robot(urdf, {"constraints": [ball]})
    assert "cannot close: 0.0407 of 'ball' stay at all joint positions" in str(refused.value)
    ball["predecessor"]["xyz"] = [0.3, 0, 0.08]
    assert load_robot(urdf, {"constraints": [ball]}).ny == 1


def hinge(name: str, parent: str, child: str, xyz: str) -> str:
    return (
        f"<link name='{child}'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1'"
        " ixy='0' ixz='0' iyz='0'/></inertial></link>"
        f"<joint name='{name}' type='continuous'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{xyz}'/><axis xyz='0 0 1'/></joint>"
    )
