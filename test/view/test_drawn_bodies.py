"""Messages about bodies: where their shapes are, in as few messages as possible."""

import numpy as np
import pytest
from node_fixtures import example_robot

from rbda_ros import load_robot
from rbda_ros.view.drawn_bodies import COLOURS, DrawnBodies, linear
from rbda_ros.view.posing import Poser
from rbda_ros.view.shapes import shapes_of

viser = pytest.importorskip("viser", reason="the extra 'view' is not installed")


class Recorded:
    """A scene that passes everything on to viser's, and keeps the handles."""

    def __init__(self, scene):
        self._scene, self.handles = scene, {}

    def __getattr__(self, name):
        def add(path, *arguments, **others):
            self.handles[path] = getattr(self._scene, name)(path, *arguments, **others)
            return self.handles[path]

        return add


@pytest.fixture(scope="module")
def server():
    server = viser.ViserServer("127.0.0.1", 8600, verbose=False)
    yield server
    server.stop()


def drawn(server, robot, source, q):
    scene = Recorded(server.scene)
    bodies = DrawnBodies(scene, robot, shapes_of(robot, source)[0])
    poser = Poser(robot)
    bodies.move(*poser.body_poses(q))
    return scene.handles, bodies, poser


def test_forms_are_where_their_links_are_and_one_mesh_each(server):
    robot = load_robot("docs/cookbook/gear.urdf", "docs/cookbook/gear.yaml")
    q = robot.close({"elbow": 0.7})
    handles, bodies, poser = drawn(server, robot, "docs/cookbook/gear.urdf", q)
    assert len(handles) == 4  # boxes and cylinders, each seen through or not
    (boxes,) = (h for n, h in handles.items() if "box" in n and h.opacity is not None)
    arm = robot.frame_pose(q, ("arm", (0.2, 0.0, 0.0)))[:3, 3]
    assert np.abs(boxes.batched_positions - arm).max(axis=1).min() < 1e-6
    assert any((colour == linear(COLOURS)).all(axis=1).any() for colour in boxes.batched_colors)
    bodies.move(*poser.body_poses(robot.close({"elbow": 0.0})))
    assert np.abs(boxes.batched_positions - (0.2, 0.0, 0.0)).max(axis=1).min() < 1e-6


def test_bones_have_few_triangles_and_balls_are_round(server):
    robot = load_robot("test/mechanisms/tello_leg.urdf", "test/mechanisms/tello_leg.yaml")
    handles, _, _ = drawn(server, robot, None, robot.tree.home)
    for name, handle in handles.items():
        assert len(handle.faces) <= 80  # software rendering pays for each corner of each instance
        assert handle.flat_shading != ("ball" in name)


def test_mesh_files_are_one_mesh_a_body(server):
    path = example_robot("panda")
    robot = load_robot(path)
    q = 0.3 * np.ones(robot.nq)
    handles, _, _ = drawn(server, robot, path, q)
    bodies = [body.name for body in robot.tree.spanning.bodies]
    assert len(handles) == 1 + len(bodies)
    places = [handle.position for handle in handles.values()]
    for body in bodies:
        origin = robot.tree.spanning.links[body].frame.inverse().p  # of the body, in its link
        at = robot.frame_pose(q, (body, tuple(origin)))[:3, 3]
        assert min(np.abs(place - at).max() for place in places) < 1e-6
