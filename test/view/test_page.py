"""The page in a real browser: Debian's Chromium, headless, with only this machine in reach."""

import base64
import io
import json
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import chromium
import numpy as np
import pytest
from PIL import Image

from rbda_ros import load_robot

pytest.importorskip("viser", reason="the extra 'view' is not installed")
pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no chromium; make browser installs it where it can"
)
STATUS = "document.querySelector('#rbda-status').dataset"
RED = "rgb(220, 20, 30)"
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
        browser.evaluate(
            "setInterval(() => document.querySelector("
            "'.mantine-Notification-closeButton')?.click(), 500) && 0"
        )
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


def choose(browser, label, option):
    """Choose an option of a list."""
    found = f"[...document.querySelectorAll('label')].find(l => l.textContent === '{label}')"
    browser.wait_for(found)
    browser.evaluate(f"document.getElementById({found}.htmlFor).click()")
    listed = "[...document.querySelectorAll('[role=option]')]"
    option = f"{listed}.find(o => o.textContent === '{option}' && o.checkVisibility())"
    browser.wait_for(option)
    browser.evaluate(f"{option}.click()")


def switch(browser, label):
    """Press a box that is either checked or not."""
    found = f"[...document.querySelectorAll('label')].find(l => l.textContent === '{label}')"
    browser.evaluate(f"document.getElementById({found}.htmlFor).click()")


def at_rest(browser):
    """Pixels of the page, once its picture stands still."""
    before, now = None, picture(browser)
    for _ in range(30):
        if before is not None and np.array_equal(before, now):
            return now
        time.sleep(0.5)
        before, now = now, picture(browser)
    raise TimeoutError("the picture does not come to rest")


def changed(browser, before):
    """Wait until the picture is another one; how many pixels are."""
    for _ in range(60):
        count = int(np.any(picture(browser) != before, axis=2).sum())
        if count > 50:
            return count
        time.sleep(0.5)
    raise TimeoutError("the picture has not changed")


def unfold(browser, title):
    """Open a folder."""
    every = "[...document.querySelectorAll('*')]"
    browser.evaluate(f"{every}.filter(e => e.textContent === '{title}').pop().click()")


def picture(browser):
    """Pixels (height, width, 3) of the page, without the panel on the right and the numbers."""
    answer = browser.call("Page.captureScreenshot", format="png")
    image = Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")
    pixels = np.array(image)
    pixels[:, 500:] = 0
    pixels[:230, :300] = 0
    return pixels


def reddish(pixels):
    """Which pixels have the colour of a loop that does not close."""
    red, green, blue = np.moveaxis(pixels.astype(int), -1, 0)
    return (red > 150) & (green < 90) & (blue < 90)


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
        line = "document.querySelector('#rbda-status')"
        assert browser.evaluate(f"getComputedStyle({line}).color") == RED
        assert np.any(reddish(picture(browser)))  # the line through the gap
        slide(browser, "rocker", 0.9, f"{STATUS}.updates > 1")
        browser.wait_for("!document.querySelector('#rbda-status').textContent.includes('30.0 mm')")
        press(browser, "Reset pose")
        browser.wait_for("document.querySelector('#rbda-status').textContent.includes('30.0 mm')")
        assert not browser.messages


@pytest.mark.nightly
def test_legend_units_numbers_and_notes(tmp_path):
    urdf = tmp_path / "leg.urdf"
    box, mesh = '<box size="0.12 0.10 0.10"/>', '<mesh filename="no_such.stl"/>'
    urdf.write_text(Path(LEG[0]).read_text().replace(box, mesh))
    with opened(urdf, "--loops", LEG[1]) as (browser, _):
        labels = browser.evaluate("[...document.querySelectorAll('label')].map(l => l.textContent)")
        assert "knee [rad]" in labels and "centre of mass" in labels
        unfold(browser, "legend")
        browser.wait_for("document.querySelector('#rbda-legend')")
        assert "cluster shank" in browser.text("#rbda-legend")
        assert "fixed to the world" in browser.text("#rbda-legend")
        numbers = browser.evaluate(
            "[...document.querySelectorAll('#rbda-efforts td:last-child')].map(e => e.textContent)"
        )
        assert len(numbers) == 8 and not any("e-" in number for number in numbers)
        slide(browser, "knee", 0.437, f"{STATUS}.updates > 1")
        boxes = "[...document.querySelectorAll('.mantine-NumberInput-input')]"
        assert browser.evaluate(f"{boxes}.every(b => b.value.length <= 6)")
        assert browser.evaluate(
            f"{boxes}.every(b => b.scrollWidth <= b.clientWidth)"
        )  # not clipped
        unfold(browser, "every joint")
        knee = "document.querySelector('tr[data-position=knee]')"
        browser.wait_for(knee)
        assert browser.evaluate(f"{knee}.children[1].textContent") == "y"
        assert "rad" in browser.evaluate(f"{knee}.textContent")
        unfold(browser, "notes")
        browser.wait_for("document.body.textContent.includes('no_such.stl')")
        assert not browser.messages


