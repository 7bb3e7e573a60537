"""Shapes of <collision> elements touch the ground where they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from rbda_ros import InputError, ModelError, Simulator, load_robot
from rbda_ros.simulation.collision_shapes import collision_shapes
from rbda_ros.simulation.ground_contacts import Plane, Point, Sphere, clearance

URDF = """<robot name="die"><link name="body"><inertial><mass value="2"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 0 -0.02" rpy="{rpy}"/><geometry>{shape}</geometry></collision>
  </link></robot>"""


@pytest.mark.parametrize(
    ("shape", "rpy", "height"),
    [
        ('<box size="0.2 0.2 0.1"/>', "0 0 0.5", 0.07),
        ('<sphere radius="0.1"/>', "0 0 0", 0.12),
        ('<capsule radius="0.03" length="0.2"/>', "0 1.5707963267948966 0", 0.05),
        ('<cylinder radius="0.1" length="0.06"/>', "0 0 0", 0.05),
    ],
)
def test_a_body_rests_on_its_shape(shape, rpy, height):
    text = URDF.format(shape=shape, rpy=rpy)
    sim = Simulator(load_robot(text, floating_base=True), contacts=collision_shapes(text))
    sim.reset([0, 0, height + 1e-3, 0, 0, 0, 1])
    sim.step(steps=100)
    assert sim.q[2] == pytest.approx(height, abs=1e-6)
    assert sim.contact_forces.sum(axis=0)[2] == pytest.approx(2 * 9.81, rel=1e-3)


def test_sdf_has_them_too():
    text = """<sdf version="1.9"><model name="m"><link name="body"><collision name="c">
      <pose>0 0 0.3 0 0 0</pose><geometry><sphere><radius>0.2</radius></sphere></geometry>
      </collision></link></model></sdf>"""
    (sphere,) = collision_shapes(text, friction=0.3)
    np.testing.assert_array_equal(sphere.spheres(), [[0, 0, 0.3, 0.2]])
    assert sphere.friction == 0.3


def test_mjcf_has_those_that_may_touch():
    text = """<mujoco><worldbody><body name="die" pos="0 0 0.1"><freejoint/>
      <geom type="box" size="0.1 0.1 0.05" pos="0 0 -0.02" mass="2"/>
      <geom type="sphere" size="9" contype="0" conaffinity="0" mass="0"/>
      <geom type="capsule" size="0.03 0.1" euler="0 90 0" mass="0"/>
      </body></worldbody></mujoco>"""
    box, capsule = shapes = collision_shapes(text, friction=0.3, restitution=0.1)
    assert all((each.link, each.friction, each.restitution) == ("die", 0.3, 0.1) for each in shapes)
    np.testing.assert_allclose(np.ptp(box.spheres(), axis=0), [0.2, 0.2, 0.1, 0.0])
    np.testing.assert_allclose(np.mean(box.spheres(), axis=0), [0.0, 0.0, -0.02, 0.0], atol=1e-12)
    ends = capsule.spheres()
    np.testing.assert_allclose(sorted(ends[:, 0]), [-0.1, 0.1])
    np.testing.assert_allclose(ends[:, 1:], [[0.0, 0.0, 0.03]] * 2, atol=1e-12)
    sim = Simulator(load_robot(text), contacts=shapes)
    sim.step(steps=300)
    assert sim.q[2] == pytest.approx(0.07, abs=1e-6)


def test_xacro_has_them_too(tmp_path):
    file = tmp_path / "die.urdf.xacro"
    text = URDF.format(shape='<sphere radius="$(arg radius)"/>', rpy="0 0 0")
    space = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    file.write_text(
        text.replace('name="die">', f'name="die" {space}><xacro:arg name="radius" default="1"/>')
    )
    (sphere,) = collision_shapes(file, xacro_arguments={"radius": "0.3"})
    assert sphere.radius == 0.3


def test_clearance_is_that_of_the_lowest_shape():
    robot = load_robot(URDF.format(shape="<box/>", rpy="0 0 0"), floating_base=True)
    shapes = [Sphere("body", 0.1, (0.0, 0.0, 0.4)), Point("body", (0.3, 0.0, 0.0))]
    angle = 0.2
    q = np.array([0.5, 0.0, 1.0, 0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)])
    lowest = 1.0 - 0.3 * np.sin(angle)
    assert clearance(robot, q, shapes, Plane(height=0.2)) == pytest.approx(lowest - 0.2)
    assert clearance(robot, q, shapes, Plane((-2, 0, 0))) == pytest.approx(
        -0.5 - max(0.3 * np.cos(angle), 0.4 * np.sin(angle) + 0.1)
    )


def test_others_are_named():
    mesh = URDF.format(shape='<mesh filename="a.stl"/>', rpy="0 0 0")
    with pytest.raises(InputError, match="body: a mesh touches nothing here"):
        collision_shapes(mesh)
    with pytest.raises(InputError, match="there is no 'foot'; use some of body"):
        collision_shapes(mesh, ["foot"])
    assert collision_shapes(mesh, []) == []
    with pytest.raises(InputError, match="the sizes of its sphere are no numbers"):
        collision_shapes(URDF.format(shape='<sphere radius="big"/>', rpy="0 0 0"))
    with pytest.raises(InputError, match="no URDF, SDF or MJCF"):
        collision_shapes("<world/>")
    with pytest.raises(ModelError, match="MuJoCo does not compile it"):
        collision_shapes('<mujoco><worldbody><geom type="x"/></worldbody></mujoco>')
