"""How soon a robot answers: from its text, with what was stored on disk before and without.

Each start is a process of its own, as users start one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml

from benchmark.limbs import limbs
from benchmark.processes import program
from benchmark.robots import example_urdf
from rbda_ros import load_robot

Row = dict[str, object]
JOINTS = 30
PATIENCE = 120.0  # seconds


def rows() -> Iterator[Row]:
    """Seconds to first answers; of the node, from the start of its process, until it is active.

    The node is loaded once it is configured, and answers once it is active.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a first start stores it
    for name in ("talos_reduced", f"{JOINTS} joints with loops"):
        with tempfile.TemporaryDirectory() as cache:
            for stored in (False, True):
                yield {"robot": name, "stored": stored} | _library(name, cache)
    with tempfile.TemporaryDirectory() as cache:
        for stored in (False, True):
            active = _node(Path(cache))
            yield {"robot": f"{JOINTS} joints with loops, the node", "stored": stored} | active


def robot_of(name: str) -> tuple[str, object, bool]:
    """URDF, loops, and whether the base floats."""
    if name == "talos_reduced":
        return str(example_urdf(name)), None, True
    return *limbs(JOINTS), False


def answer(name: str) -> Row:
    """Times from `load_robot` on [s]: until an answer, and until one from machine code."""
    urdf, loops, floating = robot_of(name)
    began = time.perf_counter()
    robot = load_robot(urdf, loops, floating_base=floating)
    loaded = time.perf_counter()
    y = np.zeros(robot.ny)
    robot.inverse_dynamics(robot.tree.home, y, y)
    answered = time.perf_counter()
    for kernel in ("loop_state", "inverse_dynamics"):
        robot.kernel(kernel).compile()
    robot.inverse_dynamics(robot.tree.home, y, y)
    compiled = time.perf_counter()
    for kernel in ("forward_dynamics", "mass_matrix", "inverse_dynamics_derivatives"):
        robot.kernel(kernel).compile()
    everything = time.perf_counter()
    return {
        "loaded_s": loaded - began,
        "answered_s": answered - began,
        "compiled_s": compiled - began,
        "derivatives_s": everything - began,
    }


def _library(name: str, cache: str) -> Row:
    command = [sys.executable, "-m", "benchmark.start", name]
    environment = os.environ | {"RBDA_ROS_CACHE": cache}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: Row = json.loads(done.stdout)
    return found


def _node(folder: Path) -> Row:
    """Times from the start of the process to what its log says [s]."""
    urdf, loops, _ = robot_of("")
    values = {"robot_description": urdf, "loop_constraints": yaml.safe_dump(loops)}
    parameters = folder / "parameters.yaml"
    parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    cache = folder / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    os.environ["RBDA_ROS_CACHE"] = str(cache)
    began = time.perf_counter()
    try:
        with program(
            folder, "rbda_ros.cli", "serve", "--ros-args", "--params-file", str(parameters)
        ):
            times = [_said(folder, text, began) for text in (b"configured for", b"active:")]
            _until_stored(cache)
    finally:
        del os.environ["RBDA_ROS_CACHE"]
    return {"loaded_s": times[0], "answered_s": times[1], "compiled_s": None, "derivatives_s": None}


def _until_stored(cache: Path) -> None:
    """Wait until no more kernels are being compiled in the background."""
    count = -1
    while count != len(list(cache.iterdir())):
        count = len(list(cache.iterdir()))
        time.sleep(5.0)


def _said(folder: Path, text: bytes, began: float) -> float:
    log = folder / "rbda_ros.cli.log"
    while text not in log.read_bytes():
        if time.perf_counter() - began > PATIENCE:
            raise TimeoutError(f"the node never said {text.decode()!r}")
        time.sleep(0.005)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1])))
