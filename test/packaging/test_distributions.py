"""Uploaded files can be installed: the sdist has all sources, and wheels work without ROS too."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from setuptools import build_meta as b; print(b.build_{}(sys.argv[1]))"
SOURCES = ("CMakeLists.txt", "package.xml", "pyproject.toml", "setup.py", "LICENSE", "MANIFEST.in")
FOLDERS = ("cmake", "config", "launch", "msg", "rbda_ros", "srv", "tools")


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stderr + done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The sources, without what was built from them."""
    folder = tmp_path_factory.mktemp("source") / "rbda_ros"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*SOURCES, "README.md", "CHANGELOG.rst", "CONTRIBUTING.md"):
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    return folder


@pytest.fixture(scope="module")
def unpacked(source, tmp_path_factory):
    """Files of the sdist."""
    target = tmp_path_factory.mktemp("sdist")
    name = run(sys.executable, "-c", BUILD.format("sdist"), target, cwd=source).split()[-1]
    with tarfile.open(target / name) as archive:
        archive.extractall(target, filter="data")
    (folder,) = (path for path in target.iterdir() if path.is_dir())
    return folder


def test_the_sdist_has_all_sources(source, unpacked):
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    wanted = {path for path in wanted if not path.parts[0].endswith((".egg-info", "build"))}
    missing = {path for path in wanted if not (unpacked / path).is_file()}
    assert not missing


def fresh(folder):
    """An environment that has but Python in it; its Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


@pytest.mark.nightly
def test_a_wheel_made_from_the_sdist_serves(unpacked, tmp_path):
    name = run(sys.executable, "-c", BUILD.format("wheel"), tmp_path, cwd=unpacked).split()[-1]
    python = fresh(tmp_path / "environment")
    run(python, "-m", "pip", "install", "--no-deps", tmp_path / name)
    # The requirements are those of this environment: they were downloaded once.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    ours = Path(pytest.__file__).parents[1]
    (site / "ours.pth").write_text(f"{ours}\n")
    environment = os.environ | {"PYTHONPATH": ""}
    said = run(python, "-m", "rbda_ros.cli", "--version", env=environment, cwd=tmp_path)
    assert said.startswith("rbda_ros ")
    code = "import rbda_ros, rbda_ros.srv; print(rbda_ros.__path__[0])"
    where = run(python, "-c", code, env=environment, cwd=tmp_path)
    assert str(site) in where
    assert (tmp_path / "environment/share/rbda_ros/config/dynamics.yaml").is_file()
    assert (tmp_path / "environment/lib/rbda_ros/dynamics").is_file()


@pytest.mark.nightly
def test_without_ros_the_core_is_installed(unpacked, tmp_path):
    python = fresh(tmp_path / "environment")
    core = [
        "cmake<4",
        "ninja",
        "casadi",
        "lark",
        "llvmlite",
        "lxml",
        "numpy",
        "pyyaml",
        "rich",
        "scipy",
    ]
    run(python, "-m", "pip", "install", "setuptools>=77,<80", "wheel", *core)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AMENT", "PYTHON"))}
    pip = [python, "-m", "pip", "install", "-v", "--no-deps", "--no-build-isolation", unpacked]
    assert "only the core is installed" in run(*pip, env=environment)
    robots = tmp_path / "environment/share/rbda_ros/config/robots"
    command = [python, "-m", "rbda_ros.cli"]
    inspected = run(*command, "inspect", robots / "demo_leg.urdf", env=environment, cwd=tmp_path)
    assert "knee" in inspected
    run(python, ROOT / "tools" / "core_wheel_user.py", robots, env=environment, cwd=tmp_path)
    served = subprocess.run(
        [*command, "serve"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert served.returncode == 1
    assert "source a ROS 2 installation" in served.stderr
