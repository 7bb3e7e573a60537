"""Install a wheel of the core into an empty environment, and use it there: `make core-wheel`."""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    (wheel,) = Path(sys.argv[1]).glob("rbda_ros-*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = [each for each in project["dependencies"] if not each.startswith("ros-")]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        pip = [python, "-m", "pip", "install", "-q"]
        # What ROS needs is left out: that is the point.
        subprocess.run([*pip, *core], check=True)
        subprocess.run([*pip, "--no-deps", wheel.resolve()], check=True)
        robots = Path(folder) / "share" / "rbda_ros" / "config" / "robots"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AMENT", "PYTHON"))}
        command = [python, ROOT / "tools" / "core_wheel_user.py", robots]
        subprocess.run(command, check=True, cwd=folder, env=clean)


if __name__ == "__main__":
    main()
