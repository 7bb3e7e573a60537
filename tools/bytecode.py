"""Writes the bytecode of what the node, the commands and the tests import.

Python compiles a module each time where it may not store the outcome (`PYTHONDONTWRITEBYTECODE`,
a folder of somebody else), and a node imports 600 of them: more than half of its start. Of what
is installed only what is imported: all of it would take longer than it ever saves.
"""

import compileall
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    "rbda_ros.node.main",
    "rbda_ros.kernels.machine",
    "rosidl_generator_py",
    "type_description_interfaces.msg",
    "numpy.random",
    "example_robot_data",
    "hypothesis.strategies",
    "mujoco",
    "pinocchio",
    "pytest",
    "scipy.optimize",
    "scipy.spatial.transform",
    "xdist.remote",
)


def main():
    sys.dont_write_bytecode = False
    for name in IMPORTED:
        with suppress(ImportError):  # what is missing is not for this to say
            import_module(name)
    installed = find_spec("rbda_ros").submodule_search_locations
    for folder in {*map(Path, installed), ROOT / "rbda_ros", ROOT / "benchmark"}:
        compileall.compile_dir(folder, quiet=2)


if __name__ == "__main__":
    main()
