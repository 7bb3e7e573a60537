"""Layers over the robot."""

import re

import numpy as np
import pytest

from rbda_ros import load_robot
from rbda_ros.view import readouts
from rbda_ros.view.layers import centre_of_mass, masses_of, stacked
from rbda_ros.view.page import Page
from rbda_ros.view.posing import Poser

LEG = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"


def test_the_centre_of_mass_is_pinocchios():
    pin = pytest.importorskip("pinocchio")
    robot, model = load_robot(LEG[0]), pin.buildModelFromUrdf(LEG[0])
    q = np.random.default_rng(0).normal(size=robot.nq)
    found = centre_of_mass(*Poser(robot).body_poses(q), *masses_of(robot))
    order = [robot.joint_names.index(name) for name in model.names[1:]]
    expected = pin.centerOfMass(model, model.createData(), q[order])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_every_layer_can_be_shown_and_moves_along():
    pytest.importorskip("viser", reason="the extra 'view' is not installed")
    page = Page(load_robot(*LEG), LEG[0], port=8640)
    try:
        for box in page.panel._layers.values():
            box.value = True
        page._answer("layers")
        page.panel.slide("knee", 1.0)
        page._answer("pose")
        ball = page._scene._layers._made["centre of mass"]
        assert len(page._scene._layers._made) == 6 and ball
        page.panel._layers["frames"].value = False
        page._answer("layers")
        assert "frames" not in page._scene._layers._shown
        page.panel._colours.value = "materials"
        page._answer("colours")
    finally:
        page.close()


def test_names_of_links_with_one_origin_are_below_each_other():
    robot = load_robot(*LEG)
    places = Poser(robot).body_poses(robot.neutral())[1]
    assert len(np.unique(places.round(6), axis=0)) < len(places)
    apart = stacked(places, 0.05)
    between = np.linalg.norm(apart[:, None] - apart, axis=2) + np.eye(len(apart))
    assert between.min() > 0.0499
    assert np.array_equal(apart[:, :2], places[:, :2])
    far = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(stacked(far, 0.05), far)


@pytest.mark.parametrize(
    ("number", "text"),
    [(3e-18, "0"), (-0.0123, "-0.012"), (1.23456, "1.23"), (123.456, "123"), (12345.6, "12346")],
)
def test_numbers_are_for_people(number, text):
    assert readouts.human(number) == text


def test_gaps_are_in_millimetres():
    assert [readouts.gap(g) for g in (1e-17, 0.0004, 0.03)] == ["0.000 mm", "0.400 mm", "30.0 mm"]


@pytest.mark.parametrize(
    ("name", "units"),
    [("slider_crank", ["[N m]"]), ("gripper", ["[N]"]), ("delta", ["[N]", "[N m]"])],
)
def test_efforts_have_the_unit_of_their_joints(name, units):
    robot = load_robot(f"docs/cookbook/{name}.urdf", f"docs/cookbook/{name}.yaml")
    posed = Poser(robot).home
    text = readouts.efforts(robot, posed.gravity, posed.efforts, 0)
    assert re.findall(r"</b> (\[.*?\])</div>", text) == units
