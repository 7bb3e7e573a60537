"""Drawn shapes of a robot: visuals, meshes, MJCF geoms, or inertias where there are none."""

import re

import numpy as np
import pytest
from node_fixtures import example_robot

from rbda_ros import load_robot
from rbda_ros.description.model import Inertia
from rbda_ros.view.posing import Poser
from rbda_ros.view.shapes import MeshError, find_mesh, inertia_box, shapes_of

BARE = """<robot name="bare">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="3"/>
    <inertia ixx="0.0425" iyy="0.0625" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>%s</link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/></joint>
</robot>"""


def extent(shapes, body):
    points = np.concatenate([s.vertices for s in shapes if s.body == body])
    return np.ptp(points, axis=0)


def test_visuals_are_drawn_where_the_urdf_has_them():
    robot = load_robot("docs/cookbook/gear.urdf", "docs/cookbook/gear.yaml")
    shapes, _, notes = shapes_of(robot, "docs/cookbook/gear.urdf")
    assert not notes
    kinds = {(shape.body, shape.kind) for shape in shapes}
    rotor = robot.tree.spanning.body_of_joint["elbow_rotor"]
    arm = robot.tree.spanning.body_of_joint["elbow"]
    assert {(0, "visual"), (arm, "visual"), (rotor, "rotor")} <= kinds
    assert np.isclose(max(extent(shapes, arm)), 0.4 + 0.035)


def test_without_visuals_inertias_are_drawn_as_the_boxes_they_are():
    inertia = Inertia(
        3.0,
        ixx=3 * (0.2**2 + 0.3**2) / 12,
        iyy=3 * (0.4**2 + 0.3**2) / 12,
        izz=3 * (0.4**2 + 0.2**2) / 12,
    )
    edges, _ = inertia_box(inertia)
    np.testing.assert_allclose(sorted(edges), [0.2, 0.3, 0.4])
    robot = load_robot(BARE % "")
    shapes, _, _ = shapes_of(robot, BARE % "")
    assert {shape.kind for shape in shapes} == {"inertia", "bone"}


def test_meshes_of_packages_are_found_and_drawn():
    path = example_robot("panda")
    robot = load_robot(path)
    shapes, _, notes = shapes_of(robot, path)
    assert not notes
    assert len({shape.body for shape in shapes if shape.kind == "visual"}) >= 7


@pytest.mark.parametrize(
    ("filename", "says"),
    [
        ("package://nowhere/a.stl", "not found"),
        ("https://example.com/a.stl", "not found"),
        ("broken.stl", "no triangles|cannot be read"),
        ("pointer.stl", "is a pointer of Git LFS"),
    ],
)
def test_a_mesh_that_cannot_be_drawn_is_a_note_and_inertias_take_its_place(
    tmp_path, filename, says
):
    (tmp_path / "pointer.stl").write_text("version https://git-lfs.github.com/spec/v1\n")
    (tmp_path / "broken.stl").write_text("solid nothing\nendsolid nothing\n")
    mesh = f'<visual><geometry><mesh filename="{filename}"/></geometry></visual>'
    path = tmp_path / "robot.urdf"
    path.write_text(BARE % mesh)
    shapes, _, (note,) = shapes_of(load_robot(path), path)
    assert filename in note
    assert re.search(says, note)
    assert {shape.kind for shape in shapes} == {"inertia", "bone"}


@pytest.mark.parametrize("geometry", ["<box/>", '<box size="1 one 1"/>', "<mesh/>"])
def test_a_visual_without_its_numbers_is_a_note(geometry):
    text = BARE % f"<visual><geometry>{geometry}</geometry></visual>"
    shapes, _, (note,) = shapes_of(load_robot(text), text)
    assert "correct the visual" in note or "not found" in note
    assert {shape.kind for shape in shapes} == {"inertia", "bone"}


def test_visuals_of_sdf_are_drawn_where_it_has_them():
    text = """<sdf version="1.9"><model name="m"><link name="base"/>
      <link name="arm"><pose>0 0 1 0 0 0</pose>
        <inertial><mass>1</mass></inertial>
        <visual name="v"><pose>0.2 0 0 0 0 0</pose>
          <geometry><box><size>0.4 0.1 0.2</size></box></geometry></visual>
        <collision name="c"><geometry><sphere><radius>3</radius></sphere></geometry></collision>
      </link>
      <joint name="world" type="fixed"><parent>world</parent><child>base</child></joint>
      <joint name="hinge" type="revolute"><parent>base</parent><child>arm</child>
        <axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""
    robot = load_robot(text)
    shapes, _, _ = shapes_of(robot, text)
    arm = robot.tree.spanning.body_of_joint["hinge"]
    (shape,) = (shape for shape in shapes if shape.body == arm)
    np.testing.assert_allclose(extent(shapes, arm), [0.4, 0.1, 0.2])
    R, p = (each[arm - 1] for each in Poser(robot).body_poses(robot.tree.home))
    np.testing.assert_allclose(R @ shape.frame.p + p, [0.2, 0.0, 1.0])


def test_nothing_is_looked_for_elsewhere():
    with pytest.raises(MeshError):
        find_mesh("http://127.0.0.1/a.stl", None)


def test_mjcf_geoms_are_drawn():
    text = """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0"/>
      <geom type="capsule" size="0.02 0.1" pos="0 0 0.1"/>
      <geom type="box" size="0.05 0.06 0.07" pos="0 0 0.3"/>
      <geom type="box" size="1 1 1" group="3"/></body></worldbody></mujoco>"""
    shapes, _, _ = shapes_of(load_robot(text), text)
    assert np.allclose(sorted(extent(shapes, 1)), [0.1, 0.12, 0.39])


def test_materials_and_collision_shapes_are_read():
    text = """<robot name="r"><material name="steel"><color rgba="0.2 0.4 1 1"/></material>
      <link name="base"/><link name="arm"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><geometry><box size="1 1 1"/></geometry><material name="steel"/></visual>
      <visual><geometry><sphere radius="1"/></geometry>
      <material name="own"><color rgba="1 0 0 0.5"/></material></visual>
      <visual><geometry><sphere radius="2"/></geometry></visual>
      <collision><geometry><cylinder radius="1" length="2"/></geometry></collision></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
    shapes, collision, _ = shapes_of(load_robot(text), text)
    assert [shape.colour for shape in shapes] == [(51, 102, 255), (255, 0, 0), None]
    assert [(shape.kind, shape.form) for shape in collision] == [("collision", "cylinder")]


def test_mjcf_colours_and_collision_geoms_are_read():
    pytest.importorskip("mujoco")
    text = """<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody>
      <body pos="0 0 1"><joint name="j" axis="0 1 0"/>
      <geom type="sphere" size="0.02" rgba="0 1 0 1"/>
      <geom type="sphere" size="0.03" material="red"/>
      <geom type="box" size="1 1 1" group="3"/></body></worldbody></mujoco>"""
    shapes, collision, _ = shapes_of(load_robot(text), text)
    assert [shape.colour for shape in shapes] == [(0, 255, 0), (255, 0, 0)]
    assert [shape.form for shape in collision] == ["box"]
