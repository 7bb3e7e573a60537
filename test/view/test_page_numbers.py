"""Messages of the page: numbers seldom, but at once where a loop turns red."""

import pytest

from rbda_ros import cli, load_robot
from rbda_ros.view import page as view_page
from rbda_ros.view.following import Received

pytest.importorskip("viser", reason="the extra 'view' is not installed")
LEG = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"


def received(ankle):
    """Measured joints of the demo leg."""
    positions = {"hip_abduction": 0.0, "hip_flexion": 0.3, "knee": 0.9, "ankle": ankle}
    return Received(positions, False, None, {}, 0, "ok", {})


def test_numbers_wait_for_their_time_unless_a_loop_turns_red(monkeypatch):
    monkeypatch.setattr(view_page, "READABLE", 3600.0)
    page = view_page.Page(load_robot(*LEG), port=8620, moves=False)
    try:
        status = page.panel._status
        first = status.content
        assert 'data-state="closed"' in first
        for ankle in (0.1, 0.11, 0.12):
            page.follow(received(ankle))
        assert status.content == first
        assert page.panel.updates == 4
        page.follow(received(-1.5))
        assert 'data-state="trouble"' in status.content and "ankle_linkage" in status.content
        page.follow(received(0.1))
        assert 'data-state="closed"' in status.content
    finally:
        page.close()


def test_a_robot_without_loops_is_shown_and_moves():
    robot = load_robot("docs/cookbook/gear.urdf")
    assert not robot.tree.has_loops
    page = view_page.Page(robot, "docs/cookbook/gear.urdf", port=8630)
    try:
        page.step(0.0)  # nothing was asked for: the plot is drawn anew, and there is none
        page.panel.slide("elbow", 0.4)
        page.step(1.0)
        assert page.posed.q[0] == pytest.approx(0.4, abs=0.01)
        page.step(0.0)
        assert "no loops" in page.panel._status.content
    finally:
        page.close()


def test_an_animation_is_a_page_of_its_own(tmp_path, capsys):
    file = tmp_path / "leg.html"
    command = ["view", LEG[0], "--loops", LEG[1], "--port", "8660", "--record", str(file)]
    assert cli.main(command) == 0
    assert str(file) in capsys.readouterr().out
    assert "<html" in file.read_text()[:500] and file.stat().st_size > 100_000
    assert cli.main([*command[:-1], str(tmp_path / "no" / "folder.html")]) == 1
