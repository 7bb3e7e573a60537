"""The parameter file and the reference keep up with the parameters."""

from dataclasses import fields

import reference
import yaml

from rbda_ros.demo.resources import share_file
from rbda_ros.node.parameters import DESCRIPTORS, MAPS, Settings


def test_the_parameter_file_has_every_parameter_with_its_default():
    (file,) = yaml.safe_load(share_file("config/dynamics.yaml").read_text()).values()
    defaults = {field.name: field.default for field in fields(Settings)}
    for name in (*MAPS, "end_effectors"):  # shown as comments: their names are those of a robot
        del defaults[name]
    for name, default in defaults.items():
        if isinstance(default, tuple):
            defaults[name] = list(default)
    assert file["ros__parameters"] == defaults


def test_the_parameter_file_can_be_used(graph):
    node = graph.serve("--params-file", str(share_file("config/dynamics.yaml")))
    client = graph.client()
    assert client.state == "unconfigured"
    assert "waiting for a robot_description" in node.log


def test_the_reference_has_every_parameter_with_its_description():
    page = reference.parameters()
    for field in fields(Settings):
        assert f"| `{field.name}` |" in page
        assert DESCRIPTORS[field.name].description
