"""Lines of loops go through the points that the loop file names."""

import numpy as np

from rbda_ros import load_robot
from rbda_ros.view.posing import Poser
from rbda_ros.view.scene import DASHES, LoopLines


def test_the_line_of_a_cut_goes_through_the_cut_from_both_sides():
    robot = load_robot("docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml")
    q = robot.close({"crank": 0.9})
    lines = LoopLines(robot)
    (line,) = lines.lines
    corners = lines.corners(*Poser(robot).body_poses(q))
    ends = ("coupler_link", ("coupler_link", (0.4, 0.03, 0.0)), ("rocker_link", (0.0, 0.0, 0.25)))
    for corner, end in zip(corners, (*ends, "rocker_link"), strict=True):
        np.testing.assert_allclose(corner, robot.frame_pose(q, end)[:3, 3], atol=1e-9)
    assert line.name == "pin"
    np.testing.assert_array_equal(lines.label(0, corners), corners[1])
    dashes = lines.dashes(corners)
    assert dashes.shape == (3 * DASHES, 2, 3)
    np.testing.assert_allclose(dashes[DASHES - 1, 1], corners[1])  # pieces end where they meet
    np.testing.assert_allclose(dashes[-1, 1], corners[-1])


def test_every_dash_has_its_line_and_lines_do_not_run_into_each_other():
    robot = load_robot("docs/cookbook/differential.urdf", "docs/cookbook/differential.yaml")
    lines = LoopLines(robot)
    pieces = [len(line.corners) - 1 for line in lines.lines]
    assert len(pieces) > 1
    expected = np.repeat(np.arange(len(pieces)), np.array(pieces) * DASHES)
    np.testing.assert_array_equal(lines.line_of_dash, expected)
    dashes = lines.dashes(lines.corners(*Poser(robot).body_poses(robot.tree.home)))
    assert len(dashes) == len(expected)


def test_gears_on_the_axis_of_their_joint_have_no_dashes():
    robot = load_robot("config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml")
    lines = LoopLines(robot)
    q = robot.close({"hip_abduction": 0.1, "hip_flexion": 0.3, "knee": 0.9, "ankle": 0.2})
    corners = lines.corners(*Poser(robot).body_poses(q))
    first, drawn = 0, set(lines.line_of_dash.tolist())
    for i, line in enumerate(lines.lines):
        own = corners[first : first + len(line.corners)]
        first += len(line.corners)
        assert (i in drawn) == (np.ptp(own, axis=0).max() > 1e-9), line.name
    assert 0 < len(drawn) < len(lines.lines)
