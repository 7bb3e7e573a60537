"""Where sliders take a robot, and what is said where they take it nowhere, or loops stay open."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, Robot, load_robot
from rbda_ros.view.posing import NEAR_DEAD_POINT, Poser, assembly_yaml, branches, drives, open_robot

COOKBOOK = "docs/cookbook"
FOUR_BAR = "docs/cookbook/four_bar.urdf"
BESIDE = """
constraints:
  - name: pin
    type: revolute
    predecessor: {link: coupler_link, xyz: [0.4, 0, 0]}
    successor: {link: rocker_link, xyz: [0, 0, 0.25]}
    axis: [0, 1, 0]
"""
FILES = "docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml"


def cookbook(name):
    return load_robot(f"{COOKBOOK}/{name}.urdf", f"{COOKBOOK}/{name}.yaml")


@pytest.fixture(scope="module")
def four_bar():
    return cookbook("four_bar")


@pytest.mark.parametrize(
    "name", ["planar_joint_loop", "ball_joint_loop", "two_parents", "screw", "cam", "tello_leg"]
)
def test_every_mechanism_is_shown_where_its_sliders_are(name):
    robot = Robot(MECHANISMS[name].tree())
    poser = Poser(robot)
    for drive in poser.drives:
        posed = poser.move(drive, poser.values(drive, robot.tree.home))
        np.testing.assert_allclose(posed.q, robot.tree.home, atol=1e-6)
        for slider in poser.drives[drive].sliders:
            assert slider.lower < slider.upper


def test_bodies_are_where_frames_are(four_bar):
    poser = Poser(four_bar)
    posed = poser.move("joints", {"crank": 0.9})
    R, p = poser.body_poses(posed.q)
    for number, body in enumerate(four_bar.tree.spanning.bodies, start=1):
        pose = four_bar.frame_pose(posed.q, body.name)
        frame = four_bar.tree.spanning.links[body.name].frame
        np.testing.assert_allclose(R[number - 1] @ frame.R, pose[:3, :3], atol=1e-12)
        np.testing.assert_allclose(R[number - 1] @ frame.p + p[number - 1], pose[:3, 3], atol=1e-12)


def test_loops_close_along_a_slider_and_gravity_is_the_robots(four_bar):
    poser = Poser(four_bar)
    for crank in np.linspace(0.5, 2.0, 30):
        posed = poser.move("joints", {"crank": crank})
        assert not posed.troubles
        assert posed.loops[0].residual < 1e-9
        np.testing.assert_allclose(posed.gravity, four_bar.gravity_force(posed.q))


def test_a_loop_out_of_reach_is_red_and_the_others_stay_closed():
    robot = cookbook("parallel_ankle")
    poser = Poser(robot)
    good = poser.move("joints", {"ankle_pitch": 0.1, "ankle_roll": 0.0})
    assert not good.troubles
    far = poser.move("joints", {"ankle_pitch": 2.5, "ankle_roll": 0.0})
    (loop,) = far.troubles
    assert "left_rod" in loop.constraints
    assert "constraint" in loop.trouble and "rod" in loop.trouble
    assert far.gravity is None and far.efforts is None
    place = robot.coordinates.scalar_positions
    assert far.q[place["ankle_pitch"]] == 2.5
    assert far.q[place["left_motor"]] == good.q[place["left_motor"]]
    assert not poser.move("joints", {"ankle_pitch": 0.1, "ankle_roll": 0.0}).troubles


def test_near_a_dead_point_the_loop_is_red_and_says_so():
    loops = yaml.safe_load(Path(f"{COOKBOOK}/slider_crank.yaml").read_text())
    loops["independent_joints"] = ["piston"]
    poser = Poser(load_robot(f"{COOKBOOK}/slider_crank.urdf", loops))
    assert not poser.move("joints", {"piston": -0.05}).troubles
    # Crank and rod are in line: the piston can no longer say which way they go.
    posed = poser.move("joints", {"piston": -1e-5})
    assert posed.loops[0].conditioning < NEAR_DEAD_POINT
    assert "dead point" in posed.loops[0].trouble


def test_motors_move_what_joints_move():
    robot = cookbook("parallel_ankle")
    poser = Poser(robot)
    posed = poser.move("joints", {"ankle_pitch": 0.2, "ankle_roll": 0.1})
    at = poser.values("motors", posed.q)
    again = Poser(robot).move("motors", at)
    np.testing.assert_allclose(again.q, posed.q, atol=1e-8)


def test_what_a_node_completed_is_taken_as_it_is_and_what_is_measured_is_closed(four_bar):
    q = four_bar.close({"crank": 0.9})
    positions = dict(zip(four_bar.joint_names, q, strict=True)) | {"others": 1.0}
    np.testing.assert_array_equal(Poser(four_bar).measured(positions, complete=True).q, q)
    measured = Poser(four_bar).measured({"crank": 0.9}, complete=False)
    np.testing.assert_allclose(measured.q, q, atol=1e-8)


def test_joints_may_have_a_dot_in_their_name():
    text = Path("docs/cookbook/gear.urdf").read_text()
    robot = load_robot(text.replace('"elbow"', '"elbow.0"'))
    assert set(drives(robot)) == {"joints"}  # the motors are the same joints


def test_the_gap_that_no_pose_closes_is_what_is_left():
    with pytest.raises(DescriptionError, match="does not close"):
        load_robot(FOUR_BAR, BESIDE)
    poser = open_robot(FOUR_BAR, BESIDE, floating_base=False)
    (health,) = poser.home.loops
    assert health.constraints == ("pin",) and health.trouble
    assert health.residual == pytest.approx(0.03, abs=1e-6)  # beside the plane of the linkage
    ends = ("coupler_link", (0.4, 0.0, 0.0)), ("rocker_link", (0.0, 0.0, 0.25))
    a, b = (poser.robot.frame_pose(poser.start, end)[:3, 3] for end in ends)
    assert np.linalg.norm(a - b) == pytest.approx(0.03, abs=1e-6)


def test_its_joints_move_freely_and_the_gap_follows():
    poser = open_robot(FOUR_BAR, BESIDE, floating_base=False)
    values = poser.values("joints", poser.start)
    assert set(values) == {"crank", "coupler", "rocker"}
    posed = poser.move("joints", values | {"rocker": values["rocker"] + 0.2})
    assert posed.loops[0].residual > 0.04


def test_one_that_closes_has_no_gap():
    files = "docs/cookbook/parallel_ankle.urdf", "docs/cookbook/parallel_ankle.yaml"
    poser = open_robot(*files, floating_base=False)
    assert not poser.home.troubles and len(poser.home.loops) == 2


def test_a_four_bar_has_two_branches_and_each_loads_again():
    robot = load_robot(*FILES)
    found = branches(robot, robot.tree.clusters[0].name, robot.tree.home)
    assert len(found) == 2
    np.testing.assert_array_equal(found[0], robot.tree.home)
    with open(FILES[1]) as file:
        loops = yaml.safe_load(file)
    for q in found:
        assert robot.state(q).residual < 1e-9
        assert q[0] == found[0][0]  # the crank stays
        picked = yaml.safe_load(assembly_yaml(robot, q))
        again = load_robot(FILES[0], loops | picked)
        np.testing.assert_allclose(again.tree.home, q, atol=1e-3)


def test_gears_have_no_branches():
    robot = load_robot("docs/cookbook/gear.urdf", "docs/cookbook/gear.yaml")
    assert len(branches(robot, robot.tree.clusters[0].name, robot.tree.home)) == 1
    assert yaml.safe_load(assembly_yaml(robot, robot.neutral())) is None
