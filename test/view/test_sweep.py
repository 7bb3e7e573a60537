"""Conditioning along a slider, against differences of positions."""

from pathlib import Path

import numpy as np
import yaml

from rbda_ros import load_robot
from rbda_ros.view.plotted import sweep
from rbda_ros.view.posing import Poser


def test_a_crank_that_turns_all_the_way_is_swept_to_both_ends():
    robot = load_robot("docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml")
    poser = Poser(robot)
    found = sweep(poser, "joints", "crank", robot.tree.home)
    assert (np.diff(found.position) > 0.0).all()
    assert np.ptp(found.position) > 6.0 and not found.lower and not found.upper
    # By differences: how fast coupler and rocker move, beside how fast they do at the assembly.
    speeds = [_speed(robot, at) for at in found.position[::10]]
    wanted = np.minimum(_speed(robot, robot.tree.home[0]) / speeds, 1.0)
    np.testing.assert_allclose(found.conditioning[::10], wanted, rtol=1e-4)
    np.testing.assert_array_equal(poser.q, robot.tree.home)


def _speed(robot, crank, step=1e-5):
    ends = [robot.close({"crank": crank + way}, robot.tree.home) for way in (-step, step)]
    return np.linalg.norm(ends[1] - ends[0]) / (2 * step)


def test_a_loop_out_of_reach_ends_the_sweep_and_says_why():
    loops = yaml.safe_load(Path("docs/cookbook/slider_crank.yaml").read_text())
    loops["independent_joints"] = ["piston"]
    robot = load_robot("docs/cookbook/slider_crank.urdf", loops)
    found = sweep(Poser(robot), "joints", "piston", robot.tree.home)
    assert found.position.max() <= 0.0  # where crank and rod are in line
    assert found.conditioning[-1] == found.conditioning.min()
    assert "wrist_pin" in found.upper
