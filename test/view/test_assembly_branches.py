"""Other ways to close a loop, and the YAML that picks one."""

import numpy as np
import yaml

from rbda_ros import load_robot
from rbda_ros.view.assembly_branches import assembly_yaml, branches

FILES = "docs/cookbook/four_bar.urdf", "docs/cookbook/four_bar.yaml"


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
