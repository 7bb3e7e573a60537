"""Robots that messages can command, and those that they cannot; the terms of efforts."""

import pytest
from feeding import Feed
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


WHEEL = """<robot name="wheel"><link name="base"/><link name="rim"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="axle" type="continuous"><parent link="base"/><child link="rim"/>
    <axis xyz="0 0 1"/><dynamics damping="0.5" friction="0.3"/></joint></robot>"""


@pytest.mark.parametrize(
    "settings",
    (
        {"friction": True},
        {"terms": ("friction",)},
        {"terms": ("gravity", "friction"), "friction": True},
    ),
)
def test_friction_is_a_term_by_name_or_by_its_own_parameter(settings):
    """A wheel about a vertical axis at rest otherwise: damping qd + friction tanh(qd / 0.01)."""
    robot = load_robot(WHEEL)
    robot.prepare()

    def effort(**values):
        feed = Feed(robot, **values)
        return feed.states([0.2], [2.0])["feedforward"]

    assert effort() == pytest.approx([0.0], abs=1e-12)
    assert effort(**settings) == pytest.approx([0.5 * 2.0 + 0.3], abs=1e-12)
