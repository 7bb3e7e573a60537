"""Loops as other tools leave them in a file: the same robot as with a loop file of ours."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import yaml
from description_texts import joint, link, robot
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, Robot, load_robot
from rbda_ros.cli.commands import main

FOUR_BAR = MECHANISMS["four_bar"]
PARENT = "<parent link='coupler_link'/><parent_origin xyz='0.28 0 0.01'/>"
CHILD = "<child link='rocker_link'/><child_origin xyz='0.22 0 0.03'/>"


def same_dynamics(one: Robot, other: Robot, moved: float = 0.1) -> None:
    """Mass matrices and bias forces agree at closed positions, of the same joints."""
    assert one.joint_names == other.joint_names
    rng = np.random.default_rng(0)
    for scale in (0.0, moved):
        step = one.spanning_velocity(one.tree.home, scale * rng.normal(size=one.ny))
        q = one.close(near := one.tree.integrate(one.tree.home, step), near)
        qd = one.spanning_velocity(q, rng.normal(size=one.ny))
        independent = [
            other.joint_names.index(name) - other.nv for name in one.independent_joint_names
        ]
        chosen = other.with_independent_joints(one.independent_joint_names, at=q)
        np.testing.assert_allclose(chosen.mass_matrix(q), one.mass_matrix(q), atol=1e-10)
        bias = chosen.bias_force(q, qd[independent])
        np.testing.assert_allclose(bias, one.bias_force(q, qd[independent]), atol=1e-9)


def with_frames(hinge: bool) -> str:
    """The four-bar with the frames that onshape-to-robot would end it in."""
    ends = {
        1: ("coupler_link", "0.28 0 0.01", "0 0 0"),
        2: ("rocker_link", "0.22 0 0.03", "0 0 .4"),
    }
    added = []
    for number, (parent, xyz, rpy) in ends.items():
        frames = {f"closing_pin_{number}": (parent, xyz, rpy)}
        if hinge:
            frames[f"closing_pin_{number}_z"] = (f"closing_pin_{number}", "0 0 .1", "0 0 0")
        for name, (on, at, turned) in frames.items():
            origin = f"<origin xyz='{at}' rpy='{turned}'/>"
            added += [link(name, ""), joint(f"{name}_frame", on, name, origin, type="fixed")]
    return FOUR_BAR.urdf.read_text().replace("</robot>", f"{''.join(added)}</robot>")


@pytest.mark.parametrize(("hinge", "kind"), [(True, "revolute"), (False, "spherical")])
def test_closing_frames_are_loops(hinge, kind):
    assembly = {"assembly": {"crank": 1.0, "coupler": -0.9, "rocker": -0.5}}
    closed = load_robot(with_frames(hinge), assembly)
    assert [cut.type for cut in closed.description.constraints] == [kind]
    same_dynamics(load_robot(FOUR_BAR.urdf, FOUR_BAR.loops), closed)
    assert any("onshape-to-robot" in warning for warning in closed.warnings)


def test_a_loop_file_that_names_closing_frames_is_obeyed():
    ends = {"predecessor": {"link": "closing_pin_1"}, "successor": {"link": "closing_pin_2"}}
    loops = {
        "constraints": [{"name": "own", "type": "revolute", "axis": [0, 0, 1], **ends}],
        "assembly": {"crank": 1.0, "coupler": -0.9, "rocker": -0.5},
    }
    found = load_robot(with_frames(False), loops).description.constraints
    assert [constraint.name for constraint in found] == ["own"]


Z = "<axis xyz='0 0 1'/>"
SKEW = (
    "<inertial><origin xyz='.1 .05 .02'/><mass value='1.5'/>"
    "<inertia ixx='.02' iyy='.03' izz='.04' ixy='.001' ixz='0' iyz='0'/></inertial>"
)
PARALLELOGRAM = (
    link("base"),
    link("a", SKEW),
    link("b", SKEW),
    link("c", SKEW),
    joint("ja", "base", "a", f"{Z}<origin xyz='0 0 .1' rpy='1.2 0 0'/>"),
    joint("jb", "base", "b", f"{Z}<origin xyz='.3 0 .1' rpy='1.2 0 0'/>"),
    joint("jc", "a", "c", f"{Z}<origin xyz='0 .2 0'/>"),
)
PIN = {
    "constraints": [
        {
            "name": "pin",
            "type": "revolute",
            "predecessor": {"link": "c", "xyz": [0.3, 0, 0]},
            "successor": {"link": "b", "xyz": [0, 0.2, 0]},
            "axis": [0, 0, 1],
        }
    ]
}
PINNED = load_robot(robot(*PARALLELOGRAM), PIN)


def test_joints_inside_gazebo_close_loops():
    inside = (
        "<gazebo><joint name='pin' type='revolute'><parent>c</parent><child>b</child>"
        "<pose>0 .2 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint></gazebo>"
    )
    found = load_robot(robot(*PARALLELOGRAM, inside))
    assert found.ny == 1
    assert not found.warnings
    same_dynamics(PINNED, found)


def test_a_gazebo_joint_to_the_world_is_explained():
    inside = (
        "<gazebo><joint name='w' type='{}'><parent>world</parent><child>{}</child></joint></gazebo>"
    )
    assert load_robot(robot(*PARALLELOGRAM, inside.format("fixed", "base"))).ny == 3
    with pytest.raises(DescriptionError, match="joint 'w': joins a link to the world"):
        load_robot(robot(*PARALLELOGRAM, inside.format("fixed", "c")))


def drake(tag: str, **fields: str) -> str:
    """An element of Drake's in a URDF."""
    nested = "".join(
        f"<drake:{tag}_{name} {'name' if 'body' in name else 'value'}='{value}'/>"
        for name, value in fields.items()
    )
    return f"<drake:{tag}>{nested}</drake:{tag}>"


