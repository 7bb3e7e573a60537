"""The page in a real browser: Debian's Chromium, headless, with only this machine in reach."""

import json
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import chromium
import numpy as np
import pytest

from rbda_ros import load_robot

pytest.importorskip("viser", reason="the extra 'view' is not installed")
pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no chromium; make browser installs it where it can"
)
STATUS = "document.querySelector('#rbda-status').dataset"
LEG = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"


@contextmanager
def viewing(*arguments):
    """The address of a page that `rbda_ros view` serves."""
    command = [sys.executable, "-m", "rbda_ros.cli", "view", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()
            assert process.wait(20) == 0


@contextmanager
def opened(*arguments):
    """The page of a robot, in the browser."""
    with viewing(*arguments) as url, chromium.Chromium((900, 700)) as browser:
        browser.open(url)
        browser.wait_for("document.querySelector('#rbda-status')")
        yield browser, url


def number(browser, joint):
    """The number beside a bar, once the bars have caught up with the picture."""
    browser.wait_for(
        f"{STATUS}.updates === document.querySelector('#rbda-efforts').dataset.updates"
    )
    return float(
        browser.evaluate(f"document.querySelector('tr[data-joint={joint}]').dataset.value")
    )


def slide(browser, label, share, until):
    """Press on the track of a slider until the page shows something; the slider's position."""
    labels = "[...document.querySelectorAll('label')]"
    found = f"{labels}.find(l => l.textContent.startsWith('{label} ['))"
    track = f"document.getElementById({found}.htmlFor)"
    browser.press(track, share, until)
    number = f"{track}.parentElement.querySelector('.mantine-NumberInput-input')"
    return float(browser.evaluate(f"{number}.value"))


def press(browser, text):
    """Press a button."""
    browser.evaluate(
        f"[...document.querySelectorAll('button')].find(b => b.textContent === '{text}').click()"
    )


def test_a_slider_moves_the_leg_and_the_numbers_are_the_robots(tmp_path):
    robot = load_robot(*LEG)
    with opened(*LEG[:1], "--loops", LEG[1]) as (browser, url):
        assert "loops closed" in browser.text("#rbda-status")
        knee = slide(browser, "knee", 0.5, f"{STATUS}.updates > 1")
        assert 0.8 < knee < 1.6
        q = robot.close({"hip_abduction": 0.0, "hip_flexion": 0.0, "knee": knee, "ankle": 0.0})
        gravity = robot.gravity_force(q)
        assert np.isclose(number(browser, "knee"), gravity[2], atol=0.02)
        efforts = dict(
            zip(robot.actuated_joint_names, robot.actuator_efforts(q, gravity), strict=True)
        )
        assert np.isclose(number(browser, "knee_rotor"), efforts["knee_rotor"], atol=0.02)
        picture = tmp_path / "leg.png"
        browser.screenshot(picture)
        assert picture.stat().st_size > 20_000
        loaded = [r for r in browser.requests if not r.startswith(("data:", "blob:"))]
        own = url.removeprefix("http://")
        assert loaded and all(own in request for request in loaded)
        assert not browser.messages


@pytest.mark.nightly
def test_a_loop_out_of_reach_turns_red_and_says_which_and_the_other_branch_is_yaml(tmp_path):
    urdf = tmp_path / "four_bar.urdf"
    text = Path("docs/cookbook/four_bar.urdf").read_text()
    urdf.write_text(text.replace('lower="-1.6" upper="1.6"', 'lower="-3" upper="3"'))
    loops = tmp_path / "loops.yaml"
    loops.write_text(Path("docs/cookbook/four_bar.yaml").read_text().replace("[crank]", "[rocker]"))
    with opened(urdf, "--loops", loops) as (browser, _):
        before = browser.text("#rbda-yaml")
        press(browser, "other branch")
        browser.wait_for(
            f"document.querySelector('#rbda-yaml').textContent !== {json.dumps(before)}"
        )
        assert browser.text("#rbda-yaml").startswith("assembly:")
        slide(browser, "rocker", 0.75, f"{STATUS}.state === 'trouble'")
        assert "pin" in browser.text("#rbda-status")
        press(browser, "Reset pose")
        browser.wait_for(f"{STATUS}.state === 'closed'")


@pytest.mark.nightly
def test_a_loop_that_does_not_close_is_shown_with_its_gap(tmp_path):
    loops = tmp_path / "loops.yaml"
    loops.write_text(
        "constraints: [{name: pin, type: revolute, axis: [0, 1, 0],"
        " predecessor: {link: coupler_link, xyz: [0.4, 0, 0]},"
        " successor: {link: rocker_link, xyz: [0, 0, 0.25]}}]"
    )
    with opened("docs/cookbook/four_bar.urdf", "--loops", loops) as (browser, _):
        assert browser.evaluate(f"{STATUS}.state") == "trouble"
        said = browser.text("#rbda-status")
        assert "pin" in said and "30.0 mm" in said
        slide(browser, "rocker", 0.9, f"{STATUS}.updates > 1")
        browser.wait_for("!document.querySelector('#rbda-status').textContent.includes('30.0 mm')")
        press(browser, "Reset pose")
        browser.wait_for("document.querySelector('#rbda-status').textContent.includes('30.0 mm')")
        assert not browser.messages


@pytest.mark.nightly
def test_legend_units_limits_and_layers():
    with opened(LEG[0], "--loops", LEG[1]) as (browser, _):
        labels = browser.evaluate("[...document.querySelectorAll('label')].map(l => l.textContent)")
        assert "knee [rad]" in labels and "centre of mass" in labels
        every = "[...document.querySelectorAll('*')]"
        browser.evaluate(f"{every}.filter(e => e.textContent === 'legend').pop().click()")
        browser.wait_for("document.querySelector('#rbda-legend')")
        assert "cluster shank" in browser.text("#rbda-legend")
        numbers = browser.evaluate(
            "[...document.querySelectorAll('#rbda-efforts td:last-child')].map(e => e.textContent)"
        )
        assert numbers and not any("e-" in number for number in numbers)
        for name in ("centre of mass", "joint axes", "frames", "link names", "inertia"):
            find = f"[...document.querySelectorAll('label')].find(l => l.textContent === '{name}')"
            browser.evaluate(f"document.getElementById({find}.htmlFor).click()")
        slide(browser, "knee", 0.5, f"{STATUS}.updates > 1")
        assert not browser.messages


@pytest.mark.nightly
def test_the_name_of_a_link_is_shown_where_the_pointer_rests():
    with opened(LEG[0], "--loops", LEG[1]) as (browser, _):
        label = "document.querySelector('#rbda-name').textContent === '{}'"
        for x, y, name in (
            (300, 290, "thigh (hip_flexion, 2.4 kg)"),
            (365, 330, "fixed base"),
        ):
            for _ in range(20):  # software WebGL is slow to begin
                browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 2, y=y)
                browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
                with suppress(TimeoutError):
                    browser.wait_for(label.format(name), seconds=4.0)
                    break
            assert browser.evaluate(label.format(name)), name
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=20, y=200)
        browser.wait_for(label.format("point at a link to see its name"))
        assert not browser.messages
