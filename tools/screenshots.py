"""Draws the cookbook and the mathematics, and takes the pictures of the page: `make screenshots`.

screenshots.py NAME... takes only some: demo_leg, or pages of docs/cookbook.
screenshots.py --robots FOLDER [NAME=FILE ...] takes pictures of six robots, and of other files.
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import draw_mathematics
from chromium import Chromium

from rbda_ros import load_robot
from rbda_ros.cli.drawing import write_drawing

ROOT = Path(__file__).resolve().parents[1]
BOOK, PICTURES = ROOT / "docs" / "cookbook", ROOT / "docs" / "pictures"
LEG = [ROOT / "config" / "robots" / name for name in ("demo_leg.urdf", "demo_leg_loops.yaml")]
SETTLED = 4.0  # [s] until the picture stands still, with software WebGL
CLOSE_NOTICE = "document.querySelector('.mantine-Notification-closeButton')?.click()"
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
                yield browser
        finally:
            process.terminate()


def six_robots():
    """Files of the robots that the viewer is looked at with: with loops, many joints, a hand."""
    from example_robot_data.robots_loader import getModelPath

    found = {"demo_leg": LEG}
    found |= {n: [BOOK / f"{n}.urdf", BOOK / f"{n}.yaml"] for n in ("parallel_ankle", "delta")}
    described = {
        "talos": "talos_data/robots/talos_reduced.urdf",
        "allegro_hand": "allegro_hand_description/urdf/allegro_right_hand.urdf",
        "solo12": "solo_description/robots/solo12.urdf",
    }
    return found | {name: [Path(getModelPath(at), at)] for name, at in described.items()}


def robots(folder, others):
    """Pictures of the page of each robot."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = six_robots() | {n: [Path(f)] for n, f in (each.split("=", 1) for each in others)}
    for name, files in chosen.items():
        with opened(*files, size=(1100, 760)) as browser:
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
