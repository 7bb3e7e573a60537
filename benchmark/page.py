"""How often a second the page of `rbda_ros view` follows its sliders.

`python -m benchmark.page`. The page's process is bound to one core, the browser to another. Every
update moves all sliders, closes the loops, and draws and writes what changed; there are at most 60
a second. Counted are those that the server makes and those that reach the browser; the CPU of the
server per update tells how many one core could make if nothing else ran on it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from benchmark.limbs import limbs
from rbda_ros import load_robot
from rbda_ros.view.page import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import chromium

SECONDS = 10.0
MEASURED = (12, 30)  # sliders; 32 and 80 joints
COUNT = """new Promise(done => {
  const read = () => +document.querySelector('#rbda-status').dataset.updates;
  const first = read();
  let frames = 0;
  const frame = () => { frames += 1; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  setTimeout(() => done([read() - first, frames]), %d);
})"""
BY_VALUE = {"returnByValue": True, "awaitPromise": True}


def drive(page: Page, seconds: float) -> tuple[float, float]:
    """Move all sliders without a pause; updates a second, and CPU of this process each [ms]."""
    values = page.panel.values
    start, cpu, count = time.monotonic(), time.process_time(), 0
    while (now := time.monotonic() - start) < seconds:
        for k, (name, middle) in enumerate(values.items()):
            page.panel.slide(name, middle + 0.2 * np.sin(2.0 * now + k))
        page.step(0.0)
        count += 1
    return count / seconds, 1e3 * (time.process_time() - cpu) / count


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    browse = chromium.find() is not None and len(cores) > 1 and shutil.which("taskset")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    os.sched_setaffinity(0, {cores[0]})
    for measured in MEASURED:
        robot = load_robot(*limbs(measured))
        page = Page(robot)
        drive(page, 2.0)  # kernels are compiled meanwhile
        rate, cost = drive(page, SECONDS)
        joints = len(robot.joint_names)
        print(
            f"{joints} joints, {measured} sliders, no browser: {rate:.0f} updates/s,"
            f" {cost:.2f} ms of CPU each: {1e3 / cost:.0f} a second on a core of its own"
        )
        if browse:
            with chromium.Chromium((480, 360), ("taskset", "-c", str(cores[1]))) as browser:
                browser.open(page.url)
                browser.wait_for("document.querySelector('#rbda-status')")
                browser.send("Runtime.evaluate", expression=COUNT % (1e3 * SECONDS), **BY_VALUE)
                rate, cost = drive(page, SECONDS + 1.0)
                arrived, frames = browser.answer()["result"]["value"]
            print(
                f"{joints} joints, with a browser on the other core: {rate:.0f} updates/s,"
                f" {cost:.2f} ms of CPU each; {arrived / SECONDS:.0f} a second arrive in the"
                f" browser, which draws {frames / SECONDS:.0f} frames a second (software WebGL)"
            )
        page.close()


if __name__ == "__main__":
    main()
