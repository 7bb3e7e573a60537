"""SDF and USD files beside a reader and a dense solve that are not ours."""

import pytest
from maximal_oracle import compare, read_sdf, read_usd
from mechanism_table import MECHANISMS
from sdf_writer import SdfWriter
from test_sdf import joint, link, sdf
from test_usd import UsdWriter

from rbda_ros import load_robot

GEAR = (
    "<gearbox_ratio>-2.5</gearbox_ratio><gearbox_reference_body>arm</gearbox_reference_body>"
    "<axis><xyz expressed_in='wheel'>0 0 1</xyz></axis>"
    "<axis2><xyz expressed_in='pinion'>0 -1 0</xyz></axis2>"
)
DRAKE = "<rotor_inertia xmlns='http://drake.mit.edu'>.02</rotor_inertia>"
MIMIC = "<axis><xyz>1 0 0</xyz><mimic joint='{}'><multiplier>-.7</multiplier></mimic></axis>"
SPRING = (
    "<axis><xyz expressed_in='tilted'>0 1 0</xyz><dynamics><spring_reference>.2</spring_reference>"
    "<spring_stiffness>3</spring_stiffness></dynamics></axis>"
)
MIXED = sdf(
    link("base", "<pose degrees='true'>.1 .2 .3 10 20 30</pose>"),
    "<frame name='tilted' attached_to='base'><pose>.3 0 0 .2 .3 .4</pose></frame>",
    link("arm", "<pose relative_to='tilted'/>"),
    link("wheel", "<pose relative_to='arm'>0 .2 0 .1 0 .2</pose>"),
    link("pinion", "<pose relative_to='arm'>.1 .2 0 .3 0 .1</pose>"),
    link("slider", "<pose relative_to='arm' rotation_format='quat_xyzw'>.2 0 0 .6 0 0 .8</pose>"),
    link("nut", "<gravity>false</gravity><pose relative_to='slider'>0 0 .1 0 0 0</pose>"),
    link("fork", "<pose relative_to='nut'>.1 0 0 0 0 0</pose>"),
    "<model name='hand'><pose relative_to='slider'>.1 .1 0 .3 .2 .1</pose>",
    link("palm"),
    "<frame name='grip' attached_to='palm'><pose>0 0 .05 0 1 0</pose></frame>",
    link("tool", "<pose relative_to='grip'>.2 0 .1 0 .4 0</pose>"),
    "<model name='deep'><pose relative_to='tool'>0 .1 0 0 0 0</pose>" + link("tip") + "</model>",
    joint("wrist", "revolute", "palm", "tool", "<pose>.02 0 0 .1 0 0</pose>" + SPRING.replace(
        "tilted", "grip")),
    joint("end", "revolute", "tool", "deep::tip", MIMIC.format("wrist")),
    "</model>",
    joint("shoulder", "revolute", "base", "arm", DRAKE + SPRING),
    joint("spin_wheel", "continuous", "arm", "wheel", "<axis><xyz>0 0 1</xyz></axis>"),
    joint("spin_pinion", "revolute", "arm", "pinion", "<axis><xyz>0 1 0</xyz></axis>"),
    joint("gear", "gearbox", "wheel", "pinion", GEAR),
    joint("slide", "prismatic", "arm", "slider", "<axis><xyz>1 1 0</xyz></axis>"),
    joint("screw", "screw", "slider", "nut", "<screw_thread_pitch>.3</screw_thread_pitch>"
          "<axis><xyz>0 0 1</xyz></axis>"),
    joint("cross", "universal", "nut", "fork", "<axis><xyz>1 0 0</xyz></axis>"
          "<axis2><xyz>0 1 0</xyz></axis2>"),
    joint("ball", "ball", "slider", "hand", ""),
)  # fmt: skip


def test_every_joint_and_nested_models_of_sdf():
    robot = load_robot(MIXED)
    gap, error = compare(read_sdf(MIXED), robot)
    assert gap < 1e-9
    assert error < 1e-8


@pytest.mark.parametrize("name", ["four_bar", "ball_joint_loop", "universal_cut"])
def test_loops_of_sdf(name):
    text = SdfWriter(MECHANISMS[name].load()).text
    gap, error = compare(read_sdf(text), load_robot(text))
    assert gap < 1e-9
    assert error < 1e-8


@pytest.mark.parametrize(("name", "up", "unit"), [("four_bar", "Z", 1.0), ("fixed_cut", "Y", 0.01)])
def test_loops_of_usd(name, up, unit, tmp_path):
    """Frames on both sides of a joint are rounded to single precision."""
    path = tmp_path / "robot.usda"
    UsdWriter(MECHANISMS[name].load(), path, up, unit, unit != 1.0)
    gap, error = compare(read_usd(path), load_robot(path))
    assert gap < 1e-6
    assert error < 1e-5
