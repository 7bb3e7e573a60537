"""Conditioning along a slider, against the angle between coupler and rocker."""

from pathlib import Path

import numpy as np
import yaml

from rbda_ros import load_robot
from rbda_ros.view.posing import Poser
from rbda_ros.view.sweep import sweep


def test_a_crank_that_turns_all_the_way_is_swept_to_both_ends():
    robot = load_robot("docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml")
    poser = Poser(robot)
    found = sweep(poser, "joints", "crank", robot.tree.home)
    assert (np.diff(found.position) > 0.0).all()
    assert np.ptp(found.position) > 6.0 and not found.lower and not found.upper
    # Coupler and rocker in line would be a dead point: the sine of the angle between them.
    for at, conditioning in zip(found.position[::10], found.conditioning[::10], strict=True):
        crank, coupler, rocker = robot.close({"crank": at}, robot.tree.home)
        between = abs(np.cos(crank + coupler - rocker))  # they point along x and z at zero
        assert (conditioning > 0.1) == (between > 0.2)
    np.testing.assert_array_equal(poser.q, robot.tree.home)


def test_a_loop_out_of_reach_ends_the_sweep_and_says_why():
    loops = yaml.safe_load(Path("docs/cookbook/slider_crank.yaml").read_text())
    loops["independent_joints"] = ["piston"]
    robot = load_robot("docs/cookbook/slider_crank.urdf", loops)
    found = sweep(Poser(robot), "joints", "piston", robot.tree.home)
    assert found.position.max() <= 0.0  # where crank and rod are in line
    assert found.conditioning[-1] == found.conditioning.min()
    assert "wrist_pin" in found.upper
