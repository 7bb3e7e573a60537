"""<constraint> and <loop_joint> in a URDF mean what the loop file's cuts mean."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, load_robot

PARENT = "<parent link='coupler_link'/><parent_origin xyz='0.28 0 0.01'/>"
CHILD = "<child link='rocker_link'/><child_origin xyz='0.22 0 0.03'/>"


def with_element(text: str):
    urdf = MECHANISMS["four_bar"].urdf.read_text()
    loops = {"independent_joints": ["crank", "flag"]}
    return load_robot(urdf.replace("</robot>", f"{text}</robot>"), loops)


@pytest.fixture(scope="module")
def four_bar():
    loops = yaml.safe_load(MECHANISMS["four_bar"].loops.read_text())
    return load_robot(
        MECHANISMS["four_bar"].urdf, loops | {"independent_joints": ["crank", "flag"]}
    )


@pytest.mark.parametrize(
    "text",
    [
        f"<constraint name='pin' type='revolute'>{PARENT}<parent_axis xyz='0 0 1'/>{CHILD}"
        "<child_axis xyz='0 0 1'/></constraint>",
        f"<constraint name='pin' type='continuous'>{PARENT}<parent_axis xyz='0 0 1'/>{CHILD}"
        "</constraint>",
        f"<constraint name='pin' type='revolute'>{PARENT}<parent_axis xyz='0 0 1'/>"
        "<child link='rocker_link'/><child_origin xyz='0.22 0 0.03' rpy='1.5707963267948966 0 0'/>"
        "<child_axis xyz='0 1 0'/></constraint>",
        f"<loop_joint name='pin' type='revolute'>{PARENT}{CHILD}<axis xyz='0 0 1'/></loop_joint>",
        "<loop_joint name='pin' type='spherical'><link1 link='coupler_link' xyz='0.28 0 0.01'/>"
        "<link2 link='rocker_link' xyz='0.22 0 0.03'/></loop_joint>",
        "<loop_joint name='pin' type='ball'><link1 link='coupler_link' xyz='0.28 0 0.01'/>"
        "<link1 link='rocker_link' xyz='0.22 0 0.03'/></loop_joint>",
    ],
)
def test_a_four_bar_in_other_words(four_bar, text):
    robot = with_element(text)
    home = four_bar.tree.home
    q = four_bar.close({"crank": home[0] + 0.3, "flag": 0.1}, home)
    np.testing.assert_allclose(
        robot.close({"crank": home[0] + 0.3, "flag": 0.1}, home), q, atol=1e-9
    )
    np.testing.assert_allclose(robot.mass_matrix(q), four_bar.mass_matrix(q), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("<loop_joint name='a' type='spherical'><link1 link='coupler_link'/></loop_joint>", "1 "),
        ("<loop_joint name='a' type='odd'/>", "odd"),
        (f"<constraint name='a' type='revolute'>{PARENT}</constraint>", "child"),
        (f"<constraint type='revolute'>{PARENT}{CHILD}</constraint>", "name"),
        (f"<constraint name='a' type='fixed'>{PARENT}<child link='nowhere'/></constraint>", "now"),
    ],
)
def test_mistakes_are_named(text, word):
    with pytest.raises(DescriptionError, match=word):
        with_element(text)
