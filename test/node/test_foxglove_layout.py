"""The layout for Foxglove against a running node: topics, fields, joints and frames there are."""

import json
import re
from importlib import import_module

from rbda_ros.demo.resources import share_file

LAYOUT = json.loads(share_file("config/foxglove/dynamics.json").read_text())
DRIVEN = ("hip_abduction", "hip_flexion", "knee", "ankle")
"""Joints in the order of the demo's stand-in for a driver."""


def message_type(name):
    """The class of a type such as sensor_msgs/msg/JointState."""
    package, _, kind = name.split("/")
    return getattr(import_module(f"{package}.msg"), kind)


def panels(kind):
    found = [panel for name, panel in LAYOUT["configById"].items() if name.startswith(f"{kind}!")]
    assert found
    return found


def test_plots_show_fields_of_topics_and_the_joints_they_say(leg):
    client, _, robot = leg
    topics = dict(client.node.get_topic_names_and_types())
    joints = {"/dynamics/feedforward": robot.actuated_joint_names, "/joint_states": DRIVEN}
    paths = [(path["value"], path["label"]) for plot in panels("Plot") for path in plot["paths"]]
    assert len(paths) == 12
    for value, label in paths:
        topic, field, place = re.fullmatch(r"(/[\w/]+)\.(\w+)\[(\d+)\]", value).groups()
        (kind,) = topics[topic]
        assert field in message_type(kind).get_fields_and_field_types()
        assert joints[topic][int(place)] == label


def test_the_other_panels_show_topics_and_links_that_there_are(leg):
    client, _, robot = leg
    topics = dict(client.node.get_topic_names_and_types())
    (summary,), (names,), (view,) = map(panels, ("DiagnosticSummary", "RawMessages", "3D"))
    assert topics[summary["topicToRender"]] == ["diagnostic_msgs/msg/DiagnosticArray"]
    topic, field = names["topicPath"].removesuffix("[:]").split(".")
    assert field in message_type(topics[topic][0]).get_fields_and_field_types()
    (urdf,) = view["layers"].values()
    assert topics[urdf["topic"]] == ["std_msgs/msg/String"]
    assert view["followTf"] == robot.description.root


def test_every_panel_is_laid_out():
    def leaves(node):
        return {node} if isinstance(node, str) else leaves(node["first"]) | leaves(node["second"])

    assert leaves(LAYOUT["layout"]) == set(LAYOUT["configById"])
