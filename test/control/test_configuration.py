"""Robots that messages can command, and those that they cannot."""

import pytest
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, load_robot
from rbda_ros.control.settings import Settings
from rbda_ros.control.stream import Stream


def test_motors_that_messages_have_no_place_for_are_named():
    """The node stayed unconfigured with `KeyError: 'ball.wx'`."""
    ball = MECHANISMS["ball_joint_loop"]
    with pytest.raises(DescriptionError, match=r"ball\.wx is part of .*; list .*actuated_joints"):
        Stream().use(ball.load(), Settings())
    robot = load_robot(
        "<robot name='cart'><link name='world'/><link name='cart'><inertial><mass value='1'/>"
        "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        "<joint name='floor' type='planar'><parent link='world'/><child link='cart'/></joint>"
        "</robot>"
    )
    with pytest.raises(DescriptionError, match=r"floor\.x, floor\.y, floor\.yaw"):
        Stream().prepare(robot)
    Stream().use(load_robot(ball.urdf, {"actuated_joints": ["crank"]}), Settings())
