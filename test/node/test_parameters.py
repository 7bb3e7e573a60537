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


def test_misspelled_parameters_are_warned_of(graph):
    """ROS ignores what no node declares; names of other nodes are none of ours."""
    given = {"efort_rate_limit": 5.0, "gain.knee.stiffness": 3.0, "publish_frequency": 50.0}
    node = graph.serve(use_sim_time=False, robot_base="x", **given)
    assert graph.client().state == "unconfigured"
    assert "efort_rate_limit is unknown and ignored; did you mean effort_rate_limit?" in node.log
    assert "gain.knee.stiffness is unknown and ignored; did you mean gains.knee" in node.log
    assert "publish_frequency" not in node.log and "robot_base" not in node.log


def test_the_reference_has_every_parameter_with_its_description():
    page = reference.parameters()
    for field in fields(Settings):
        assert f"| `{field.name}` |" in page
        assert DESCRIPTORS[field.name].description
