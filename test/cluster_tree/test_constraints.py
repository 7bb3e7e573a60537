"""Meaning of each constraint, checked on link poses that Pinocchio computes."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import yaml
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import PinocchioOracle

from rbda_ros.description.expression import parse

CUTS = {
    "four_bar": "revolute",
    "slider_crank": "prismatic",
    "cylindrical_cut": "cylindrical",
    "planar_cut": "planar",
    "universal_cut": "universal",
    "spherical_cut": "spherical",
    "fixed_cut": "fixed",
    "distance_cut": "distance",
}


def cut_poses(name: str):
    """For each closed state: the cut, and the poses of its two frames in the world."""
    mechanism = MECHANISMS[name]
    oracle = PinocchioOracle(mechanism.urdf, mechanism.load())
    (cut,) = yaml.safe_load(mechanism.loops.read_text())["constraints"]
    for q in closed_states(mechanism, 20):
        pin.framesForwardKinematics(oracle.model, oracle.data, oracle.position(q))
        poses = []
        for end in (cut["predecessor"], cut["successor"]):
            link = oracle.data.oMf[oracle.model.getFrameId(end["link"], pin.FrameType.BODY)]
            rotation = pin.rpy.rpyToMatrix(*map(float, end.get("rpy", (0, 0, 0))))
            poses.append(link * pin.SE3(rotation, np.array(end.get("xyz", (0, 0, 0)), float)))
        yield cut, *poses


@pytest.mark.parametrize(("name", "kind"), CUTS.items(), ids=CUTS.values())
def test_cut_joints_hold_what_their_names_say(name, kind):
    moved_along, turned = [], []
    for cut, predecessor, successor in cut_poses(name):
        assert cut["type"] == kind
        axis = np.array(cut.get("axis", (1, 0, 0)), float)
        axis /= np.linalg.norm(axis)
        here, there = predecessor.rotation @ axis, successor.rotation @ axis
        gap = successor.translation - predecessor.translation
        close = {"rtol": 0, "atol": 1e-11}
        if kind in ("revolute", "spherical", "universal", "fixed"):
            np.testing.assert_allclose(gap, 0, **close)
        if kind in ("prismatic", "cylindrical"):
            np.testing.assert_allclose(np.cross(gap, here), 0, **close)
        if kind == "planar":
            np.testing.assert_allclose(gap @ here, 0, **close)
        if kind in ("revolute", "prismatic", "cylindrical", "planar", "fixed"):
            np.testing.assert_allclose(there, here, **close)  # parallel, and not opposed
        if kind in ("prismatic", "fixed"):
            np.testing.assert_allclose(successor.rotation, predecessor.rotation, **close)
        if kind == "universal":
            second = np.array(cut["second_axis"], float)
            np.testing.assert_allclose(here @ successor.rotation @ second, 0, **close)
        if kind == "distance":
            np.testing.assert_allclose(np.linalg.norm(gap), cut["length"], **close)
        moved_along.append(np.linalg.norm(gap))
        turned.append(np.linalg.norm(pin.log3(predecessor.rotation.T @ successor.rotation)))
    # What a cut leaves free does move: no type holds more than it should.
    if kind in ("prismatic", "cylindrical", "planar"):
        assert np.ptp(moved_along) > 1e-3
    if kind not in ("prismatic", "fixed"):
        assert np.ptp(turned) > 1e-2


def test_a_rod_without_length_is_as_long_as_at_the_assembly():
    mechanism = MECHANISMS["tie_rod"]
    lengths = [np.linalg.norm(s.translation - p.translation) for _, p, s in cut_poses("tie_rod")]
    np.testing.assert_allclose(lengths, lengths[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(mechanism.tree().home, [0.3, -0.2], atol=1e-15)


@pytest.mark.parametrize("name", ["cam", "tello_leg"])
def test_equations_are_zero_by_plain_python(name):
    """The grammar is Python's but for backquotes and ^: let Python itself evaluate the text."""
    mechanism = MECHANISMS[name]
    entries = yaml.safe_load(mechanism.loops.read_text())["constraints"]
    equations = [entry["equation"] for entry in entries if entry["type"] == "expression"]
    functions = {"sin": np.sin, "cos": np.cos}
    start = 7 if mechanism.floating_base else 0
    for q in closed_states(mechanism, 20):
        position = dict(zip(mechanism.load().joint_names, q[start:], strict=True))
        names = {joint.replace("-", "_"): value for joint, value in position.items()}
        for equation in equations:
            assert parse(equation)
            text = equation.replace("^", "**").replace("`follower-slide`", "follower_slide")
            value = eval(text, {"__builtins__": {}}, functions | names)
            assert value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["gear", "differential", "screw", "two_parents", "cam"])
def test_couplings_are_sums_of_positions(name):
    mechanism = MECHANISMS[name]
    entries = yaml.safe_load(mechanism.loops.read_text())["constraints"]
    start = 7 if mechanism.floating_base else 0
    for q in closed_states(mechanism, 20):
        position = dict(zip(mechanism.load().joint_names, q[start:], strict=True))
        for entry in (e for e in entries if e["type"] == "coupling"):
            total = sum(c * position[joint] for joint, c in entry["terms"].items())
            assert total == pytest.approx(entry.get("offset", 0.0), abs=1e-13)


def test_path_couplings_of_urdf_plus_sum_over_the_paths():
    """The ankle's belt runs over the knee: ratio * (knee + ankle) = rotor."""
    mechanism = MECHANISMS["belt_pair"]
    for q in closed_states(mechanism, 20):
        at = dict(zip(mechanism.load().joint_names, q[7:], strict=True))
        assert at["knee_rotor"] == pytest.approx(12 * at["knee"], abs=1e-13)
        assert at["ankle_rotor"] == pytest.approx(9 * (at["knee"] + at["ankle"]), abs=1e-13)


def test_mimic_joints_follow_with_multiplier_and_offset():
    mechanism = MECHANISMS["mimic_chain"]
    for q in closed_states(mechanism, 20):
        at = dict(zip(mechanism.load().joint_names, q, strict=True))
        assert at["middle"] == pytest.approx(0.8 * at["proximal"] + 0.1, abs=1e-13)
        assert at["distal"] == pytest.approx(-0.5 * at["middle"], abs=1e-13)
        assert at["thumb"] == pytest.approx(0.02 * at["distal"] + 0.01, abs=1e-13)
