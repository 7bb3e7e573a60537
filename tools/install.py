"""Brings .venv up to date with the source: `make install`, for another ROS with DISTRO=kilted.

With --requirements, all but the package itself.

Does nothing where nothing changed: the environment remembers what it was made from. All versions
come from pyproject.toml. What would make it fail later is said before anything is downloaded.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - whoever starts this may have an older one
    sys.exit(f"rbda_ros needs Python 3.11, this is {sys.version.split()[0]}. Use make PYTHON=...")

import tomllib

from step import run_step

ROOT = Path(__file__).resolve().parents[1]
DISTRO = os.environ.get("DISTRO") or "jazzy"
VENV = ROOT / (".venv" if DISTRO == "jazzy" else f".venv-{DISTRO}")
PYTHON = VENV / "bin" / "python"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
STEP = "--step"
"""Has this program install the requirements: a step of its own, with a log."""
TOO_LARGE = ("torch",)
"""Extras that are left out: the registry's PyTorch brings gigabytes of CUDA. Its tests run where a
build for the CPU was installed by hand, and are skipped elsewhere."""
PACKAGE_SOURCES = ("CMakeLists.txt", "package.xml", "pyproject.toml", "setup.py")
# Without bytecode of all that is installed, most of which is never imported: half the time. What
# is imported gets its own from bytecode.py.
PIP = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
PACKAGE_FOLDERS = ("cmake", "config", "launch", "msg", "rbda_ros", "srv")


def requirements(distro):
    """Everything that building, running, testing and checking needs with a ROS distribution."""
    project = SETTINGS["project"]
    offered = project["optional-dependencies"]
    extras = [wanted for name, wanted in offered.items() if name not in TOO_LARGE]
    wanted = {*SETTINGS["build-system"]["requires"], *project["dependencies"]}.union(*extras)
    if distro != "jazzy":
        others = SETTINGS["tool"]["rbda_ros"]["distributions"]
        if distro not in others:
            sys.exit(f"DISTRO={distro}: there are jazzy, {', '.join(others)}.")
        wanted = {each for each in wanted if not each.startswith("ros-")} | {*others[distro]}
    return sorted(wanted)


def missing():
    """Why the installation must fail on this machine; None if it need not."""
    for name, variable in (("C", "CC"), ("C++", "CXX")):
        compiler = os.environ.get(variable) or {"CC": "cc", "CXX": "c++"}[variable]
        if shutil.which(compiler.split()[0]) is None:
            return f"there is no {name} compiler ({compiler}); install one, or set {variable}"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return f"Python {sysconfig.get_python_version()} has no headers; install python3-dev"
    if importlib.util.find_spec("ensurepip") is None:
        return "Python has no ensurepip; install python3-venv"
    if not str(ROOT).isascii():
        return f"the path {ROOT} is not ASCII, which rosidl cannot handle; move the folder"
    if not os.access(ROOT, os.W_OK):
        return f"the folder {ROOT} cannot be written to"
    return None


def package_digest():
    """Fingerprint of the files that the installed package is made from."""
    files = [ROOT / name for name in PACKAGE_SOURCES]
    for folder in PACKAGE_FOLDERS:
        files += (path for path in (ROOT / folder).rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in sorted(files):
        if "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def bring_up_to_date(part, wanted, *steps):
    """Run the steps unless the part was last made from what is wanted now."""
    stamp = VENV / f"made_from_{part}.txt"
    if is_made_from(stamp, wanted):
        return
    with one_at_a_time():
        if is_made_from(stamp, wanted):
            return
        stamp.unlink(missing_ok=True)
        for name, title, command in steps:
            if code := run_step(name, title, command):
                sys.exit(code)
        stamp.write_text(wanted)


def is_made_from(stamp, wanted):
    return stamp.is_file() and stamp.read_text() == wanted


@contextmanager
def one_at_a_time():
    """Two would mix their files in the environment."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install_requirements(wanted):
    """Install with uv, in a quarter of the time; where it cannot, with pip, which knows more ways.

    uv does not read pip's configuration: it is told of another index, and no more.
    """
    if subprocess.run([*PIP, "-q", SETTINGS["tool"]["rbda_ros"]["installer"]]).returncode == 0:
        env = os.environ.copy()
        config = [PYTHON, "-m", "pip", "config", "list"]
        found = subprocess.run(config, capture_output=True, text=True).stdout
        if index := re.search(r"^[^=]*\.index-url='(.*)'$", found, re.M):
            env.setdefault("UV_DEFAULT_INDEX", index[1])
        uv = [VENV / "bin" / "uv", "pip", "install", "--native-tls", "--python", PYTHON]
        if subprocess.run([*uv, *wanted], env=env).returncode == 0:
            return 0
    return subprocess.run([*PIP, *wanted]).returncode


def main(with_package):
    # An environment cannot be moved, nor used with another Python; nor can what was built with it.
    identity = f"{VENV}\n{sys.base_prefix}\n{sys.version}\n"
    stamp = VENV / "made_from_python.txt"
    if VENV.exists() and not is_made_from(stamp, identity):
        with one_at_a_time():
            if not is_made_from(stamp, identity):
                shutil.rmtree(VENV, ignore_errors=True)
                shutil.rmtree(ROOT / "build" / "colcon", ignore_errors=True)
    bring_up_to_date(
        "python",
        identity,
        ("venv", "Creating .venv", [sys.executable, "-m", "venv", VENV]),
    )
    wanted = requirements(DISTRO)
    bring_up_to_date(
        "requirements",
        "\n".join(wanted),
        (
            "requirements",
            "Installing ROS and the other requirements",
            [sys.executable, __file__, STEP],
        ),
    )
    if with_package:
        bring_up_to_date(
            "package",
            package_digest(),
            (
                "package",
                "Building and installing rbda_ros",
                [*PIP, "--no-build-isolation", "--no-deps", ROOT],
            ),
            (
                "bytecode",
                "Compiling what is imported",
                [PYTHON, ROOT / "tools" / "bytecode.py"],
            ),
        )


if __name__ == "__main__":
    if sys.argv[1:] == [STEP]:
        sys.exit(install_requirements(requirements(DISTRO)))
    if lacking := missing():
        sys.exit(f"rbda_ros cannot be installed: {lacking}.")
    main(with_package="--requirements" not in sys.argv[1:])
