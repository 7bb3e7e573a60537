"""Builds wheels for every supported Python and runs the tutorial with each: `make wheels`.

wheels.py [PYTHON ...] takes only some Pythons, as versions or paths. Versions are looked up by uv
and in pyenv; those that are not installed are named and left out. wheels.py --core leaves out the
node.

dist/core has wheels without ROS, dist/node those with the node, for Linux on x86-64. Each is
installed into an empty environment, where the commands of docs/fifteen_minutes.md are run.
"""

import argparse
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from printed_commands import script

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "fifteen_minutes.md"
VERSIONS = ("3.11", "3.12", "3.13")
OURS = "AMENT", "LD_LIBRARY_PATH", "PYTHON", "_ROS_WHEELS"
"""Variables that would lead to libraries of the environment that this script runs in."""
NEEDS_ROS = ("serve", "examples", "view", "kill")
UV = Path(sys.prefix) / "bin" / "uv"


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def sources(folder, core):
    """A copy of what git knows; for the core without ROS, and with a version that says so."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    if core:
        settings = folder / "pyproject.toml"
        text = re.sub(r'^  "ros-.*\n', "", settings.read_text(), flags=re.MULTILINE)
        settings.write_text(re.sub(r'^(version = "[\d.]+)"', r'\1+core"', text, flags=re.MULTILINE))


def build(version, core):
    """Build a wheel; its path."""
    target = ROOT / "dist" / ("core" if core else "node")
    with tempfile.TemporaryDirectory() as folder:
        sources(Path(folder), core)
        environment = os.environ | ({"RBDA_ROS_CORE": "1"} if core else {})
        command = [UV, "build", "--wheel", "--python", version, "--out-dir", target, folder]
        run(*command, env=environment)
    return max(target.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def interpreter(version):
    """Path of such a Python, from uv or from pyenv (whose shims fail unless it is selected)."""
    find = [UV, "python", "find", "--no-python-downloads", version]
    found = subprocess.run(find, capture_output=True, text=True)
    if found.returncode == 0:
        return found.stdout.strip()
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    pythons = sorted(root.glob(f"versions/{version}.*/bin/python"))
    if pythons:
        return str(pythons[-1])
    print(f"Python {version} is not installed: no wheels for it; a path may be given instead")
    return None


def use(wheel, version, core):
    """Install the wheel into an empty environment and run the tutorial there."""
    with tempfile.TemporaryDirectory() as folder:
        run(UV, "venv", "-q", "--python", version, Path(folder, ".venv"))
        extra = "" if core else "[view]"
        python = Path(folder, ".venv", "bin", "python")
        run(UV, "pip", "install", "-q", "--python", python, f"{wheel}{extra}")
        shutil.copytree(ROOT / "docs" / "cookbook", Path(folder, "docs", "cookbook"))
        clean = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        clean |= {"ROS_DOMAIN_ID": str(random.randint(102, 200))}
        clean |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        end_all = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
        commands = end_all + script(TUTORIAL, without=NEEDS_ROS if core else ())
        run("bash", "-c", commands, cwd=folder, env=clean)
    print(f"{wheel.relative_to(ROOT)}: the tutorial runs with Python {version}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="PYTHON")
    parser.add_argument("--core", action="store_true", help="only wheels without the node")
    given = parser.parse_args()
    with_node = not given.core and (sys.platform, platform.machine()) == ("linux", "x86_64")
    found = [python for version in given.versions if (python := interpreter(version))]
    for python in found:
        for core in (True, False) if with_node else (True,):
            use(build(python, core), python, core)
    if not found:
        sys.exit("no Python was found")


if __name__ == "__main__":
    main()
