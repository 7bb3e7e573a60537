"""Bundled files are found in the source tree, in a workspace and in a virtual environment."""

import sys

import pytest

from rbda_ros.demo import resources

FILE = "config/robots/some.urdf"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """As if the package were not in its source tree."""
    monkeypatch.setattr(resources, "__file__", str(tmp_path / "a" / "b" / "c" / "resources.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    return tmp_path


def put(folder):
    path = folder / "share" / "rbda_ros" / FILE
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_in_the_source_tree():
    assert resources.share_file("config/dynamics.yaml").is_file()


def test_in_a_virtual_environment(installed):
    path = put(installed / "venv")
    assert resources.share_file(FILE) == path


def test_in_a_workspace(installed, monkeypatch):
    put(installed / "venv")
    path = put(installed / "workspace")
    index = installed / "workspace" / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / "rbda_ros").touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(installed / "workspace"))
    assert resources.share_file(FILE) == path


def test_nowhere(installed):
    with pytest.raises(FileNotFoundError, match="reinstall"):
        resources.share_file(FILE)