@pytest.mark.nightly
def test_exceeded_limits_are_red(tmp_path):
    urdf = tmp_path / "four_bar.urdf"
    text = Path("docs/cookbook/four_bar.urdf").read_text()
    text = text.replace('lower="-1.6" upper="1.6"', 'lower="-0.2" upper="0.2"')
    urdf.write_text(text.replace('effort="10"', 'effort="0.01"'))
    with opened(urdf, "--loops", "docs/cookbook/four_bar.yaml") as (browser, _):
        assert "effort beyond the limit: crank" in browser.text("#rbda-status")
        bar = "document.querySelector('tr[data-joint=crank] div div')"
        assert browser.evaluate(f"getComputedStyle({bar}).backgroundColor") == RED
        assert "position beyond" not in browser.text("#rbda-status")
        slide(browser, "crank", 0.25, f"{STATUS}.updates > 1")
        browser.wait_for(
            "document.querySelector('#rbda-status').textContent"
            ".includes('position beyond the limit: rocker')"
        )
        row = "document.querySelector('tr[data-position=rocker]')"
        unfold(browser, "every joint")
        browser.wait_for(row)
        assert browser.evaluate(f"{row}.dataset.beyond") == "true"
        assert browser.evaluate(f"getComputedStyle({row}).color") == RED
        assert not browser.messages


