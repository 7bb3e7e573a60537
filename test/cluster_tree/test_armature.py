"""Rotors taken for armatures: nothing is left of their bodies, and the dynamics are the same."""

import numpy as np
import pytest
from mechanism_table import assert_same_dynamics

from rbda_ros import load_robot
from rbda_ros.cluster_tree.regroup import regroup

SPIN = 0.002
LINK = (
    '<link name="{0}"><inertial><origin xyz="0.1 0.02 0.2"/><mass value="1"/>'
    '<inertia ixx="0.03" iyy="0.02" izz="0.01" ixy="0.001" ixz="0" iyz="0"/></inertial></link>'
)
ROTOR = (
    '<link name="{0}"><inertial><origin xyz="0 0 0"/><mass value="0.3"/>'
    f'<inertia ixx="0.001" iyy="{SPIN}" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
    '<origin xyz="0.1 0.2 0.3" rpy="{4}"/><axis xyz="{3}"/></joint>'
)


def belt_leg(rotor_axis="0 1 0", tilt="0 0 0"):
    """Thigh, shank and foot about y; both motors on the thigh, the second through a belt."""
    urdf = '<robot name="leg">' + "".join(LINK.format(name) for name in ("base", "thigh"))
    urdf += "".join(LINK.format(name) for name in ("shank", "foot"))
    urdf += "".join(ROTOR.format(name) for name in ("first", "second"))
    urdf += JOINT.format("hip", "base", "thigh", "1 0 0", "0 0 0")
    urdf += JOINT.format("knee", "thigh", "shank", "0 1 0", "0 0 0")
    urdf += JOINT.format("ankle", "shank", "foot", "0 1 0", tilt)
    urdf += JOINT.format("first", "thigh", "first", rotor_axis, "0 0 0")
    urdf += JOINT.format("second", "thigh", "second", "0 1 0", "0 0 0") + "</robot>"
    gear = {"name": "gear", "type": "coupling", "terms": {"first": 1.0, "knee": -6.0}}
    belt = {"name": "belt", "type": "coupling"}
    belt["terms"] = {"second": 1.0, "knee": -8.0, "ankle": -9.0}
    loops = {"constraints": [gear, belt], "independent_joints": ["hip", "knee", "ankle"]}
    return load_robot(urdf, loops, floating_base=True).tree


@pytest.mark.parametrize(
    "axis, tilt, left",
    [
        ("0 1 0", "0 0 0", []),
        ("0 -1 0", "0 0 0", []),
        ("0 1 0", "0.3 0 0", ["second"]),  # the foot turns about another axis than its rotor
        ("1 0 0", "0 0 0", ["first"]),  # a bevel gear
    ],
)
def test_rotors_about_the_axes_they_drive_are_armatures(axis, tilt, left):
    tree = belt_leg(axis, tilt)
    other = regroup(tree)
    bodies = {body.name: body for node in other.clusters for body in node.bodies}
    assert [name for name in ("first", "second") if bodies[name].inertia.any()] == left
    _assert_same_dynamics(tree, other)


def test_the_armature_of_a_gear_and_a_belt():
    sign = {"0 1 0": 1.0, "0 -1 0": -1.0}
    for axis in sign:
        (node,) = (n for n in regroup(belt_leg(axis)).clusters if n.rotor_armature is not None)
        n = sign[axis] * 6.0
        gear = SPIN * np.array([[n * (n - 1), 0.0], [0.0, 0.0]])
        # w^2, (w + knee)^2 and (w + knee + ankle)^2 take -7, -1 and 9 of (w + 8 knee + 9 ankle)^2.
        belt = SPIN * np.array([[64.0 + 1.0 - 9.0, 72.0 - 9.0], [72.0 - 9.0, 81.0 - 9.0]])
        np.testing.assert_allclose(node.rotor_armature, gear + belt, rtol=0, atol=1e-14)


def test_bodies_that_are_asked_about_stay():
    tree = belt_leg()
    everything = regroup(tree, range(len(tree.spanning.bodies) + 1))
    assert all(node.rotor_armature is None for node in everything.clusters)


def _assert_same_dynamics(tree, other):
    knee, ankle = 0.4, -0.8
    angles = {"hip": -0.7, "knee": knee, "ankle": ankle, "first": 6 * knee}
    assert_same_dynamics(tree, other, angles | {"second": 8 * knee + 9 * ankle})
