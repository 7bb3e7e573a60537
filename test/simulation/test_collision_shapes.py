"""Shapes of <collision> elements touch the ground where they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from rbda_ros import InputError, Simulator, load_robot
from rbda_ros.simulation.collision_shapes import collision_shapes

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


def test_others_are_named():
    mesh = URDF.format(shape='<mesh filename="a.stl"/>', rpy="0 0 0")
    with pytest.raises(InputError, match="body: a mesh touches nothing here"):
        collision_shapes(mesh)
    with pytest.raises(InputError, match="there is no 'foot'; use some of body"):
        collision_shapes(mesh, ["foot"])
    assert collision_shapes(mesh, []) == []
    with pytest.raises(InputError, match="the sizes of its sphere are no numbers"):
        collision_shapes(URDF.format(shape='<sphere radius="big"/>', rpy="0 0 0"))
    with pytest.raises(InputError, match="no URDF or SDF"):
        collision_shapes("<mujoco/>")
