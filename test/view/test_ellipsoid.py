"""The inertia that a frame shows, against the mass of a body that slides."""

import numpy as np

from rbda_ros import load_robot
from rbda_ros.view.plotted import inertia_ellipsoid


def test_a_finger_that_slides_feels_like_both_fingers_along_its_axis_and_cannot_move_across():
    robot = load_robot("docs/cookbook/gripper.urdf", "docs/cookbook/gripper.yaml")
    found = inertia_ellipsoid(robot, robot.tree.home, "left_finger_link")
    np.testing.assert_allclose(found.masses, [np.inf, np.inf, 0.16])  # two of 80 g
    np.testing.assert_allclose(np.abs(found.axes[:, 2]), [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.lengths, [0.0, 0.0, 1.0], atol=1e-9)
    assert np.isclose(np.linalg.det(found.axes), 1.0)


def test_off_the_loops_there_is_none():
    robot = load_robot("docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml")
    assert inertia_ellipsoid(robot, robot.tree.home + 0.3, "rocker_link") is None
