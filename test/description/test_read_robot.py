"""Files with several moving trees: one is chosen by name, with what is tied to it."""

from __future__ import annotations

import numpy as np
import pytest
from description_texts import joint, link, robot

from rbda_ros import DescriptionError, load_robot

ARM = (link("base"), link("hand"), joint("elbow", "base", "hand", "<axis xyz='0 1 0'/>"))
BOX = (link("box"), link("lid"), joint("hinge", "box", "lid"))
TRANSMISSION = (
    "<transmission name='t'><type>SimpleTransmission</type><joint name='hinge'/>"
    "<actuator name='m'/></transmission>"
)


def test_a_urdf_with_two_roots():
    text = robot(*ARM, *BOX, TRANSMISSION)
    with pytest.raises(DescriptionError, match=r"2 roots: 'base', 'box'.*root: base"):
        load_robot(text)
    for name in ("base", "hand", "elbow"):
        found = load_robot(text, {"root": name})
        assert found.joint_names == found.actuated_joint_names == ("elbow",)
        assert any("'box' are left out" in warning for warning in found.warnings)
    assert load_robot(text, "root: box").joint_names == ("hinge",)


def test_unknown_and_fixed_names_are_explained():
    with pytest.raises(DescriptionError, match="root: unknown link 'bx'; did you mean 'box'"):
        load_robot(robot(*ARM, *BOX), {"root": "bx"})
    text = robot(link("world"), *BOX, joint("f", "world", "box", type="fixed"))
    with pytest.raises(DescriptionError, match="'box' is fixed to the world"):
        load_robot(text, {"root": "box"})


OF = "<inertial mass='1.3' pos='.1 0 0' diaginertia='.02 .03 .04'/>"
MJCF = f"""<mujoco><worldbody>
<body name='shelf'>{OF}</body>
<body name='robot'><freejoint name='base'/>{OF}<body name='arm'><joint name='a'/>{OF}</body></body>
<body name='box'><freejoint name='box_free'/>{OF}</body>
<body name='crank'><joint name='c' axis='0 0 1'/>{OF}</body>
<body name='rocker' pos='.3 0 0'><joint name='r' axis='0 0 1'/>{OF}</body></worldbody>
<equality><joint joint1='c' joint2='r'/></equality>
<actuator><motor joint='a'/><motor joint='c'/></actuator></mujoco>"""


def test_an_mjcf_scene():
    pytest.importorskip("mujoco")
    assert load_robot(MJCF).ny == 7 + 6 + 1
    alone = load_robot(MJCF, {"root": "robot"})
    assert alone.ny == 7
    assert alone.actuated_joint_names == ("a",)
    assert alone.tree.spanning.floating_base  # which it is not beside the box
    linkage = load_robot(MJCF, {"root": "rocker"})
    assert (linkage.joint_names, linkage.ny) == (("c", "r"), 1)  # what a gear ties together
    np.testing.assert_allclose(load_robot(MJCF, {"root": "box"}).mass, 1.3)


def test_an_sdf_world_with_two_models():
    pair = "<model name='{0}'><link name='{0}_a'/><link name='{0}_b'/><joint name='{0}_j'"
    pair += " type='revolute'><parent>{0}_a</parent><child>{0}_b</child><axis><xyz>0 0 1</xyz>"
    pair += "</axis></joint></model>"
    models = "".join(pair.format(name) for name in ("left", "right"))
    text = f"<sdf version='1.9'><world name='w'>{models}</world></sdf>"
    with pytest.raises(DescriptionError, match=r"2 models that move.*root: left"):
        load_robot(text)
    for root in ("right", "right_b", "right_j"):
        assert load_robot(text, {"root": root}).joint_names == ("right_j",)
