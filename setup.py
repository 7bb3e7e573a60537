"""`pip install .`: runs CMake for the generated interfaces, then packs what CMake installs.

CMakeLists.txt decides what is installed and where, here as under colcon. The Python package goes
into site-packages; `lib`, `share` and `include` go into the prefix of the environment, where
the ROS wheels of PyPI keep theirs. Everything else about the distribution is in pyproject.toml.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


CORE_ALONE = (
    "rbda_ros: no ROS here: only the core is installed (load_robot, inspect, check, convert, "
    "export-c). The node needs a sourced ROS 2, or its wheels, for Linux on x86-64."
)


def ros_prefixes():
    """Where ROS is installed: a sourced ROS, or the prefix of the wheels; none without it.

    With RBDA_ROS_CORE=1 in the environment there is none: that makes a wheel of the core.
    """
    if os.environ.get("RBDA_ROS_CORE", "0") == "1":
        return []
    if sourced := os.environ.get("AMENT_PREFIX_PATH"):
        return [Path(prefix) for prefix in sourced.split(os.pathsep)]
    try:
        import ament_package
    except ModuleNotFoundError:
        return []

    # prefix/lib/python3.x/site-packages/ament_package/__init__.py
    return [Path(ament_package.__file__).resolve().parents[4]]


def environment(prefixes):
    """The caller's environment with ROS, CMake and Ninja in it."""
    import cmake
    import ninja

    return os.environ | {
        "AMENT_PREFIX_PATH": os.pathsep.join(map(str, prefixes)),
        "CMAKE_PREFIX_PATH": os.pathsep.join(map(str, prefixes)),
        "PATH": os.pathsep.join([cmake.CMAKE_BIN_DIR, ninja.BIN_DIR, os.environ["PATH"]]),
    }


def run_cmake(env, *arguments):
    """Run CMake; on failure end with what it printed, without a Python traceback."""
    if subprocess.run(["cmake", *arguments], env=env).returncode != 0:
        sys.exit(f"cmake {arguments[0]} failed")


class BuildWithCMake(build_py):
    """Installs with CMake into a staging folder, and takes the package from there."""

    def run(self):
        prefixes = ros_prefixes()
        if prefixes:
            stage = self.install_to_stage(prefixes)
            (package,) = stage.glob("lib/python3*/site-packages/rbda_ros")
        else:
            print(CORE_ALONE, file=sys.stderr)
            stage, package = self.stage_core(), HERE / "rbda_ros"
        self.take_python_package(package)
        if not prefixes:
            self.add_engine()
        self.distribution.data_files = list(prefix_files(stage))

    def stage_core(self):
        """What CMake would install beside the package, without ROS."""
        stage = HERE / "build" / "core" / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        for folder in ("config", "launch"):
            shutil.copytree(HERE / folder, stage / "share" / "rbda_ros" / folder)
        return stage

    def add_engine(self):
        """Build the engine, without ROS."""
        folder = HERE / "build" / "core" / f"cp{sys.version_info.major}{sys.version_info.minor}"
        shutil.rmtree(folder, ignore_errors=True)  # it holds absolute paths of an environment
        env = environment([])
        run_cmake(
            env,
            f"-S{HERE}",
            f"-B{folder}",
            "-GNinja",
            "-DCMAKE_BUILD_TYPE=Release",
            "-DRBDA_ROS_CORE=ON",
            f"-DPython3_EXECUTABLE={sys.executable}",
        )
        run_cmake(env, "--build", folder)
        run_cmake(env, "--install", folder, "--prefix", self.build_lib)

    def install_to_stage(self, prefixes):
        env = environment(prefixes)
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
        folder = HERE / "build" / f"cmake-{tag}"
        stage = folder / "stage"

        # The folder is kept, so that a second build takes seconds; but it holds absolute paths, so
        # only for the same Python and the same ROS.
        belongs_to = "\n".join(map(str, [sys.executable, *prefixes, HERE]))
        owner = folder / "belongs_to.txt"
        if not owner.is_file() or owner.read_text() != belongs_to:
            shutil.rmtree(folder, ignore_errors=True)
            run_cmake(
                env,
                f"-S{HERE}",
                f"-B{folder}",
                "-GNinja",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DBUILD_TESTING=OFF",
                f"-DCMAKE_PROJECT_INCLUDE={HERE / 'cmake' / 'ros_wheels.cmake'}",
                f"-DPython3_EXECUTABLE={sys.executable}",
                "-DRBDA_ROS_WHEEL=ON",
                "-DRBDA_ROS_CPP=OFF",
            )
            owner.write_text(belongs_to)
        run_cmake(env, "--build", folder)
        shutil.rmtree(stage, ignore_errors=True)
        run_cmake(env, "--install", folder, "--prefix", stage)
        return stage

    def take_python_package(self, package):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        shutil.copytree(
            package,
            Path(self.build_lib) / "rbda_ros",
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    def get_outputs(self, include_bytecode=True):
        return [str(path) for path in Path(self.build_lib).rglob("*") if path.is_file()]

    def get_source_files(self):
        return []


def prefix_files(stage):
    """What goes into the prefix: pairs (folder, files), as setuptools wants them."""
    for folder, _, names in os.walk(stage):
        relative = Path(folder).relative_to(stage)
        # Not the Python package, nor the note of where its dependencies were at build time.
        if "site-packages" in relative.parts or "parent_prefix_path" in relative.parts:
            continue
        if names:
            sources = [os.path.relpath(Path(folder, name), HERE) for name in sorted(names)]
            yield str(relative), sources


class BinaryDistribution(Distribution):
    """A distribution for one Python and one platform, as the engine is compiled."""

    def has_ext_modules(self):
        return True


setup(
    packages=["rbda_ros"],
    cmdclass={"build_py": BuildWithCMake},
    distclass=BinaryDistribution,
)
