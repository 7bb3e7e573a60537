"""Draws the gallery of docs/robots.md: robots that other people made, from their checkouts.

    python tools/draw_robots.py mujoco_menagerie=PATH example-parallel-robots=PATH ...

Each argument names a repository and where it lies. For each of its robots: docs/robots/<name>.svg,
and a row of the gallery on the terminal. Their files stay where they are.
"""

import sys
import time
from pathlib import Path

from rbda_ros import load_robot
from rbda_ros.cli.inspection import write_drawing

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "robots"
MENAGERIE = (
    "agility_cassie/cassie", "robotiq_2f85/2f85", "robotiq_2f85_v4/2f85", "ufactory_xarm7/xarm7",
    "pal_talos/talos", "iit_softfoot/softfoot", "unitree_g1/g1", "toddlerbot_2xc/toddlerbot_2xc",
    "hello_robot_stretch_3/stretch", "stanford_tidybot/tidybot",
    "apptronik_apollo/apptronik_apollo", "tetheria_aero_hand_open/right_hand",
    "ms_human_700/MS-Human-700-Locomotion",
)  # fmt: skip
GEPETTO = (
    "5bar_linkage", "battobot_6d", "cassie_like", "digit_like_2legs", "disney_robot",
    "robot_delta", "talos_like", "wl16_like",
)  # fmt: skip
ROBOTS = {
    "mujoco_menagerie": [(name.split("/")[0], f"{name}.xml", None) for name in MENAGERIE],
    "example-parallel-robots": [
        (name, f"robots/{name}/robot.urdf", f"robots/{name}/robot.yaml") for name in GEPETTO
    ],
    "pal_mjlab": [("pal_kangaroo", "src/pal_mjlab/robots/pal_kangaroo/xmls/kangaroo.xml", None)],
    "DigitGaitTracking": [("digit-v3", "models/digit-v3.xml", None)],
}


def main():
    GALLERY.mkdir(exist_ok=True)
    for argument in sys.argv[1:]:
        repository, _, folder = argument.partition("=")
        for name, model, loops in ROBOTS[repository]:
            start = time.perf_counter()
            robot = load_robot(Path(folder, model), loops and Path(folder, loops))
            took = time.perf_counter() - start
            write_drawing(robot, GALLERY / f"{name}.svg")
            sizes = f"{robot.nv} / {robot.ny} | {len(robot.clusters)} | {took:.1f}"
            print(f"| [{name}](robots/{name}.svg) | {repository} | {sizes} |", flush=True)


if __name__ == "__main__":
    main()
