"""Efforts of a followed node over time: their parts are the model's, and add up."""

import numpy as np
import pytest

from rbda_ros import load_robot
from rbda_ros.view.following import Received
from rbda_ros.view.page import Page
from rbda_ros.view.plotted import PARTS, SECONDS, EffortHistory

LEG = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"


@pytest.fixture(scope="module")
def leg():
    return load_robot(*LEG)


def test_parts_add_up_and_are_those_of_the_model(leg):
    rng = np.random.default_rng(0)
    y, yd, ydd = np.array([0.1, 0.3, 0.9, -0.1]), *rng.normal(size=(2, 4))
    q = leg.close(y)
    qd = leg.spanning_velocity(q, yd)
    efforts = leg.actuator_efforts(q, leg.inverse_dynamics(q, yd, ydd))
    history = EffortHistory(leg)
    history.add(3.0, q, dict(zip(leg.joint_names, qd, strict=True)), efforts)
    _, *parts = history.of("knee_rotor")
    published, gravity, coriolis, rest = (part[0] for part in parts)
    assert len(PARTS) == 4
    assert published == pytest.approx(gravity + coriolis + rest, abs=1e-12)
    at_rest = leg.inverse_dynamics(q, np.zeros(4), ydd) - leg.gravity_force(q)
    assert rest == pytest.approx(leg.actuator_efforts(q, at_rest)[2], abs=1e-9)


def test_the_past_is_bounded_and_what_is_off_the_loops_left_out(leg):
    history, q = EffortHistory(leg), leg.close([0.1, 0.3, 0.9, -0.1])
    for time in np.arange(0.0, 3.0 * SECONDS, 0.5):
        history.add(float(time), q, {}, np.zeros(4))
    times, *_ = history.of("knee_rotor")
    assert times[-1] == 0.0 and -SECONDS <= times[0] < -0.9 * SECONDS
    history.add(1e3, q + 0.5, {}, np.zeros(4))
    assert len(history.of("knee_rotor")[0]) == len(times)


def test_the_page_plots_them_while_a_node_is_followed(leg):
    pytest.importorskip("viser", reason="the extra 'view' is not installed")
    page = Page(leg, LEG[0], port=8650, moves=False)
    try:
        q = leg.close([0.1, 0.3, 0.9, -0.1])
        efforts = leg.actuator_efforts(q, leg.gravity_force(q))
        received = Received(
            dict(zip(leg.joint_names, q, strict=True)), True, None,
            dict(zip(leg.actuated_joint_names, efforts, strict=True)), 0, "ok", {},
        )  # fmt: skip
        for _ in range(3):
            page.follow(received)
        page._show_numbers()
        assert page.panel._history_folder.visible
        assert len(page.panel._history.data[0]) == 3
    finally:
        page.close()
