"""The launch files, where launch is installed (it is not on PyPI)."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from rbda_ros.node.resources import share_file

pytest.importorskip("launch_ros")


@pytest.mark.parametrize("name", ["dynamics", "demo"])
def test_launch_file_describes_something(name):
    spec = spec_from_file_location(name, share_file(f"launch/{name}.launch.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.generate_launch_description().entities
