"""Files that xacro expands, and text that it does not."""

from __future__ import annotations

import os
import sys

import pytest
from description_texts import INERTIAL

from rbda_ros import DescriptionError, load_robot
from rbda_ros.cli.commands import main

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="prefix" default=""/>
  <xacro:arg name="length" default="0.5"/>
  <xacro:property name="length" value="$(arg length)"/>
  <xacro:include filename="parts.xacro"/>
  <link name="base"/>
  <xacro:hinge name="$(arg prefix)elbow" parent="base"/>
</robot>"""
PARTS = f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="hinge" params="name parent">
    <link name="${{name}}_link">{INERTIAL}</link>
    <joint name="${{name}}" type="continuous"><parent link="${{parent}}"/>
      <child link="${{name}}_link"/><origin xyz="${{length / 2}} 0 0"/></joint>
  </xacro:macro>
</robot>"""


@pytest.fixture
def arm(tmp_path):
    (tmp_path / "arm.urdf.xacro").write_text(ARM)
    (tmp_path / "parts.xacro").write_text(PARTS)
    return tmp_path / "arm.urdf.xacro"


def test_files_are_expanded_with_their_arguments(arm):
    assert load_robot(arm).joint_names == ("elbow",)
    robot = load_robot(arm, xacro_arguments={"prefix": "left_", "length": "0.8"})
    assert robot.joint_names == ("left_elbow",)
    assert robot.description.joints[0].origin.xyz == (0.4, 0.0, 0.0)


def test_the_command_line_takes_arguments(arm, capsys):
    assert main(["check", str(arm), "--xacro", "prefix:=right_", "--xacro", "length:=1"]) == 0
    assert "1 degree of freedom" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["check", str(arm), "--xacro", "prefix=right_"])


def test_a_file_of_macros_alone_is_no_robot(arm):
    with pytest.raises(DescriptionError, match="has no link"):
        load_robot(arm.parent / "parts.xacro")


def test_packages_are_found_where_the_file_is(arm, monkeypatch):
    """Its own and the one beside it, from sources that were not built; and those of ROS first."""
    own, other, sourced = (arm.parent / name for name in ("src/own", "src/parts", "ros/share/b"))
    for folder, name in ((own, "arm_description"), (other, "parts")):
        (folder / "urdf").mkdir(parents=True)
        (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    (other / "parts.xacro").write_text(PARTS)
    path = own / "urdf" / "arm.xacro"
    path.write_text(ARM.replace("parts.xacro", "$(find parts)/parts.xacro"))
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    assert load_robot(path).joint_names == ("elbow",)
    assert "AMENT_PREFIX_PATH" not in os.environ
    index = arm.parent / "ros" / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / "parts").touch()
    (sourced.parent / "parts").mkdir()
    (sourced.parent / "parts" / "parts.xacro").write_text(PARTS.replace("length / 2", "length"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(arm.parent / "ros"))
    assert load_robot(path).description.joints[0].origin.xyz == (0.5, 0.0, 0.0)
    assert os.environ["AMENT_PREFIX_PATH"] == str(arm.parent / "ros")
    path.write_text(ARM.replace("parts.xacro", "$(find absent)/parts.xacro"))
    with pytest.raises(DescriptionError, match="source a workspace that has the package"):
        load_robot(path)


def test_what_xacro_says_is_passed_on(arm):
    arm.write_text(ARM.replace('parent="base"', ""))
    with pytest.raises(DescriptionError, match=r"xacro does not expand it.*parent"):
        load_robot(arm)


@pytest.mark.parametrize("text", [ARM, "<robot name='r'><link name='${a}'/></robot>"])
def test_text_is_not_expanded(text):
    """Nobody may have us evaluate expressions, or read files, by a message."""
    with pytest.raises(DescriptionError, match="xacro has not expanded"):
        load_robot(text)


def test_without_xacro_the_remedy_is_named(arm, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(DescriptionError, match="pip install xacro"):
        load_robot(arm)


def test_comments_that_xacro_left_are_no_xacro():
    comment = '<!-- <xacro:if value="${a}"/> -->'
    text = f'<robot name="r">{comment}<link name="l">{INERTIAL}</link></robot>'
    assert load_robot(text).name == "r"
