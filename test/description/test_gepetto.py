"""Loops as Gepetto writes them: the same robot as with our own loop file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from other_robots import error

from rbda_ros import DescriptionError, load_robot

INERTIAL = (
    "<inertial><origin xyz='0.1 0.02 0'/><mass value='1.2'/>"
    "<inertia ixx='.01' iyy='.02' izz='.02' ixy='.001' ixz='0' iyz='0'/></inertial>"
)


def link(name: str, heavy: bool = True) -> str:
    return f"<link name='{name}'>{INERTIAL if heavy else ''}</link>"


def joint(name: str, parent: str, child: str, xyz: str, kind: str = "continuous") -> str:
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{xyz}'/><axis xyz='0 0 1'/></joint>"
    )


FOUR_BAR = (
    "<robot name='bars'>"
    + link("base")
    + link("crank_link")
    + link("coupler_link")
    + link("rocker_link")
    + link("end_a", heavy=False)
    + link("end_b", heavy=False)
    + joint("crank", "base", "crank_link", "0 0 0")
    + joint("coupler", "crank_link", "coupler_link", "0.1 0 0")
    + joint("pin", "coupler_link", "end_a", "0.3 0 0")
    + joint("rocker", "base", "rocker_link", "0.3 0 0")
    + joint("to_b", "rocker_link", "end_b", "0.2 0 0", "fixed")
    + "</robot>"
)


def test_frame_pairs_are_whole_frames_or_points():
    """The pin is a joint of the tree where frames are welded, and locked where points meet."""
    welded = load_robot(FOUR_BAR, {"closed_loop": [["end_a", "end_b"]], "type": ["6d"]})
    assert welded.ny == 1
    point = load_robot(FOUR_BAR, {"closed_loop": [["end_a", "to_b"]], "type": ["3d"]})
    assert point.ny == 1
    (idle,) = point.tree.idle_locks  # the pin would turn freely, without any mass
    assert idle.successor.link == "end_a"
    ours = load_robot(
        FOUR_BAR,
        {
            "constraints": [
                {
                    "name": "weld",
                    "type": "fixed",
                    "predecessor": {"link": "end_a"},
                    "successor": {"link": "end_b"},
                }
            ]
        },
    )
    q = ours.tree.home
    np.testing.assert_allclose(welded.tree.home, q, atol=1e-12)
    np.testing.assert_allclose(welded.mass_matrix(q), ours.mass_matrix(q), atol=1e-12)


def test_motors_are_actuated_and_unknown_ones_are_named():
    robot = load_robot(
        FOUR_BAR, {"closed_loop": [["end_a", "end_b"]], "name_mot": ["rocker", "missing"]}
    )
    assert robot.actuated_joint_names == ("rocker",)
    assert robot.independent_joint_names == ("rocker",)
    assert any("missing" in warning for warning in robot.warnings)


def chain(kinds: dict[str, str]) -> dict[str, list[str]]:
    return {"name_mot": [], "joint_name": [*kinds], "joint_type": [*kinds.values()]}


def test_stand_in_joints_become_what_they_stand_for():
    robot = load_robot(
        FOUR_BAR, chain({"crank": "UJOINT_XY", "coupler": "SPHERICAL", "pin": "FIXED"})
    )
    assert robot.joint_names == ("crank_X", "crank_Y", "coupler", "rocker")
    assert robot.nv == 1 + 1 + 3 + 1


def test_universal_joints_are_two_hinges_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    robot = load_robot(FOUR_BAR, chain({"crank": "UJOINT_ZY", "pin": "FIXED"}))
    model = pin.Model()
    names = ("crank_Z", "crank_Y", "coupler", "rocker")
    inertia = pin.Inertia(
        1.2,
        np.array([0.1, 0.02, 0.0]),
        np.array([[0.01, 0.001, 0.0], [0.001, 0.02, 0.0], [0.0, 0.0, 0.02]]),
    )
    at = lambda x: pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))  # noqa: E731
    first = model.addJoint(0, pin.JointModelRZ(), at(0.0), names[0])
    second = model.addJoint(first, pin.JointModelRY(), at(0.0), names[1])
    third = model.addJoint(second, pin.JointModelRZ(), at(0.1), names[2])
    last = model.addJoint(0, pin.JointModelRZ(), at(0.3), names[3])
    for body in (second, third, last):
        model.appendBodyToJoint(body, inertia, pin.SE3.Identity())
    assert robot.joint_names == names
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 4))
    expected = pin.rnea(model, model.createData(), q, qd, qdd)
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("loops", "word"),
    [
        ({"closed_loop": [["end_a"]]}, "1 frames"),
        ({"closed_loop": [["end_a", "end_b"]], "type": ["5d"]}, "5d"),
        ({"closed_loop": [["end_a", "end_b"]], "type": []}, "type"),
        ({"closed_loop": "end_a"}, "list"),
        ({"closed_loop": [["end_a", "end_c"]]}, "end_c"),
        ({"name_mot": [], "joint_name": ["pin"], "joint_type": ["UJOINT_XQ"]}, "UJOINT_XQ"),
        ({"name_mot": [], "joint_name": ["pin"]}, "joint_type"),
    ],
)
def test_mistakes_are_named(loops, word):
    with pytest.raises(DescriptionError, match=word):
        load_robot(FOUR_BAR, loops)
    with pytest.raises(DescriptionError, match=word):
        load_robot(FOUR_BAR, yaml.safe_dump(loops))


CLOSE = (
    "5bar_linkage", "5bar_linkage_iso3d", "5bar_linkage_iso6d", "battobot_6d", "cassie_like",
    "digit_like", "digit_like_2legs", "digit_like_2legs_6D", "digit_like_2legs_old", "disney_like",
    "disney_robot", "robot_delta", "talos_like", "true_talos_2_legs", "wl16_like",
)  # fmt: skip


@pytest.mark.parametrize("name", CLOSE)
def test_gepettos_robots_close_and_move_as_a_dense_solve_says(name):
    """Models are not ours to keep: set RBDA_GEPETTO_ROBOTS to example-parallel-robots/robots."""
    pytest.importorskip("pinocchio")
    folder = os.environ.get("RBDA_GEPETTO_ROBOTS")
    if not folder:
        pytest.skip("RBDA_GEPETTO_ROBOTS does not name a checkout of example-parallel-robots")
    model = next(Path(folder, name).glob("*.urdf"))
    robot = load_robot(model, model.with_name("robot.yaml"))
    assert np.abs(robot.kernel("loop_state").call(robot.tree.home)[0]).max() < 1e-9
    assert error(robot, model, 0.0, seed=0)[0] < 1e-7
    assert error(robot, model, 0.05, seed=1)[0] < 1e-7
