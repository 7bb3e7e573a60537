"""Robots whose loops do not close are shown where the gap is smallest."""

import numpy as np
import pytest

from rbda_ros import DescriptionError, load_robot
from rbda_ros.view.unclosed import open_robot

FOUR_BAR = "docs/cookbook/four_bar.urdf"
BESIDE = """
constraints:
  - name: pin
    type: revolute
    predecessor: {link: coupler_link, xyz: [0.4, 0, 0]}
    successor: {link: rocker_link, xyz: [0, 0, 0.25]}
    axis: [0, 1, 0]
"""


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
