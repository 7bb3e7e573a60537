"""Inverse kinematics of whole robots: targets within and out of reach, limits, loops."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import example_robots
from reference_data import shared_robot

from rbda_ros import load_robot

ROBOTS = example_robots()
ARMS = {
    "panda": ("panda_hand", "pose"),
    "ur5_robot": ("ee_link", "pose"),
    "solo12": ("FL_FOOT", "position"),
    "talos_left_arm": ("arm_left_7_link", "pose"),
}


def bounds(robot):
    """Limits (joints,) of one-DoF joints, which all are bounded in these robots."""
    of = {joint.name: joint.limits for joint in robot.description.joints}
    limits = np.array([(of[name].lower, of[name].upper) for name in robot.joint_names])
    return limits.T


def base_of(robot):
    return robot.tree.home[: 7 if robot.floating_base else 0]


@pytest.mark.parametrize("name", ARMS)
def test_reaches_random_targets_within_limits(name):
    frame, kind = ARMS[name]
    robot = load_robot(ROBOTS[name], floating_base=name == "solo12")
    lower, upper = bounds(robot)
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(5):
        q = robot.close(np.concatenate([base_of(robot), rng.uniform(lower, upper)]))
        pose = robot.frame_pose(q, frame)
        target = pose if kind == "pose" else pose[:3, 3]
        found = robot.inverse_kinematics(frame, target)
        assert np.array_equal(found.q[: len(base_of(robot))], base_of(robot))  # the base stays
        joints = found.q[len(base_of(robot)) :]
        assert np.all(joints >= lower - 1e-9) and np.all(joints <= upper + 1e-9)
        got = robot.frame_pose(found.q, frame)
        if found.reached:
            reached += 1
            np.testing.assert_allclose(got[:3, 3], pose[:3, 3], 0, 1e-7)
            if kind == "pose":
                np.testing.assert_allclose(got, pose, 0, 1e-7)
    assert reached == 5


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "ball_screw_knee"])
def test_reaches_along_the_loops(name):
    mechanism = MECHANISMS[name]
    robot = load_robot(mechanism.urdf, mechanism.loops)  # on a fixed base
    frame = (robot.clusters[-1].links[-1], (0.05, 0.02, 0.03))
    base = 7 if mechanism.floating_base else 0
    for q in closed_states(mechanism, 3, seed=3):
        target = robot.frame_pose(robot.close(q[base:], guess=q[base:]), frame)[:3, 3]
        found = robot.inverse_kinematics(frame, target)
        assert found.reached, found.error
        np.testing.assert_allclose(robot.frame_pose(found.q, frame)[:3, 3], target, 0, 1e-7)
        robot.mass_matrix(found.q)  # refuses positions off the loops


def test_reaches_with_a_geared_leg():
    robot = load_robot(shared_robot("mit_humanoid_leg"))
    rng = np.random.default_rng(2)
    foot = ("ankle_link", (0.1, 0.0, 0.0))
    lower, upper = bounds(robot)
    for _ in range(20):
        q = robot.close(rng.uniform(-1.0, 1.0, robot.ny))
        if np.any(q < lower) or np.any(q > upper):
            continue  # rotors have limits, too
        target = robot.frame_pose(q, foot)[:3, 3]
        found = robot.inverse_kinematics(foot, target)
        assert found.reached
        assert np.all(found.q >= lower - 1e-9) and np.all(found.q <= upper + 1e-9)


STRAIGHT_ARM = """<robot name="arm"><link name="base"/>
  <link name="upper"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="1" velocity="1"/></joint></robot>"""
TIP = ("lower", (0.3, 0.0, 0.0))


def test_out_of_reach_is_reported_with_the_distance():
    robot = load_robot(STRAIGHT_ARM)
    found = robot.inverse_kinematics(TIP, [1.2, 0.5, 0.0])
    assert not found.reached
    assert np.linalg.norm(found.error) == pytest.approx(1.3 - 0.8, abs=1e-4)
    above = robot.inverse_kinematics(TIP, [0.6, 0.1, 0.25])  # the arm moves in a plane
    assert not above.reached
    assert np.linalg.norm(above.error) == pytest.approx(0.25, abs=1e-4)


def test_a_limit_keeps_the_arm_from_its_target():
    robot = load_robot(STRAIGHT_ARM)
    found = robot.inverse_kinematics(TIP, [-0.8, 0.0, 0.0])  # behind its back
    assert not found.reached
    assert np.all(np.abs(found.q) <= [1.0 + 1e-9, 2.0 + 1e-9])
    # The nearest place it can go: shoulder and elbow both at their limits.
    nearest = robot.frame_pose([1.0, 2.0], TIP)[:3, 3]
    expected = np.linalg.norm(nearest - [-0.8, 0.0, 0.0])
    assert np.linalg.norm(found.error) == pytest.approx(expected, abs=1e-3)


def test_starts_from_the_guess():
    robot = load_robot(STRAIGHT_ARM)
    target = robot.frame_pose([0.3, 0.8], TIP)[:3, 3]
    near = robot.inverse_kinematics(TIP, target, guess=[0.31, 0.79])
    other = robot.inverse_kinematics(TIP, target, guess=[0.9, -0.9])
    np.testing.assert_allclose(near.q, [0.3, 0.8], 0, 1e-6)
    assert other.reached and other.q[1] < 0.0  # the elbow the other way round
