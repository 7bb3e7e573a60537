"""How often a second the page of `rbda_ros view` follows a robot that moves.

`python -m benchmark.page`. The page's process is bound to one core, the browser to another. A robot
whose every joint moves is shown 60 times a second, as where the page follows a node. Counted are
updates that the server made, updates that have arrived in the page, and pictures that the page drew
of them, each of the newest update. Beside it, in the same browser and the same size, a scene of
viser's with a single empty node that moves 60 times a second: what the browser, with software
WebGL, can do at best.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.limbs import limbs
from rbda_ros import Robot, load_robot
from rbda_ros.view.following import Received
from rbda_ros.view.page import FRAME, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import chromium

SECONDS = 10.0
SETTLED = 8.0  # [s] of moving pictures, until the browser has compiled its shaders
MEASURED = (12, 30)  # joints that are measured; 32 and 80 joints
SIZE = (640, 480)
WATCH = """(() => {
  window.rbda = {pictures: 0};
  let drawn = false;
  const clear = WebGL2RenderingContext.prototype.clear;
  WebGL2RenderingContext.prototype.clear = function (mask) {
    drawn = true;  // every picture begins with it
    return clear.call(this, mask);
  };
  const frame = () => {
    if (drawn) rbda.pictures += 1;
    drawn = false;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})()"""
READ = "[rbda.pictures, +(document.querySelector('#rbda-status')?.dataset.updates ?? 0)]"


@contextmanager
def moving(show: Callable[[int], None]) -> Iterator[list[float]]:
    """Show one picture after the other, 60 a second, beside; how many, and the CPU of it [s]."""
    count, stop = [0.0, 0.0], threading.Event()

    def run() -> None:
        due = time.monotonic()
        while not stop.is_set():
            begin = time.thread_time()
            show(int(count[0]))
            count[0] += 1.0
            count[1] += time.thread_time() - begin
            due = max(due + FRAME, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def swings(robot: Robot) -> list[Received]:
    """Messages of a node about a robot whose joints all swing, for about three seconds."""
    names = robot.independent_joint_names
    middle = {name: robot.tree.home[robot.coordinates.scalar_positions[name]] for name in names}
    efforts = dict.fromkeys(robot.actuated_joint_names, 0.1)
    heard = []
    for now in np.arange(0.0, np.pi, FRAME):
        y = {n: at + 0.2 * np.sin(2.0 * now + k) for k, (n, at) in enumerate(middle.items())}
        positions = dict(zip(robot.joint_names, robot.close(y), strict=True))
        heard.append(Received(positions, True, None, efforts, 0, "ok", {"rate [Hz]": "500"}))
    return heard


def measured(url: str, count: list[float], core: int) -> str:
    """How fast a browser on one core draws it."""
    with chromium.Chromium(SIZE, ("taskset", "-c", str(core))) as browser:
        browser.open(url)
        browser.wait_for("document.querySelector('canvas')")
        browser.evaluate(WATCH)
        time.sleep(SETTLED)
        begin, first, cpu = browser.evaluate(READ), count[0], count[1]
        start = time.monotonic()
        time.sleep(SECONDS)
        end, made = browser.evaluate(READ), count[0] - first
        took = time.monotonic() - start
        pictures, arrived = ((b - a) / took for a, b in zip(begin, end, strict=True))
    text = f"{made / took:.0f} updates/s of {1e3 * (count[1] - cpu) / made:.1f} ms each made"
    if arrived:
        text += f", {arrived:.0f}/s arrived in the page"
    return f"{text}; {pictures:.0f} pictures/s drawn"


def main() -> None:
    import viser

    cores = sorted(os.sched_getaffinity(0))
    if chromium.find() is None or len(cores) < 2 or not shutil.which("taskset"):
        raise SystemExit("needs chromium, taskset and two cores")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; window {SIZE[0]} x {SIZE[1]}")
    os.sched_setaffinity(0, {cores[0]})
    with redirect_stdout(io.StringIO()):
        server: Any = viser.ViserServer("127.0.0.1", 8490, verbose=False)
    node = server.scene.add_frame("/node", show_axes=False)

    def move(k: int) -> None:
        node.position = (0.0, 0.0, 1e-3 * (k % 100))

    with moving(move) as count:
        print(f"empty scene: {measured('http://127.0.0.1:8490', count, cores[1])}", flush=True)
    with redirect_stdout(io.StringIO()):
        server.stop()
    for joints in MEASURED:
        robot = load_robot(*limbs(joints))
        page = Page(robot, moves=False)
        heard = swings(robot)

        def show(k: int, page: Page = page, heard: list[Received] = heard) -> None:
            page.follow(heard[k % len(heard)])
            page.step(0.0)

        with moving(show) as count:
            print(f"{len(robot.joint_names)} joints: {measured(page.url, count, cores[1])}")
        page.close()


if __name__ == "__main__":
    main()
