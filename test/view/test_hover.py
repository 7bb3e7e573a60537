"""The body under the pointer, and the page that asks for it."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest

from rbda_ros import load_robot
from rbda_ros.view import hover
from rbda_ros.view.posing import Poser
from rbda_ros.view.shapes import shapes_of

LEG = "config/robots/demo_leg.urdf", "config/robots/demo_leg_loops.yaml"


@pytest.fixture(scope="module")
def leg():
    robot = load_robot(*LEG)
    poser = Poser(robot)
    shapes, _, _ = shapes_of(robot, LEG[0])
    return robot, shapes, poser.body_poses(poser.start)


def test_the_nearest_body_is_found(leg):
    """Rays from far outside to the vertices of a body end on it, or on something before it."""
    _, shapes, poses = leg
    rng = np.random.default_rng(2)
    for shape in shapes[:12]:
        R, p = (np.eye(3), np.zeros(3))
        if shape.body:
            R, p = poses[0][shape.body - 1], poses[1][shape.body - 1]
        centre = shape.vertices.mean(axis=0) @ R.T + p
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        found = hover.hit((centre - 5.0 * way, way), shapes, *poses)
        assert found is not None
        body, place = found
        assert np.linalg.norm(np.cross(place - centre, way)) < 1e-9  # on the ray
        assert (place - centre) @ way <= 1e-9  # on this side of the middle of the shape
        assert body == shape.body or (place - centre) @ way < 0.0


def test_beside_the_robot_there_is_nothing(leg):
    _, shapes, poses = leg
    up = np.array([0.0, 0.0, 1.0])
    assert hover.hit((np.array([50.0, 0.0, -5.0]), up), shapes, *poses) is None
    assert hover.hit((np.array([0.0, 0.0, 50.0]), up), shapes, *poses) is None  # behind it


def test_labels_name_link_joint_and_mass(leg):
    robot, _, _ = leg
    names = [body.name for body in robot.spanning_tree.bodies]
    assert hover.label(robot, 1 + names.index("thigh")) == "thigh (hip_flexion, 2.4 kg)"
    assert hover.label(robot, 0) == "fixed base"


@pytest.mark.parametrize("zipped", [True, False])
def test_the_script_is_put_into_the_page_and_into_nothing_else(zipped):
    page = b"<html><head><title>x</title></head><body></body></html>"
    headers = {"Content-Type": "text/html", "Content-Length": "1"}
    if zipped:
        headers["Content-Encoding"] = "gzip"
    body = gzip.compress(page) if zipped else page
    answer = hover.add_script(SimpleNamespace(headers=headers, body=body))
    assert answer.headers["Content-Length"] == str(len(answer.body))
    text = gzip.decompress(answer.body) if zipped else answer.body
    assert text.count(b"pointermove") == 2 and text.count(b"</head>") == 1
    other = SimpleNamespace(headers={"Content-Type": "image/png"}, body=page)
    assert hover.add_script(other).body == page
