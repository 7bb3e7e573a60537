"""Metadata in package.xml, CITATION.cff and pyproject.toml is complete and agrees."""

import ast
import re
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ElementTree.parse(ROOT / "package.xml").getroot()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ROSDEP = {  # rosdep key of each Python module that is not a ROS package
    "casadi": "casadi-pip",
    "lark": "python3-lark-parser",
    "llvmlite": "python3-numba",
    "lxml": "python3-lxml",
    "numpy": "python3-numpy",
    "rich": "python3-rich",
    "scipy": "python3-scipy",
    "yaml": "python3-yaml",
}
EXTRAS = ("dask", "distributed", "fsspec", "matplotlib", "mujoco", "pyarrow", "rosbags", "trimesh")
EXTRAS += ("collada", "torch", "jax", "viser", "websockets", "gymnasium", "pxr", "pygraphviz")
BUILT = ("rbda_ros", "_rclpy_pybind11", "rosidl_generator_py", "rosidl_parser")  # ours, or rclpy's


def imported_modules():
    """Top-level modules that the package and its launch files import."""
    for path in (*(ROOT / "rbda_ros").rglob("*.py"), *(ROOT / "launch").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_package_xml_names_everything_that_is_imported():
    kinds = ("depend", "exec_depend")
    named = {element.text for kind in kinds for element in PACKAGE.iter(kind)}
    needed = set(imported_modules()) - sys.stdlib_module_names - {*EXTRAS, *BUILT}
    missing = {ROSDEP.get(module, module) for module in needed} - named
    assert not missing


def test_package_xml_has_addresses_and_test_dependencies():
    assert {url.get("type") for url in PACKAGE.iter("url")} == {
        "website",
        "repository",
        "bugtracker",
    }
    assert "python3-pytest" in {element.text for element in PACKAGE.iter("test_depend")}


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] == PACKAGE.find("version").text
    assert citation["license"] == PROJECT["license"] == PACKAGE.find("license").text


def test_optional_dependencies_are_bounded():
    for extra, requirements in PROJECT["optional-dependencies"].items():
        if extra != "colcon":  # whose parts follow colcon-core
            for requirement in requirements:
                assert re.search(r"<|==", requirement), f"{extra}: {requirement}"