ENDS = {"body_A": "c", "p_AP": ".3 0 0", "body_B": "b", "p_BQ": "0 .2 0"}


@pytest.mark.parametrize("declared", [True, False])
def test_drakes_ball_constraint_is_a_spherical_cut(declared):
    text = robot(*PARALLELOGRAM, drake("ball_constraint", **ENDS))
    if declared:
        text = text.replace("<robot", "<robot xmlns:drake='http://drake.mit.edu'", 1)
    same_dynamics(PINNED, load_robot(text))


def test_a_stiff_bushing_is_a_cut():
    frames = "<frame name='f' link='c' xyz='.3 0 0'/><frame name='g' link='b' xyz='0 .2 0'/>"
    bushing = (
        "<drake:linear_bushing_rpy><drake:bushing_frameA name='f'/><drake:bushing_frameC name='g'/>"
        "<drake:bushing_force_stiffness value='1e5 1e5 1e5'/>"
        "<drake:bushing_torque_stiffness value='1e4 1e4 {}'/></drake:linear_bushing_rpy>"
    )
    found = load_robot(robot(*PARALLELOGRAM, frames, bushing.format(0)))
    same_dynamics(PINNED, found)
    assert any("it is a revolute cut here" in warning for warning in found.warnings)


def test_drakes_distance_and_tendon():
    length = float(np.hypot(0.3, 0.0))
    text = robot(
        *PARALLELOGRAM,
        drake("distance_constraint", **ENDS | {"p_AP": "0 0 0"}, distance=repr(length)),
    )
    (cut,) = load_robot(text).description.constraints
    assert (cut.type, cut.length) == ("distance", length)
    tendon = (
        "<drake:tendon_constraint><drake:tendon_constraint_joint name='ja' a='2'/>"
        "<drake:tendon_constraint_joint name='jb' a='-3'/>"
        "<drake:tendon_constraint_offset value='.5'/>"
        "<drake:tendon_constraint_lower_limit value='{}'/>"
        "<drake:tendon_constraint_upper_limit value='.1'/></drake:tendon_constraint>"
    )
    found = load_robot(robot(*PARALLELOGRAM, tendon.format(0.1)))
    q = found.close({"ja": 0.4, "jc": 0.0})
    assert 2 * 0.4 - 3 * q[found.joint_names.index("jb")] + 0.5 == pytest.approx(0.1)
    assert load_robot(robot(*PARALLELOGRAM, tendon.format(0.0))).ny == 3


def test_drakes_joint_types():
    inside = "<parent link='base'/><child link='{}'/><axis xyz='0 1 0'/>"
    text = robot(
        *(link(name, SKEW) for name in ("base", "a", "b", "c", "d")),
        f"<drake:joint name='ball' type='ball'>{inside.format('a')}</drake:joint>",
        f"<drake:joint name='cross' type='universal'>{inside.format('b')}</drake:joint>",
        f"<drake:joint name='flat' type='planar'>{inside.format('c')}</drake:joint>",
        f"<drake:joint name='screw' type='screw'>{inside.format('d')}"
        "<drake:screw_thread_pitch value='.5'/></drake:joint>",
    )
    found = load_robot(text)
    assert found.joint_names == ("ball", "cross_1", "cross_2", "flat", "screw")
    assert [joint.type for joint in found.description.joints if joint.name == "ball"] == [
        "spherical"
    ]
    q = found.tree.home.copy()
    q[-1] = 2 * np.pi
    np.testing.assert_allclose(found.frame_pose(q, "d")[:3, 3], (0.0, 0.5, 0.0), atol=1e-12)
    with pytest.raises(DescriptionError, match="type 'curvilinear' of <drake:joint>"):
        load_robot(text.replace("type='planar'", "type='curvilinear'"))


@pytest.mark.parametrize(
    ("multiplier", "offset", "limits"), [(2.0, 0.5, (0.6, 1.0)), (-1.0, 0.2, (-0.9, -0.1))]
)
def test_mimic_joints_start_within_their_limits(multiplier, offset, limits):
    limit = "<limit lower='{}' upper='{}' effort='1' velocity='1'/>"
    text = robot(
        *(link(name, SKEW) for name in ("base", "a", "b", "c")),
        joint("master", "base", "a", limit.format(-1, 1), type="revolute"),
        joint(
            "follower", "a", "b",
            f"<mimic joint='master' multiplier='{multiplier}' offset='{offset}'/>"
            + limit.format(*limits), type="revolute",
        ),
        joint("third", "b", "c", "<mimic joint='follower' multiplier='.5'/>"),
    )  # fmt: skip
    found = load_robot(text)
    master, follower, third = found.tree.home
    assert limits[0] <= follower <= limits[1]
    assert -1 <= master <= 1
    assert follower == pytest.approx(multiplier * master + offset)
    assert third == pytest.approx(0.5 * follower)


