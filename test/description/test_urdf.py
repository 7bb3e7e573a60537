"""URDF reading: every field, the defaults, and files as sloppy as those in use."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from description_texts import (
    INERTIAL,
    LEG,
    joint,
    joint_named,
    leg,
    leg_problems,
    link,
    link_named,
    only_problem,
    problems,
    robot,
)

from rbda_ros.description import read_description
from rbda_ros.description.model import Coupling, Inertia, Limits, Pose


def one_joint(inside: str = "", type: str = "revolute"):
    text = robot(link("a"), link("b"), joint("j", "a", "b", inside, type))
    return read_description(text).joints[0]


def test_reads_every_field_of_a_joint():
    found = one_joint(
        "<origin xyz=' 1  2 3 ' rpy='0.1 0.2 0.3'/><axis xyz='0 0 -2'/>"
        "<limit lower='-1' upper='2' velocity='3' effort='4'/>"
        "<dynamics damping='0.5' friction='0.25'/>"
    )
    assert found.origin == Pose((1, 2, 3), (0.1, 0.2, 0.3))
    assert found.axis == (0, 0, -1)
    assert found.limits == Limits(-1, 2, 3, 4)
    assert (found.damping, found.friction, found.independent) == (0.5, 0.25, None)


def test_joint_defaults():
    found = one_joint(type="continuous")
    assert (found.origin, found.axis, found.limits) == (Pose(), (1, 0, 0), Limits())


@pytest.mark.parametrize(
    "type", ["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]
)
def test_reads_every_joint_type_of_urdf(type):
    assert one_joint(type=type).type == type


@pytest.mark.parametrize(
    ("type", "limit", "bounds"),
    [
        ("revolute", "<limit upper='2'/>", (0.0, 2.0)),
        ("prismatic", "<limit lower='-1' upper='inf'/>", (-1.0, math.inf)),
        ("revolute", "<limit effort='3' velocity='1'/>", (-math.inf, math.inf)),
        ("continuous", "<limit lower='-1' upper='1' effort='3'/>", (-math.inf, math.inf)),
    ],
)
def test_position_bounds(type, limit, bounds):
    limits = one_joint(limit, type).limits
    assert (limits.lower, limits.upper) == bounds


def test_revolute_joint_without_limits_is_accepted_with_a_warning():
    description = read_description(
        robot(link("a"), link("b"), joint("j", "a", "b", "", "revolute"))
    )
    assert any("'j'" in warning and "limits" in warning for warning in description.warnings)


def test_axis_of_a_fixed_or_floating_joint_does_not_matter():
    assert one_joint("<axis xyz='0 0 0'/>", "fixed").axis == (1, 0, 0)
    assert one_joint("<axis xyz='0 0 0'/>", "floating").axis == (1, 0, 0)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("0", False)])
def test_independent_attribute_of_urdf_plus(text, value):
    xml = joint("j", "a", "b").replace("<joint", f"<joint independent='{text}'")
    assert read_description(robot(link("a"), link("b"), xml)).joints[0].independent is value


def test_reads_inertia():
    inertial = (
        "<inertial><origin xyz='1 2 3' rpy='0 0 1'/><mass value='2.5'/>"
        "<inertia ixx='3' ixy='0.1' ixz='0.2' iyy='4' iyz='0.3' izz='5'/></inertial>"
    )
    found = read_description(robot(link("a", inertial))).links[0].inertia
    assert found == Inertia(2.5, Pose((1, 2, 3), (0, 0, 1)), 3, 0.1, 0.2, 4, 0.3, 5)


def test_link_without_inertial_has_none_and_point_masses_are_told_of():
    description = read_description(
        robot(
            link("a", ""),
            link("b", "<inertial><mass value='1'/></inertial>"),
            joint("j", "a", "b"),
        )
    )
    assert link_named(description, "a").inertia is None
    assert link_named(description, "b").inertia == Inertia(1.0)
    assert any("point mass" in warning for warning in description.warnings)


def test_what_draws_or_simulates_is_ignored():
    extras = (
        "<material name='red'/><material name='red'/><gazebo reference='base'><link/></gazebo>"
        "<!-- <link name='gone'/> --><sensor name='s'/><?pi x?>"
        "<ros2_control name='r' type='system'><joint name='hip'/></ros2_control>"
    )
    visual = "<visual><geometry><mesh filename='package://nowhere/x.stl'/></geometry></visual>"
    plain = leg()
    sloppy = leg(extras.replace("<sensor", f"{visual}<sensor"))
    assert (sloppy.links, sloppy.joints) == (plain.links, plain.joints)


def test_namespaces_are_harmless():
    text = robot(*LEG).replace(
        "<robot ", "<robot xmlns:xacro='http://ros.org/wiki/xacro' xacro:x='1' "
    )
    assert read_description(text).joints == leg().joints
    defaulted = robot(*LEG).replace("<robot ", "<robot xmlns='http://www.ros.org' ")
    assert read_description(defaulted).joints == leg().joints


def test_undeclared_prefix_is_ignored_as_old_gazebo_files_need():
    assert leg("<gazebo><sensor:camera name='c'/></gazebo>").joints == leg().joints
    message = only_problem(problems("<robot name='r'><a:b/></robo>"))
    assert "Opening and ending tag mismatch" in message  # not the prefix


def test_prolog_byte_order_mark_and_declared_encodings(tmp_path: Path):
    declared = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    named = robot(link("fuß"))
    assert read_description(f"\n  {declared}{named}").links[0].name == "fuß"
    assert read_description("\ufeff" + named).links[0].name == "fuß"
    for encoding, text in (
        ("latin-1", declared + named),
        ("utf-16", named),
        ("utf-8-sig", named),
        ("utf-8", named),
    ):
        path = tmp_path / f"{encoding}.urdf"
        path.write_bytes(text.encode(encoding))
        assert read_description(path).links[0].name == "fuß"
        assert read_description(str(path)).links[0].name == "fuß"


def test_mimic_becomes_a_coupling_and_the_joint_dependent():
    description = leg(
        link("toe"),
        joint("toe", "shank", "toe", "<mimic joint='knee' multiplier='-2' offset='0.5'/>"),
    )
    assert description.constraints == (Coupling("toe_mimic", {"toe": 1.0, "knee": 2.0}, 0.5),)
    assert joint_named(description, "toe").independent is False
    assert joint_named(description, "knee").independent is None


def test_mimic_defaults_chains_and_a_loop_file_that_turns_it_round():
    more = (
        link("b"),
        link("c"),
        joint("b", "shank", "b", "<mimic joint='knee'/>"),
        joint("c", "b", "c", "<mimic joint='b'/>"),
    )
    description = leg(*more, loops={"independent_joints": ["hip", "crank", "c"]})
    assert [dict(item.terms) for item in description.constraints] == [
        {"b": 1.0, "knee": -1.0},
        {"c": 1.0, "b": -1.0},
    ]
    assert joint_named(description, "b").independent is False
    assert joint_named(description, "c").independent is True


@pytest.mark.parametrize(
    ("mimic", "reason"),
    [
        ("<mimic joint='toe'/>", "mimics itself"),
        ("<mimic/>", "has no joint"),
        ("<mimic joint='knee' multiplier='x'/>", "'x' is not a number"),
        ("<mimic joint='mount'/>", "fixed joint 'mount' has no single position"),
    ],
)
def test_wrong_mimics(mimic, reason):
    assert reason in only_problem(leg_problems(link("toe"), joint("toe", "shank", "toe", mimic)))


@pytest.mark.parametrize(
    ("mimic", "fixed", "position"),
    [
        ("<mimic joint='knee' multiplier='2' offset='.1'/>", {"knee": 0.2}, 0.5),
        ("<mimic joint='knee' multiplier='0' offset='.3'/>", {}, 0.3),
    ],
)
def test_a_mimic_of_what_does_not_move_is_fixed_too(mimic, fixed, position):
    text = robot(*LEG, link("toe"), joint("toe", "shank", "toe", mimic))
    held = {name: {"type": "fixed", "position": at} for name, at in fixed.items()}
    both = held | {"toe": {"type": "fixed", "position": position}}
    free = robot(*LEG, link("toe"), joint("toe", "shank", "toe"))
    found = read_description(text, {"joints": held})
    expected = read_description(free, {"joints": both})
    assert [(j.type, j.origin) for j in found.joints] == [
        (j.type, j.origin) for j in expected.joints
    ]
    assert found.constraints == ()
    assert any("joint 'toe'" in warning and "fixed here" in warning for warning in found.warnings)


def test_mimics_in_a_circle():
    found = leg_problems(
        link("b"),
        link("c"),
        joint("b", "shank", "b", "<mimic joint='c'/>"),
        joint("c", "b", "c", "<mimic joint='b'/>"),
    )
    assert {problem.element for problem in found} == {"joint 'b'", "joint 'c'"}


def test_mimic_of_an_unknown_joint_is_told_of_and_left_free():
    description = leg(link("toe"), joint("toe", "shank", "toe", "<mimic joint='nee'/>"))
    assert description.constraints == ()
    assert any("'nee'" in w and "did you mean 'knee'?" in w for w in description.warnings)


@pytest.mark.parametrize(
    ("text", "element", "reason"),
    [
        ("<robot", "URDF", "is not XML"),
        ("<robot/>", "URDF", "has no link"),
        ("<sdf version='1.6'/>", "<sdf>", "has 0 models"),
        ("<world/>", "<world>", "is not a URDF"),
        ("<!DOCTYPE robot [<!ENTITY a 'x'>]><robot name='&a;'/>", "URDF", "has a DOCTYPE"),
        ("<robot name='r'><link name='a'/>&a;</robot>", "URDF", "is not XML"),
        ("<robot name='\ud800'/>", "URDF", "is not valid Unicode"),
        ("neither\nxml", "URDF", "is neither XML text nor a path"),
        ("", "URDF ''", "is not a file"),
        ("/no/such/robot.urdf", "URDF '/no/such/robot.urdf'", "does not exist"),
    ],
)
def test_text_that_is_no_urdf(text, element, reason):
    message = only_problem(problems(text))
    assert message.startswith(element)
    assert reason in message


@pytest.mark.parametrize("path", [None, 3, b"x", "a\0b", "x" * 10_000])
def test_what_is_no_path(path):
    only_problem(problems(path))


def test_directories_large_and_undecodable_files(tmp_path: Path):
    assert "is not a file" in only_problem(problems(tmp_path))
    binary = tmp_path / "binary.urdf"
    binary.write_bytes(b"\xff\xfe\x00\xd8" * 10)
    assert "is not readable text" in only_problem(problems(binary))
    large = tmp_path / "large.urdf"
    with large.open("wb") as stream:
        stream.truncate(17 * 1024 * 1024)
    assert "more than" in only_problem(problems(large))
    assert "more than" in only_problem(problems("<robot>" + " " * (17 * 1024 * 1024)))


def test_number_of_links_is_bounded():
    many = "".join(f"<link name='{number}'/>" for number in range(10_001))
    assert any("10001 links" in str(problem) for problem in problems(robot(many)))


def test_numbers_are_noted_with_their_line():
    text = robot(
        *LEG,
        "\n\n",
        link("x", INERTIAL.replace("ixx='1'", "ixx='1,5'")),
        "\n",
        joint("y", "base", "x", "<axis xyz='0 0'/><origin xyz='0 nan 1e80'/>"),
    )
    found = [str(problem) for problem in problems(text)]
    assert found == [
        "link 'x': ixx of <inertia> (line 3): '1,5' is not a number; correct it",
        "joint 'y': xyz of <origin> (line 4): 'nan' is not finite; correct it",
        "joint 'y': xyz of <axis> (line 4): '0 0' is not three numbers; correct it",
    ]


@pytest.mark.parametrize(
    ("part", "element", "reason"),
    [
        ("<link/>", "link ''", "has no name"),
        ("<joint name='j' type='revolute'/>", "joint 'j'", "has no <parent>"),
        (joint("j", "base", "x", type="ball"), "joint 'j'", "type 'ball' is unknown"),
        (joint("j", "base", ""), "joint 'j'", "<child> has no link"),
        (joint("", "base", "x"), "joint ''", "<joint> has no name"),
        (joint("j", "base", "x", "<axis xyz='0 0 0'/>"), "joint 'j'", "has zero length"),
        (joint("j", "base", "x", "<limit upper='nan'/>", "revolute"), "joint 'j'", "not finite"),
        (link("i", "<inertial/>"), "link 'i'", "has no mass"),
        (link("i", "<inertial><mass/></inertial>"), "link 'i'", "has no mass"),
        (
            joint("j", "base", "x").replace("<joint", "<joint independent='maybe'"),
            "joint 'j'",
            "'maybe' is neither true nor false",
        ),
    ],
)
def test_wrong_links_and_joints(part, element, reason):
    found = leg_problems(link("x"), part)
    assert any(p.element == element and reason in p.reason for p in found), found


@pytest.mark.parametrize(
    "inside", ["<turnGravityOff>true</turnGravityOff>", "<gravity> 0 </gravity>"]
)
def test_gravity_switched_off_for_gazebo_is_a_warning(inside):
    text = robot(link("a"), link("b"), joint("j", "a", "b")).replace(
        "</robot>", f"<gazebo reference='b'>{inside}</gazebo></robot>"
    )
    description = read_description(text)
    assert [each.weight for each in description.links] == [1.0, 1.0]
    assert any(
        "link 'b'" in warning and "weights: {b: 0.0}" in warning for warning in description.warnings
    )
