"""Inertia and rotors on other bodies than they are on: the same dynamics, in numbers."""

import weakref

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS, assert_same_dynamics, closed_states

from rbda_ros import load_robot
from rbda_ros.algorithms.kinematics import body_poses
from rbda_ros.cluster_tree.regroup import regroup

LINK = (
    '<link name="{}"><inertial><origin xyz="{}"/><mass value="{}"/>'
    '<inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/>'
    '<origin xyz="0.1 0.2 0.3"/><axis xyz="{}"/>'
    '<limit lower="-6" upper="6" effort="9" velocity="9"/>{}</joint>'
)


def geared(axis, order=("link", "rotor")):
    """An arm whose elbow is driven by a rotor on the upper arm, about an axis of its own."""
    joints = {
        "link": JOINT.format("elbow", "upper", "fore", "0 1 0", ""),
        "rotor": JOINT.format(
            "rotor", "upper", "wheel", axis, '<mimic joint="elbow" multiplier="7"/>'
        ),
    }
    return load_robot(
        '<robot name="arm">'
        + LINK.format("base", "0 0 0.1", 3.0, 0.05, 0.06, 0.07)
        + LINK.format("upper", "0 0.1 0.2", 2.0, 0.03, 0.04, 0.05)
        + LINK.format("fore", "0.1 0 0.2", 1.0, 0.02, 0.01, 0.03)
        + LINK.format("wheel", "0 0 0", 0.3, 0.001, 0.002, 0.001)
        + JOINT.format("shoulder", "base", "upper", "1 0 0", "")
        + "".join(joints[which] for which in order)
        + "</robot>",
        floating_base=True,
    ).tree


@pytest.mark.parametrize(
    "axis, order, hung",
    [
        ("0 1 0", ("link", "rotor"), True),
        ("0 -1 0", ("link", "rotor"), True),
        ("0 1 0", ("rotor", "link"), False),
        ("0 1 1e-9", ("link", "rotor"), False),
    ],
)
def test_rotors_hang_on_links_with_parallel_axes(axis, order, hung):
    tree = geared(axis, order)
    other = regroup(tree)
    (cluster,) = (node for node in other.clusters if len(node.bodies) == 2)
    assert (cluster.inside == (None, 0)) == hung

    elbow = 0.4
    assert_same_dynamics(tree, other, {"shoulder": -0.7, "elbow": elbow, "rotor": 7 * elbow})


def test_it_is_done_once_and_freed_with_the_tree():
    tree = geared("0 1 0")
    assert regroup(tree) is regroup(tree)
    assert regroup(tree, [1]) is not regroup(tree)
    done = weakref.ref(regroup(tree))
    del tree
    assert done() is None


def mass_and_first_moment(tree, poses):
    """Of all bodies and the base, about the origin of the world."""
    R, p = (np.asarray(ca.DM(each)) for each in poses)
    mass, moment = 0.0, np.zeros(3)
    if tree.base_inertia is not None:
        mass, moment = tree.base_inertia[5, 5], first_moment(tree.base_inertia)
    for i, body in enumerate(tree.spanning.bodies):
        m, part = body.inertia[5, 5], slice(3 * i, 3 * i + 3)
        mass += m
        moment = moment + R[part] @ first_moment(body.inertia) + m * p[part, 0]
    return mass, moment


def first_moment(inertia):
    """The vector h of the block ``[h]x`` of a spatial inertia."""
    return np.array([inertia[2, 4], inertia[0, 5], inertia[1, 3]])


@pytest.mark.parametrize("turning", [False, True])
@pytest.mark.parametrize("name", MECHANISMS)
def test_total_mass_and_first_moment_stay_at_every_position(name, turning):
    tree = MECHANISMS[name].tree()
    regrouped = regroup(tree, range(1, len(tree.spanning.bodies) + 1) if turning else ())
    for q in closed_states(MECHANISMS[name], 2):
        poses = body_poses(tree, ca.DM(q))
        mass, moment = mass_and_first_moment(tree, poses)
        found, of_regrouped = mass_and_first_moment(regrouped, poses)
        assert found == pytest.approx(mass, rel=1e-12)
        np.testing.assert_allclose(of_regrouped, moment, rtol=0, atol=1e-11 * max(mass, 1.0))


def test_what_reaches_the_fixed_base_is_kept():
    tree = MECHANISMS["slider_crank"].tree()
    assert not tree.spanning.floating_base
    assert regroup(tree).base_inertia[5, 5] > 0.1 * sum(body.mass for body in tree.spanning.bodies)
