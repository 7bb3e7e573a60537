"""Robots that messages can command, and those that they cannot; the terms of efforts."""

from types import SimpleNamespace

import numpy as np
import pytest
from feeding import Feed
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, load_robot
from rbda_ros.control import native
from rbda_ros.control.configuration import RouteMaker, configuration, mask_of
from rbda_ros.control.rejections import REASONS, Reason
from rbda_ros.control.settings import Settings
from rbda_ros.control.stream import Stream
from rbda_ros.control.topics import Input, Output
from rbda_ros.kernels.kernel import Kernel


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


def test_topics_and_reasons_are_those_of_the_machine():
    assert [topic.name for topic in sorted(Input)] == list(native.INPUTS)
    assert [topic.name for topic in sorted(Output)] == list(native.OUTPUTS)
    assert set(REASONS) == set(Reason)


def wheel_configuration():
    """A configuration with every record that there is."""
    robot = load_robot(WHEEL)
    settings = Settings(on_stale="gravity", publish_external_effort=True)
    maker, mask = RouteMaker(robot), mask_of(robot, ["axle"])
    route = maker.route(mask, None, settings)
    command = maker.command_route(mask, native.POSITION_FIELD, None, settings)
    return configuration(settings, maker, [route], [command])


def records(of):
    """A record and all records in it."""
    yield of
    for value in vars(of).values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, SimpleNamespace):
                yield from records(each)


OF_ANY_SIZE = ("parts", "command_order", "seeds", "followers", "settling_joints")


def test_every_field_is_needed_and_arrays_have_their_size():
    good = wheel_configuration()
    native.Machine().configure(good)
    tried = 0
    for record in records(good):
        for name, value in list(vars(record).items()):
            if name in ("robot", "call") or isinstance(value, Kernel):
                continue  # kept for their memory
            delattr(record, name)
            with pytest.raises(AttributeError, match=f"'{name}'"):
                native.Machine().configure(good)
            if isinstance(value, np.ndarray) and name not in OF_ANY_SIZE:
                setattr(record, name, np.append(value, np.zeros(1, value.dtype)))
                with pytest.raises(ValueError, match=r"^configuration: .* does not fit$"):
                    native.Machine().configure(good)
            setattr(record, name, value)
            tried += 1
    native.Machine().configure(good)
    assert tried > 80


@pytest.mark.parametrize(
    ("record", "name", "value"),
    (
        ("model", "nq", -1),
        ("model", "base_nq", 3),
        ("model", "entries", np.array([7], np.int32)),
        ("model", "home", np.zeros(1, np.float32)),
        ("settings", "command_order", np.array([-1], np.int32)),
    ),
)
def test_numbers_out_of_bounds_are_rejected(record, name, value):
    configuration = wheel_configuration()
    setattr(getattr(configuration, record), name, value)
    with pytest.raises(ValueError, match=r"^configuration: .* does not fit$"):
        native.Machine().configure(configuration)
