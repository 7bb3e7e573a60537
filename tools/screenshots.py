"""Draws the cookbook and the mathematics, and takes the pictures of the page: `make screenshots`.

screenshots.py NAME... takes only some: demo_leg, or pages of docs/cookbook.
screenshots.py --robots FOLDER [NAME=FILE ...] takes pictures of six robots, and of other files.
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

import draw_mathematics
import numpy as np
from chromium import Chromium

from rbda_ros import load_robot
from rbda_ros.cli.inspection import write_drawing

ROOT = Path(__file__).resolve().parents[1]
BOOK, PICTURES = ROOT / "docs" / "cookbook", ROOT / "docs" / "pictures"
LEG = [ROOT / "config" / "robots" / name for name in ("demo_leg.urdf", "demo_leg_loops.yaml")]
ENDS = ("urdf", "yaml")
SETTLED = 4.0  # [s] until the picture stands still, with software WebGL
CLOSE_NOTICE = "document.querySelector('.mantine-Notification-closeButton')?.click()"
# Folders open slowly, and software WebGL lets them hang between.
AT_REST = """!document.getAnimations().some(a => a instanceof CSSTransition) &&
  document.querySelector('#rbda-status').getBoundingClientRect().top < 100 &&
  document.querySelector('#rbda-name').getBoundingClientRect().top < 200"""
HIDE_PANEL = """(() => {
  let e = document.querySelector('#rbda-status');
  while (e.parentElement.getBoundingClientRect().width < 0.6 * innerWidth) e = e.parentElement;
  e.style.display = 'none';
})()"""


@contextmanager
def opened(urdf, loops=None, size=(1100, 760)):
    """The page of a robot, come to rest."""
    command = [sys.executable, "-m", "rbda_ros.cli", "view", urdf]
    command += [] if loops is None else ["--loops", loops]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with Chromium(size) as browser:
                browser.open(process.stdout.readline().split()[0])
                browser.wait_for("document.querySelector('#rbda-status')")
                time.sleep(SETTLED)
                browser.evaluate(CLOSE_NOTICE)
                browser.wait_for(AT_REST)
                yield browser
        finally:
            process.terminate()


def six_robots(folder):
    """Files of the robots that the viewer is looked at with: loops, many joints, a hand."""
    described = {Path(str(file)).name: file for file in files("example-robot-data") or ()}
    chosen = {
        "cassie": "cassie_v2.sdf",
        "talos": "talos_full_v2.urdf",
        "hand": "allegro_right_hand.urdf",
    }
    found = {"demo_leg": LEG, "parallel_ankle": [BOOK / f"parallel_ankle.{e}" for e in ENDS]}
    found |= {name: [Path(str(described[file].locate()))] for name, file in chosen.items()}
    (folder / "stewart.xml").write_text(stewart())
    return found | {"stewart": [folder / "stewart.xml"]}


def stewart():
    """A Stewart platform as MJCF: six legs that slide, on crosses, with balls at the platform."""
    legs, equalities = "", ""
    for k in range(6):
        low = (k // 2) * 2.0944 + (0.3 if k % 2 else -0.3)
        high = ((k + 1) // 2) * 2.0944 - 1.0472 + (-0.25 if k % 2 else 0.25)
        a = np.array([0.4 * np.cos(low), 0.4 * np.sin(low), 0.0])
        b = np.array([0.25 * np.cos(high), 0.25 * np.sin(high), 0.5])
        along = (b - a) / np.linalg.norm(b - a)
        end, tip = 0.3 * along, b - a
        legs += f"""<body name="cylinder_{k}" pos="{_text(a)}">
          <joint name="pitch_{k}" axis="1 0 0"/><joint name="roll_{k}" axis="0 1 0"/>
          <geom type="capsule" size=".02" fromto="0 0 0 {_text(end)}" mass=".5"/>
          <body name="rod_{k}">
          <joint name="leg_{k}" type="slide" axis="{_text(along)}" range="-.1 .1"/>
          <geom type="capsule" size=".01" fromto="{_text(end)} {_text(tip)}" mass=".2"/>
          </body></body>"""
        equalities += f'<connect body1="rod_{k}" body2="platform" anchor="{_text(tip)}"/>'
    motors = "".join(f'<motor joint="leg_{k}"/>' for k in range(6))
    return f"""<mujoco model="stewart"><compiler angle="radian"/><worldbody>{legs}
      <body name="platform" pos="0 0 .5"><joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="rx" axis="1 0 0"/><joint name="ry" axis="0 1 0"/><joint name="rz" axis="0 0 1"/>
      <geom type="cylinder" size=".27 .01" mass="2"/></body></worldbody>
      <equality>{equalities}</equality><actuator>{motors}</actuator></mujoco>"""


def _text(vector):
    return " ".join(f"{number:.6f}" for number in vector)


def robots(folder, others):
    """Pictures of the page of each robot."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = six_robots(folder) | {n: [Path(f)] for n, f in (each.split("=", 1) for each in others)}
    for name, paths in chosen.items():
        with opened(*paths, size=(1100, 760)) as browser:
            browser.screenshot(folder / f"{name}.webp", quality=70)
        print(folder / f"{name}.webp", flush=True)


def main(names):
    if not names:
        draw_mathematics.main()
        write_drawing(load_robot(*LEG), PICTURES / "demo_leg.svg")
    pages = sorted(path.stem for path in BOOK.glob("*.urdf"))
    for name in names or ["demo_leg", *pages]:
        if name == "demo_leg":
            picture, size = PICTURES / "view_demo_leg.webp", (1100, 760)
            files = LEG
        else:
            files = [BOOK / f"{name}.urdf", BOOK / f"{name}.yaml"]
            picture, size = BOOK / f"{name}.webp", (900, 600)
            write_drawing(load_robot(*files), BOOK / f"{name}.svg")
        with opened(*files, size) as browser:
            if name == "demo_leg":
                bend_knee(browser)
            else:
                browser.evaluate(HIDE_PANEL)
            time.sleep(SETTLED)
            clip = None if name == "demo_leg" else (35, 80, 600, 420)
            browser.screenshot(picture, quality=70, clip=clip)
        print(picture.relative_to(ROOT), picture.stat().st_size)


def bend_knee(browser):
    """Move the knee, as a user would."""
    labels = "[...document.querySelectorAll('label')]"
    track = f"document.getElementById({labels}.find(l => l.textContent === 'knee [rad]').htmlFor)"
    browser.press(track, 0.4, "document.querySelector('#rbda-status').dataset.updates > 1")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=10, y=10)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--robots"]:
        robots(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(sys.argv[1:])