def meeting_frames(names: tuple[str, str]) -> str:
    """The parallelogram with two frames where its loop closes."""
    added = []
    for name, on, at in zip(names, ("c", "b"), (".3 0 0", "0 .2 0"), strict=True):
        origin = f"<origin xyz='{at}'/>"
        added += [link(name, ""), joint(f"{name}_frame", on, name, origin, type="fixed")]
    return robot(*PARALLELOGRAM, *added)


@pytest.mark.parametrize("names", [("knee_1", "knee_2"), ("loopA", "loopB")])
def test_check_proposes_a_loop_file_for_frames_that_meet(tmp_path, capsys, names):
    (tmp_path / "robot.urdf").write_text(meeting_frames(names))
    assert main(["check", str(tmp_path / "robot.urdf")]) == 0
    page = capsys.readouterr().out
    proposal = page[page.index("constraints:") :].splitlines()
    last = next((i for i, row in enumerate(proposal[1:], 1) if not row.startswith(" ")), None)
    text = textwrap.dedent("\n".join(["      constraints:", *proposal[1:last]]))
    same_dynamics(PINNED, load_robot(meeting_frames(names), text))


def test_check_prints_the_loops_of_closing_frames(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text(meeting_frames(("closing_x_1", "closing_x_2")))
    assert main(["check", str(tmp_path / "robot.urdf")]) == 0
    page = capsys.readouterr().out
    assert "info  loop file     taken from frames of onshape-to-robot" in page
    assert "type: spherical" in page


def test_drakes_world_needs_no_link():
    text = robot(link("arm", SKEW), joint("hinge", "world", "arm", Z))
    found = load_robot(text)
    assert found.joint_names == ("hinge",)
    assert any("'world'" in warning for warning in found.warnings)


def with_element(text: str):
    urdf = MECHANISMS["four_bar"].urdf.read_text()
    loops = {"independent_joints": ["crank", "flag"]}
    return load_robot(urdf.replace("</robot>", f"{text}</robot>"), loops)


@pytest.fixture(scope="module")
def four_bar():
    loops = yaml.safe_load(MECHANISMS["four_bar"].loops.read_text())
    return load_robot(
        MECHANISMS["four_bar"].urdf, loops | {"independent_joints": ["crank", "flag"]}
    )


@pytest.mark.parametrize(
    "text",
    [
        f"<constraint name='pin' type='revolute'>{PARENT}<parent_axis xyz='0 0 1'/>{CHILD}"
        "<child_axis xyz='0 0 1'/></constraint>",
        f"<constraint name='pin' type='continuous'>{PARENT}<parent_axis xyz='0 0 1'/>{CHILD}"
        "</constraint>",
        f"<constraint name='pin' type='revolute'>{PARENT}<parent_axis xyz='0 0 1'/>"
        "<child link='rocker_link'/><child_origin xyz='0.22 0 0.03' rpy='1.5707963267948966 0 0'/>"
        "<child_axis xyz='0 1 0'/></constraint>",
        f"<loop_joint name='pin' type='revolute'>{PARENT}{CHILD}<axis xyz='0 0 1'/></loop_joint>",
        "<loop_joint name='pin' type='spherical'><link1 link='coupler_link' xyz='0.28 0 0.01'/>"
        "<link2 link='rocker_link' xyz='0.22 0 0.03'/></loop_joint>",
        "<loop_joint name='pin' type='ball'><link1 link='coupler_link' xyz='0.28 0 0.01'/>"
        "<link1 link='rocker_link' xyz='0.22 0 0.03'/></loop_joint>",
    ],
)
def test_a_four_bar_in_other_words(four_bar, text):
    robot = with_element(text)
    home = four_bar.tree.home
    q = four_bar.close({"crank": home[0] + 0.3, "flag": 0.1}, home)
    np.testing.assert_allclose(
        robot.close({"crank": home[0] + 0.3, "flag": 0.1}, home), q, atol=1e-9
    )
    np.testing.assert_allclose(robot.mass_matrix(q), four_bar.mass_matrix(q), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("<loop_joint name='a' type='spherical'><link1 link='coupler_link'/></loop_joint>", "1 "),
        ("<loop_joint name='a' type='odd'/>", "odd"),
        (f"<constraint name='a' type='revolute'>{PARENT}</constraint>", "child"),
        (f"<constraint type='revolute'>{PARENT}{CHILD}</constraint>", "name"),
        (f"<constraint name='a' type='fixed'>{PARENT}<child link='nowhere'/></constraint>", "now"),
    ],
)
def test_mistakes_are_named(text, word):
    with pytest.raises(DescriptionError, match=word):
        with_element(text)