@pytest.mark.nightly
def test_many_sliders_are_grouped_and_found_and_efforts_stay_in_sight(tmp_path):
    """Two arms of seven joints."""
    urdf = tmp_path / "arms.urdf"
    inertial = (
        '<inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
        '<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    parts = ['<link name="torso"/>']
    for side, way in (("left", 1), ("right", -1)):
        parent = "torso"
        for k in range(7):
            link = f"{side}_link_{k}"
            parts.append(f'<link name="{link}">{inertial}</link>')
            parts.append(
                f'<joint name="{side}_{k}" type="revolute"><parent link="{parent}"/>'
                f'<child link="{link}"/><origin xyz="0.2 {0.1 * way if k == 0 else 0} 0"/>'
                '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="50" velocity="5"/></joint>'
            )
            parent = link
    urdf.write_text(f'<robot name="arms">{"".join(parts)}</robot>')
    with opened(urdf) as (browser, _):
        text = "document.body.textContent"
        assert browser.evaluate(f"{text}.includes('left_link_0')")  # titles of the groups
        assert browser.evaluate(f"{text}.includes('right_link_0')")
        sliders = "[...document.querySelectorAll('label')].map(l => l.textContent)"
        browser.wait_for(f"{sliders}.includes('left_3 [rad]')")
        assert browser.evaluate(f"{sliders}.includes('right_3 [rad]')")
        search = "[...document.querySelectorAll('label')].find(l => l.textContent === 'search')"
        row = f"{search}.closest('.mantine-Flex-root')"
        browser.evaluate(f"{row}.querySelector('input').focus()")
        browser.call("Input.insertText", text="right_3")
        browser.wait_for(f"!{sliders}.includes('left_3 [rad]')")
        assert browser.evaluate(f"{sliders}.includes('right_3 [rad]')")
        panel = "document.querySelector('.mantine-ScrollArea-viewport')"
        browser.evaluate(f"{panel}.scrollTo(0, 1e5)")
        box = "document.querySelector('#rbda-efforts').getBoundingClientRect()"
        for side in ("top", "left"):
            assert browser.evaluate(f"{box}.{side}") > 0.0
        assert browser.evaluate(f"{box}.bottom < innerHeight && {box}.right < innerWidth")
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


@pytest.mark.nightly
def test_motors_move_the_joints(tmp_path):
    ankle = "docs/cookbook/parallel_ankle.urdf", "docs/cookbook/parallel_ankle.yaml"
    robot = load_robot(*ankle)
    with opened(ankle[0], "--loops", ankle[1]) as (browser, _):
        choose(browser, "move by", "motors")
        labels = "[...document.querySelectorAll('label')].map(l => l.textContent)"
        browser.wait_for(f"{labels}.includes('left_motor [rad]')")
        assert not browser.evaluate(f"{labels}.includes('ankle_pitch [rad]')")
        unfold(browser, "every joint")
        row = "document.querySelector('tr[data-position=ankle_roll]')"
        browser.wait_for(row)
        moved = f"parseFloat({row}.children[2].textContent) !== 0"
        left = slide(browser, "left_motor", 0.7, moved)
        browser.wait_for(moved)
        q = robot.close({"left_motor": left, "right_motor": 0.0})
        roll = q[robot.joint_names.index("ankle_roll")]
        shown = float(browser.evaluate(f"parseFloat({row}.children[2].textContent)"))
        assert abs(roll) > 0.01 and np.isclose(shown, roll, atol=2e-3)
        assert not browser.messages


def drawn(one, other, size=10):
    """Whether something is in one picture that is not in the other.

    Means of squares of 10 pixels: viser draws with fewer pixels where drawing is slow, which moves
    these by up to 15 of 255, and every layer moves some by 40.
    """

    def squares(pixels):
        rows, columns = (length // size for length in pixels.shape[:2])
        whole = pixels[: rows * size, : columns * size].astype(float)
        return whole.reshape(rows, size, columns, size, 3).mean((1, 3))

    return np.abs(squares(one) - squares(other)).max() > 25.0


@pytest.mark.nightly
def test_every_switch_of_the_picture_draws_something_and_takes_it_away():
    with opened(LEG[0], "--loops", LEG[1]) as (browser, _):
        bare = at_rest(browser)
        for label in ("centre of mass", "joint axes", "frames", "link names", "inertia"):
            for shown in (True, False):
                switch(browser, label)
                for _ in range(60):
                    if drawn(picture(browser), bare) == shown:
                        break
                    time.sleep(0.5)
                assert drawn(picture(browser), bare) == shown, label
        assert not browser.messages


@pytest.mark.nightly
def test_conditioning_and_felt_masses_are_shown():
    with opened("docs/cookbook/four_bar.urdf", "--loops", "docs/cookbook/four_bar.yaml") as (
        browser,
        _,
    ):
        assert not browser.evaluate("document.querySelector('.uplot canvas')")
        choose(browser, "conditioning along", "crank")
        browser.wait_for("document.querySelector('.uplot canvas')")
        unfold(browser, "frames")
        button = "[...document.querySelectorAll('button')].find(b => b.textContent === '{}')"
        browser.wait_for(button.format("show its inertia"))
        press(browser, "show its inertia")
        browser.wait_for("document.querySelector('[data-frame=crank_link]')")
        assert browser.text("[data-frame=crank_link]").endswith("kg")
        press(browser, "hide all")
        browser.wait_for("!document.querySelector('[data-frame=crank_link]')")
        assert not browser.messages


@pytest.mark.nightly
def test_a_recorded_page_moves_without_a_server(tmp_path):
    """The recorded page needs no server: it moves when it is opened from the disk."""
    file = tmp_path / "robot.html"
    four_bar = "docs/cookbook/four_bar.urdf", "--loops", "docs/cookbook/four_bar.yaml"
    command = [sys.executable, "-m", "rbda_ros.cli", "view", *four_bar, "--record", str(file)]
    assert subprocess.run(command, timeout=120, check=False).returncode == 0
    with chromium.Chromium((900, 700)) as browser:
        browser.open(file.as_uri())
        browser.wait_for("document.querySelector('canvas')")
        time.sleep(3.0)
        changed(browser, picture(browser))
        assert not [r for r in browser.requests if not r.startswith(("file:", "data:", "blob:"))]
