"""Transmissions: the maps are those that transmission_interface computes, solved for joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from description_texts import constraint_named, joint_named, leg, leg_problems, link_named

from rbda_ros.description.model import Coupling


def ros2(inside: str, plugin: str = "SimpleTransmission") -> str:
    return (
        "<ros2_control name='r' type='system'><hardware><plugin>x/Y</plugin></hardware>"
        f"<transmission name='t'><plugin>transmission_interface/{plugin}</plugin>{inside}"
        "</transmission></ros2_control>"
    )


ROS1 = (
    "<transmission name='t'><type>transmission_interface/SimpleTransmission</type>"
    "<joint name='knee'><hardwareInterface>x</hardwareInterface><offset>0.5</offset></joint>"
    "<actuator name='m'><mechanicalReduction>12</mechanicalReduction>{}</actuator></transmission>"
)
ROS2 = ros2(
    "<actuator name='m' role='actuator1'>{}</actuator><joint name='knee' role='joint1'>"
    "<mechanical_reduction>12</mechanical_reduction><offset>0.5</offset></joint>"
)
INERTIAS = [
    "<rotorInertia>1e-4</rotorInertia>",
    "<rotor_inertia> 1e-4 </rotor_inertia>",
    "<motorInertia>1e-4</motorInertia>",
    "<param name='rotor_inertia'>1e-4</param>",
    "<d:rotor_inertia xmlns:d='http://drake.mit.edu' value='1e-4'/>",
    "<drake:rotor_inertia value='1e-4'/>",  # a prefix that nothing declares
]


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros1", "ros2"])
@pytest.mark.parametrize("inertia", INERTIAS)
def test_simple_transmission_makes_the_rotor_of_the_shorthand(text, inertia):
    description = leg(text.format(inertia))
    shorthand = leg(loops={"rotors": {"knee": {"ratio": 12, "inertia": 1e-4}}})
    assert description.joints == shorthand.joints
    assert description.links == shorthand.links
    # a = n (j - offset)
    gear = Coupling("knee_rotor_gear", {"knee_rotor": 1.0, "knee": -12.0}, -6.0)
    assert description.constraints == (gear,)


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros1", "ros2"])
def test_reduction_without_inertia_adds_nothing_but_a_motor(text):
    found = leg(text.format(""))
    assert found.actuated_joints == ("knee",)
    assert replace(found, actuated_joints=None) == leg()


COMMANDED = """<ros2_control name='arm' type='system'>
<joint name='hip'><command_interface name='effort'/><state_interface name='position'/></joint>
<joint name='knee'><state_interface name='position'/></joint>
<joint name='mount'><command_interface name='position'/></joint>
<joint name='crank'><command_interface name='position'/></joint>
<joint name='gone'><command_interface name='position'/></joint></ros2_control>"""


def test_motors_are_the_joints_that_take_commands():
    """Also beside transmissions, which name joints that are only measured."""
    found = leg(COMMANDED, ROS1.format(""))
    assert found.actuated_joints == ("hip", "crank")
    assert any("'gone'" in warning for warning in found.warnings)
    assert leg(COMMANDED, loops={"actuated_joints": ["knee"]}).actuated_joints == ("knee",)


def two(plugin: str) -> str:
    return ros2(
        "<actuator name='m1' role='actuator1'><mechanical_reduction>50</mechanical_reduction>"
        "<rotor_inertia>1e-4</rotor_inertia></actuator>"
        "<actuator name='m2' role='actuator2'><mechanical_reduction>-40</mechanical_reduction>"
        "<rotor_inertia>2e-4</rotor_inertia></actuator>"
        "<joint name='hip' role='joint1'><mechanical_reduction>2</mechanical_reduction>"
        "<offset>0.5</offset></joint>"
        "<joint name='knee' role='joint2'><mechanical_reduction>-3</mechanical_reduction>"
        "<offset>-0.25</offset></joint>",
        plugin,
    )


def joints_of_differential(a, na, nj, offset):
    """As DifferentialTransmission::actuator_to_joint has it."""
    j1 = (a[0] / na[0] + a[1] / na[1]) / (2.0 * nj[0]) + offset[0]
    j2 = (a[0] / na[0] - a[1] / na[1]) / (2.0 * nj[1]) + offset[1]
    return j1, j2


def joints_of_four_bar(a, na, nj, offset):
    """As FourBarLinkageTransmission::actuator_to_joint has it."""
    j1 = a[0] / (nj[0] * na[0]) + offset[0]
    j2 = (a[1] / na[1] - a[0] / (nj[0] * na[0])) / nj[1] + offset[1]
    return j1, j2


@pytest.mark.parametrize(
    ("plugin", "joints_of"),
    [
        ("DifferentialTransmission", joints_of_differential),
        ("FourBarLinkageTransmission", joints_of_four_bar),
    ],
)
def test_two_actuators_on_two_joints(plugin, joints_of):
    description = leg(two(plugin))
    for a in np.random.default_rng(1).normal(size=(5, 2)):
        hip, knee = joints_of(a, (50, -40), (2, -3), (0.5, -0.25))
        position = {"hip": hip, "knee": knee, "m1_rotor": a[0], "m2_rotor": a[1]}
        for name in ("m1_rotor_gear", "m2_rotor_gear"):
            gear = constraint_named(description, name)
            residual = sum(k * position[joint] for joint, k in gear.terms.items()) - gear.offset
            assert residual == pytest.approx(0.0, abs=1e-10)
    for name, inertia in (("m1_rotor", 1e-4), ("m2_rotor", 2e-4)):
        assert joint_named(description, name).parent == "base"
        assert joint_named(description, name).independent is False
        assert link_named(description, f"{name}_link").inertia.iyy == inertia


def test_ros1_goes_by_roles_and_ros2_by_order():
    ros1 = (
        "<transmission name='t'><type>transmission_interface/FourBarLinkageTransmission</type>"
        "<actuator name='m2'><role>actuator2</role><rotorInertia>1</rotorInertia></actuator>"
        "<actuator name='m1'><role>actuator1</role><rotorInertia>1</rotorInertia></actuator>"
        "<joint name='knee'><role>joint2</role></joint><joint name='hip'><role>joint1</role>"
        "</joint></transmission>"
    )
    gear = constraint_named(leg(ros1), "m1_rotor_gear")
    assert gear.terms == {"m1_rotor": 1.0, "hip": -1.0}


def test_two_rotors_on_one_joint_are_numbered():
    description = leg(ROS1.format(INERTIAS[0]), ROS2.format(INERTIAS[0]))
    assert [joint.name for joint in description.joints[-2:]] == ["knee_1_rotor", "knee_2_rotor"]


def test_rotor_of_the_loop_file_wins():
    description = leg(
        ROS1.format(INERTIAS[0]), loops={"rotors": {"knee": {"ratio": 5, "inertia": 2e-4}}}
    )
    assert constraint_named(description, "knee_rotor_gear").terms["knee"] == -5.0
    assert any("replaces" in warning for warning in description.warnings)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (ROS1.format(INERTIAS[0]).replace("'knee'", "'nee'"), "names a joint that does not exist"),
        (
            ROS1.format(INERTIAS[0]).replace("Simple", "Harmonic"),
            "type 'HarmonicTransmission' over 1 joint(s) and 1 actuator(s) is unknown",
        ),
    ],
)
def test_what_is_ignored_is_told_of(text, warning):
    description = leg(text)
    assert description.constraints == ()
    assert len(description.warnings) == 1
    assert warning in description.warnings[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ROS1.format("<rotorInertia>much</rotorInertia>"), "'much' is not a number"),
        (ROS1.format("<rotorInertia/>"), "'' is not a number"),
        (ROS1.format("<rotorInertia>-1</rotorInertia>"), "rotor inertia -1.0 is negative"),
        (ROS1.format(INERTIAS[0]).replace(">12<", ">0<"), "a reduction is zero"),
        (ROS1.format(INERTIAS[0]).replace(">12<", ">x<"), "'x' is not a number"),
        (ROS1.format(INERTIAS[0]).replace("knee", "mount"), "fixed joint 'mount' has no single"),
        (two("DifferentialTransmission").replace("'m1'", "''"), "<actuator> has no name"),
    ],
)
def test_wrong_transmissions(text, reason):
    assert any(reason in str(problem) for problem in leg_problems(text))


def test_numbers_that_nobody_needs_are_not_read():
    found = leg(ROS1.format("").replace(">12<", ">${ratio}<"))
    assert replace(found, actuated_joints=None) == leg()
