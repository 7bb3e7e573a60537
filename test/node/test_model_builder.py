"""What is made ready before messages ask for it."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros.demo.resources import share_file
from rbda_ros.node import messages
from rbda_ros.control.joint_map import map_joints
from rbda_ros.node.model_builder import warm
from rbda_ros.robot import load_robot


@pytest.fixture
def leg(monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    folder = share_file("config/robots/demo_leg.urdf").parent
    return load_robot(folder / "demo_leg.urdf", folder / "demo_leg_loops.yaml")


@pytest.mark.parametrize("which", ["independent", "actuated", "all"])
def test_no_request_about_these_joints_traces_anything(leg, which):
    warm(leg)
    known = leg._kernels.cached()
    names = {
        "independent": leg.independent_joint_names,
        "actuated": leg.actuated_joint_names,
        "all": leg.joint_names,
    }[which]
    joints, rates = map_joints(leg, names), np.ones(len(names))
    q = leg.tree.home
    q = messages.closed_position(leg, joints, q[[leg.joint_names.index(n) for n in names]], None)
    state = messages.moving(leg, joints, leg.state(q), rates, None)
    ydd = messages.acceleration_vector(leg, joints, state, rates, None)
    leg.inverse_dynamics_efforts(state, state.yd, ydd)
    leg.forward_dynamics(state, state.yd, ydd)
    assert leg._kernels.cached() == known


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_made_ready(name, monkeypatch):
    """Also where motors do not determine the other joints, or have several coordinates."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    warm(MECHANISMS[name].load())
