"""`rbda_ros convert`: what is written has the same dynamics as what was read."""

from __future__ import annotations

import numpy as np
import pytest
from lxml import etree
from mechanism_table import MECHANISMS

from rbda_ros import cli, load_robot


def same_dynamics(first, second, permuted=False):
    assert second.joint_names == first.joint_names
    assert second.independent_joint_names == first.independent_joint_names
    assert second.actuated_joint_names == first.actuated_joint_names
    np.testing.assert_allclose(second.tree.home, first.tree.home, atol=1e-9)
    q = first.tree.home
    yd, ydd = np.random.default_rng(0).normal(size=(2, first.ny))
    H = first.mass_matrix(q)
    np.testing.assert_allclose(second.mass_matrix(q), H, rtol=0, atol=1e-12 * np.abs(H).max())
    tau = first.inverse_dynamics(q, yd, ydd)
    np.testing.assert_allclose(
        second.inverse_dynamics(q, yd, ydd), tau, rtol=0, atol=1e-12 * np.abs(tau).max()
    )


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_mechanisms_survive(name, tmp_path, capsys):
    mechanism = MECHANISMS[name]
    loops = [] if mechanism.loops is None else ["--loops", str(mechanism.loops)]
    urdf, yaml = tmp_path / "robot.urdf", tmp_path / "robot_loops.yaml"
    assert cli.main(["convert", str(mechanism.urdf), *loops, "-o", str(urdf)]) == 0
    assert "constraint" in capsys.readouterr().out
    same_dynamics(load_robot(mechanism.urdf, mechanism.loops), load_robot(urdf, yaml))


MJCF = """<mujoco model='leg'><worldbody><body name='thigh' pos='0 0 1'>
<joint name='hip' axis='0 1 0' ref='.2' armature='.05' damping='.1' range='-60 60'/>
<geom type='capsule' size='.03' fromto='0 0 0 0 0 -.4' mass='2'/>
<body name='shank' pos='0 0 -.4'><joint name='knee' axis='0 1 0' armature='.02'/>
<joint name='ankle' type='ball' pos='0 0 -.1'/><geom type='box' size='.02 .03 .2' mass='1'/></body>
</body><body name='slider'><joint name='slide' type='slide' axis='1 0 0'/>
<geom type='sphere' size='.1' mass='1'/></body></worldbody>
<equality><joint joint1='slide' joint2='knee' polycoef='0 .3 .1 0 0'/></equality>
<actuator><motor joint='hip'/><motor joint='knee'/></actuator></mujoco>"""


def test_mjcf_becomes_a_urdf_that_others_read(tmp_path):
    pytest.importorskip("mujoco")
    source, urdf, yaml = tmp_path / "leg.xml", tmp_path / "leg.urdf", tmp_path / "loops.yaml"
    source.write_text(MJCF)
    assert cli.main(["convert", str(source), "-o", str(urdf), "--output-loops", str(yaml)]) == 0
    same_dynamics(load_robot(source), load_robot(urdf, yaml))
    shapes = {element.tag for element in etree.parse(str(urdf)).iter()}
    assert {"cylinder", "box", "sphere"} <= shapes
    pin = pytest.importorskip("pinocchio")
    assert pin.buildModelFromUrdf(str(urdf)).njoints == 5


SDF = """<sdf version='1.11'><model name='m'><pose>0 0 1 0 0 0</pose>
<link name='base'><visual name='v'><geometry><box><size>1 2 3</size></box></geometry></visual>
</link>
<link name='arm'><pose relative_to='base'>.1 0 0 0 0 .3</pose>
<visual name='v'><pose relative_to='base'>.1 0 0 0 0 .3</pose><geometry><cylinder>
<radius>.1</radius><length>.5</length></cylinder></geometry></visual>
<collision name='c'><geometry><mesh><uri>package://m/arm.stl</uri></mesh></geometry></collision>
</link>
<link name='rod'><pose>.4 0 .1 0 0 0</pose><inertial><pose>0 0 .3 0 0 0</pose></inertial></link>
<joint name='a' type='revolute'><parent>base</parent><child>arm</child>
<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>
<joint name='b' type='ball'><parent>arm</parent><child>rod</child><pose>-.1 .1 0 0 0 0</pose>
</joint>
<joint name='pin' type='ball'><parent>base</parent><child>rod</child></joint>
<joint name='mount' type='fixed'><parent>world</parent><child>base</child></joint>
</model></sdf>"""


def test_sdf_becomes_a_urdf_with_what_it_draws(tmp_path):
    source, urdf, yaml = tmp_path / "arm.sdf", tmp_path / "arm.urdf", tmp_path / "arm_loops.yaml"
    source.write_text(SDF)
    assert cli.main(["convert", str(source), "-o", str(urdf)]) == 0
    same_dynamics(load_robot(source), load_robot(urdf, yaml))
    arm = etree.parse(str(urdf)).find("link[@name='arm']")
    assert arm.find("collision/geometry/mesh").get("filename") == "package://m/arm.stl"
    origin = arm.find("visual/origin")
    np.testing.assert_allclose([float(c) for c in origin.get("xyz").split()], 0.0, atol=1e-15)
    np.testing.assert_allclose([float(c) for c in origin.get("rpy").split()], 0.0, atol=1e-15)


def test_what_cannot_be_read_is_told(tmp_path, capsys):
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot>")
    assert cli.main(["convert", str(broken), "-o", str(tmp_path / "new.urdf")]) == 1
    assert "XML" in capsys.readouterr().err
