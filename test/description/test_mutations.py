"""Ten thousand mutated files: a valid description or a DescriptionError, nothing else, quickly."""

from __future__ import annotations

import copy
import math
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from description_texts import link, robot
from lxml import etree

from rbda_ros.description import read_description
from rbda_ros.description.model import Coupling, RobotDescription
from rbda_ros.errors import DescriptionError

URDF = robot(
    *(link(name) + "\n" for name in ("base", "thigh", "shank", "rod", "rotor")),
    "<joint name='hip' type='revolute' independent='true'><parent link='base'/>"
    "<child link='thigh'/><origin xyz='0 0.1 0' rpy='0 0 1.57'/><axis xyz='0 1 0'/>"
    "<limit lower='-1' upper='1' effort='5' velocity='3'/><dynamics damping='0.1'/></joint>\n"
    "<joint name='knee' type='continuous'><parent link='thigh'/><child link='shank'/></joint>\n"
    "<joint name='crank' type='prismatic'><parent link='base'/><child link='rod'/>"
    "<mimic joint='knee' multiplier='2'/></joint>\n"
    "<joint name='spin' type='planar'><parent link='base'/><child link='rotor'/></joint>\n"
    "<loop name='l' type='revolute'><predecessor link='shank'><origin xyz='1 0 0'/></predecessor>"
    "<successor link='rod'/><axis xyz='0 1 0'/></loop>\n"
    "<coupling name='c'><predecessor link='thigh'/><successor link='rod'/><ratio value='6'/>"
    "</coupling>\n"
    "<transmission name='t'><joint name='hip'><offset>1</offset></joint><actuator name='m'>"
    "<mechanicalReduction>9</mechanicalReduction><rotorInertia>1e-4</rotorInertia></actuator>"
    "</transmission>",
)
LOOPS = """
root: base
independent_joints: [hip, knee_rotor]
actuated_joints: [knee]
constraints:
  - {name: g, type: coupling, terms: {hip: 1.0, knee: -2}, offset: 0.5}
  - name: u
    type: universal
    predecessor: {link: shank, xyz: [0.3, 0, 0], rpy: [0, 0, 0]}
    successor: {link: rod}
    axis: [0, 1, 0]
    second_axis: [1, 0, 0]
  - {type: expression, equation: "hip - 0.1*cos(`knee`)^2"}
  - {type: distance, predecessor: {link: base}, successor: {link: shank}, length: 0.2}
assembly: {hip: 0.4, knee: -1.2}
joints: {crank: {type: helical, pitch: 0.002}}
rotors: {knee: {ratio: 12.0, inertia: 5.5e-4, on_link: base, xyz: [0, 0, 0]}}
"""
SDF = """<sdf version="1.9"><model name="m"><pose>0 0 1 0 0 0</pose>
<link name="base"/><link name="thigh"><pose relative_to="base">0 .1 0 0 0 1.57</pose>
<inertial><pose>.1 0 0 0 0 0</pose><mass>1.5</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.2</izz>
</inertia></inertial></link>
<frame name="end" attached_to="thigh"><pose degrees="true">0.3 0 0 0 90 0</pose></frame>
<link name="shank"><pose relative_to="end" rotation_format="quat_xyzw">0 0 0 0 0 0 1</pose></link>
<link name="rod"/><link name="rotor"/><link name="nut"/>
<joint name="hip" type="revolute"><parent>base</parent><child>thigh</child><axis>
<xyz expressed_in="__model__">0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit>
<dynamics><damping>.1</damping></dynamics></axis></joint>
<joint name="knee" type="universal"><parent>end</parent><child>shank</child><axis><xyz>1 0 0</xyz>
</axis><axis2><xyz>0 1 0</xyz></axis2></joint>
<joint name="crank" type="prismatic"><parent>base</parent><child>rod</child><axis><xyz>1 0 0</xyz>
<mimic joint="hip"><multiplier>2</multiplier><reference>.1</reference></mimic></axis></joint>
<joint name="spin" type="continuous"><parent>base</parent><child>rotor</child><axis><xyz>0 0 1</xyz>
</axis></joint><joint name="gear" type="gearbox"><parent>thigh</parent><child>rotor</child>
<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body></joint>
<joint name="screw" type="screw"><parent>rod</parent><child>nut</child><axis><xyz>0 0 1</xyz></axis>
<screw_thread_pitch>.01</screw_thread_pitch></joint>
<joint name="pin" type="ball"><parent>rod</parent><child>shank</child></joint>
<link name="up"><gravity>false</gravity></link><joint name="back" type="universal">
<parent>up</parent><child>nut</child><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>
</joint>
<drake:distance_constraint xmlns:drake="d"><drake:distance_constraint_body_A>up
</drake:distance_constraint_body_A><drake:distance_constraint_body_B>rod
</drake:distance_constraint_body_B><drake:distance_constraint_distance>.3
</drake:distance_constraint_distance></drake:distance_constraint></model></sdf>"""
ELEMENTS = URDF.replace(
    "</robot>",
    "<constraint name='pin' type='revolute'><parent link='shank'/><parent_origin xyz='1 0 0'/>"
    "<parent_axis xyz='0 0 1'/><child link='rod'/><child_axis xyz='0 1 0'/></constraint>"
    "<loop_joint name='ball' type='spherical'><link1 link='shank' xyz='1 0 0' rpy='0 0 1'/>"
    "<link2 link='rod' xyz='0 1 0'/></loop_joint>"
    "<gazebo><joint name='gz' type='ball'><parent>shank</parent><child>rod</child>"
    "<pose>0 1 0 0 0 0</pose></joint><joint name='gears' type='gearbox'><parent>thigh</parent>"
    "<child>base</child><gearbox_ratio>2</gearbox_ratio><gearbox_reference_body>base"
    "</gearbox_reference_body></joint></gazebo>"
    "<link name='closing_a_1'/><joint name='f1' type='fixed'><parent link='rod'/>"
    "<child link='closing_a_1'/></joint><link name='closing_a_2'/><joint name='f2' type='fixed'>"
    "<parent link='shank'/><child link='closing_a_2'/></joint>"
    "<drake:ball_constraint xmlns:drake='d'><drake:ball_constraint_body_A name='rod'/>"
    "<drake:ball_constraint_p_AP value='1 0 0'/><drake:ball_constraint_body_B name='thigh'/>"
    "</drake:ball_constraint><drake:tendon_constraint xmlns:drake='d'>"
    "<drake:tendon_constraint_joint name='hip' a='2'/>"
    "<drake:tendon_constraint_lower_limit value='1'/>"
    "<drake:tendon_constraint_upper_limit value='1'/></drake:tendon_constraint>"
    "<drake:joint xmlns:drake='d' name='cross' type='universal'><parent link='rotor'/>"
    "<child link='far'/></drake:joint><link name='far'/>"
    "<ros2_control name='s' type='system'><joint name='hip'><command_interface name='effort'/>"
    "</joint></ros2_control></robot>",
)
GEPETTO = {
    "closed_loop": [["thigh", "rod"], ["shank", "rotor"]],
    "type": ["6d", "3d"],
    "name_mot": ["hip"],
    "joint_name": ["spin"],
    "joint_type": ["SPHERICAL"],
}
MAPPING = yaml.safe_load(LOOPS)
COUNT = 10_000
NASTY = (
    *("nan", "inf", "-inf", "1e999", "1e308", "-0", "0", "1e-320", "1 2", "1 2 3", "", " ", "~"),
    *("true", "null", "\0", "\ud800", "\ufeff", "é", "&amp;", "&x;", "<", "]]>", "*a", "&a", "!!x"),
    *(
        "{",
        "[[[[",
        "}",
        ": ",
        "- ",
        "\t",
        "\n",
        "`",
        "hip",
        "base",
        "x" * 300,
        "(" * 200,
        "9" * 400,
    ),
    *("hip_rotor", "knee_rotor_link", "crank_mimic", "<!DOCTYPE x>", "<!--", "fixed", "floating"),
)
ODD = (None, True, 3, -1.5, math.nan, "", "hip", [], {}, [[]], {"a": 1}, (0, 0, 1), {1: 2}, b"x")


def mutate_characters(text: str, rng: random.Random) -> str:
    """Change, drop, double or insert a few characters."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        end = at + rng.choice([0, 1, 1, rng.randint(1, 40)])
        new = rng.choice(
            ["", text[at:end] * 2, chr(rng.choice([0, 9, 60, 62, 39, 38, 58, 0xD800]))]
        )
        text = text[:at] + new + text[end:]
    return text


def mutate_tokens(text: str, rng: random.Random) -> str:
    """Replace words, numbers and signs by nasty ones or by each other."""
    tokens = re.findall(r"\w+|[-+.\d]+|\s+|.", text)
    for _ in range(rng.randint(1, 4)):
        tokens[rng.randrange(len(tokens))] = rng.choice([rng.choice(NASTY), rng.choice(tokens)])
    return "".join(tokens)


def mutate_elements(text: str, rng: random.Random) -> str:
    """Drop, double, move and rename elements and attributes."""
    root = etree.fromstring(text)
    for _ in range(rng.randint(1, 3)):
        elements = list(root.iter())
        element, other = rng.choice(elements), rng.choice(elements)
        parent = element.getparent()
        action = rng.randrange(6)
        if action == 0 and parent is not None:
            parent.remove(element)
        elif action == 1 and parent is not None:
            parent.append(copy.deepcopy(element))
        elif action == 2:
            other.append(copy.deepcopy(element))
        elif action == 3:
            element.tag = other.tag
        elif element.attrib:
            name = rng.choice(element.keys())
            values = [value for item in elements for value in item.values()]
            nasty = [value for value in NASTY if re.fullmatch(r"[\t\n -~]*", value)]
            element.set(name, rng.choice([rng.choice(values), rng.choice(nasty)]))
            if action == 5:
                del element.attrib[name]
    return etree.tostring(root, encoding="unicode")


def mutate_mapping(mapping: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Drop, replace and add values anywhere in a nested mapping."""
    mapping = copy.deepcopy(mapping)
    for _ in range(rng.randint(1, 3)):
        places: list[tuple[Any, Any]] = []
        pending: list[Any] = [mapping]
        while pending:
            item = pending.pop()
            keys = list(item) if isinstance(item, dict) else range(len(item))
            places.extend((item, key) for key in keys)
            pending.extend(item[key] for key in keys if isinstance(item[key], dict | list))
        if not places:
            break
        container, key = rng.choice(places)
        donor, donor_key = rng.choice(places)
        action = rng.randrange(4)
        if action == 0:
            del container[key]
        elif action == 1:
            container[key] = copy.deepcopy(donor[donor_key])
        elif action == 2:
            container[key] = copy.deepcopy(rng.choice([*ODD, *NASTY]))
        elif isinstance(container, dict):
            container[rng.choice([*NASTY, str(donor_key)])] = container.pop(key)
    return mapping


def read(urdf: Any, loops: Any) -> RobotDescription | None:
    """The description, if it is accepted; anything but a DescriptionError goes through."""
    try:
        description = read_description(urdf, loops)
    except DescriptionError as error:
        assert error.problems
        assert all(line.isprintable() for line in str(error).splitlines())
        return None
    check(description)
    return description


def check(description: RobotDescription) -> None:
    """Properties of every accepted description."""
    links = {item.name for item in description.links}
    joints = {item.name for item in description.joints}
    assert len(links) == len(description.links) == len(description.joints) + 1
    assert len(joints) == len(description.joints)
    assert description.root in links
    for item in description.joints:
        assert {item.parent, item.child} <= links
        assert math.hypot(*item.axis) == pytest.approx(1.0)
        assert all(map(math.isfinite, (*item.origin.xyz, *item.origin.rpy, item.damping)))
    for item in description.constraints:
        if isinstance(item, Coupling):
            assert set(item.terms) <= joints
            assert all(math.isfinite(value) and value for value in item.terms.values())


MUTATIONS: tuple[tuple[str, Callable[[random.Random], tuple[Any, Any]]], ...] = (
    ("characters of the URDF", lambda rng: (mutate_characters(URDF, rng), None)),
    ("tokens of the URDF", lambda rng: (mutate_tokens(URDF, rng), None)),
    ("elements of the URDF", lambda rng: (mutate_elements(URDF, rng), None)),
    ("characters of the loop file", lambda rng: (URDF, mutate_characters(LOOPS, rng))),
    ("tokens of the loop file", lambda rng: (URDF, mutate_tokens(LOOPS, rng))),
    ("mapping", lambda rng: (URDF, mutate_mapping(MAPPING, rng))),
    ("elements with loops", lambda rng: (mutate_elements(ELEMENTS, rng), None)),
    ("Gepetto's mapping", lambda rng: (URDF, mutate_mapping(GEPETTO, rng))),
    ("characters of an SDF", lambda rng: (mutate_characters(SDF, rng), None)),
    ("tokens of an SDF", lambda rng: (mutate_tokens(SDF, rng), None)),
    ("elements of an SDF", lambda rng: (mutate_elements(SDF, rng), None)),
    ("both", lambda rng: (mutate_elements(URDF, rng), mutate_mapping(MAPPING, rng))),
)


def test_the_files_are_accepted_unchanged():
    assert read(URDF, LOOPS) == read(URDF, MAPPING) is not None
    assert all(
        read(urdf, loops) for urdf, loops in ((SDF, None), (ELEMENTS, None), (URDF, GEPETTO))
    )


@pytest.mark.parametrize(
    ("what", "mutate"), MUTATIONS, ids=[what.replace(" ", "_") for what, _ in MUTATIONS]
)
def test_mutated_files_are_read_or_refused(what: str, mutate):
    rng = random.Random(what)
    accepted = slowest = 0.0
    count = math.ceil(COUNT / len(MUTATIONS))
    for _ in range(count):
        urdf, loops = mutate(rng)
        start = time.perf_counter()
        accepted += read(urdf, loops) is not None
        slowest = max(slowest, time.perf_counter() - start)
    print(f"{what}: {accepted:.0f} of {count} accepted, the slowest took {slowest:.3f} s")
    assert 0 < accepted < count  # else the mutations are too tame or too wild to test anything
    assert slowest < 5.0


XACRO = URDF.replace("<robot name='test'>", "<robot name='test' xmlns:xacro='x'>").replace(
    "</robot>",
    "<xacro:arg name='far' default='true'/><xacro:property name='size' value='${2 * 0.1}'/>"
    "<xacro:macro name='tip' params='on at:=1'>"
    "<link name='${on}_tip'/><joint name='${on}_end' type='fixed'><parent link='${on}'/>"
    "<child link='${on}_tip'/><origin xyz='${size * at} 0 0'/></joint></xacro:macro>"
    "<xacro:tip on='shank'/><xacro:if value='$(arg far)'><xacro:tip on='rod' at='2'/></xacro:if>"
    "</robot>",
)
USD = """#usda 1.0
(
  metersPerUnit = 1
  upAxis = "Z"
)
def Xform "base" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] ) {
  float physics:mass = 2
  point3f physics:centerOfMass = (0, 0, 0.1)
  float3 physics:diagonalInertia = (0.1, 0.1, 0.1)
}
def Xform "arm" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] ) {
  float physics:mass = 1
  point3f physics:centerOfMass = (0.1, 0, 0)
  float3 physics:diagonalInertia = (0.1, 0.1, 0.1)
  quatf physics:principalAxes = (1, 0, 0, 0)
  double3 xformOp:translate = (0.1, 0, 0)
  uniform token[] xformOpOrder = ["xformOp:translate"]
}
def PhysicsRevoluteJoint "hinge" ( prepend apiSchemas = ["PhysicsDriveAPI:angular"] ) {
  rel physics:body0 = </base>
  rel physics:body1 = </arm>
  uniform token physics:axis = "Y"
  float physics:lowerLimit = -90
  point3f physics:localPos0 = (0.1, 0, 0)
  quatf physics:localRot0 = (1, 0, 0, 0)
  float drive:angular:physics:maxForce = 10
  float physxJoint:armature = 0.1
}
def PhysicsDistanceJoint "rod" {
  rel physics:body0 = </base>
  rel physics:body1 = </arm>
  bool physics:excludeFromArticulation = 1
  float physics:minDistance = 0.1
  float physics:maxDistance = 0.1
}
"""


@pytest.mark.parametrize(("suffix", "text"), [("urdf.xacro", XACRO), ("usda", USD)])
@pytest.mark.parametrize("mutate", [mutate_characters, mutate_tokens])
def test_mutated_files_of_other_libraries(tmp_path, suffix, text, mutate):
    """Errors of xacro and usd-core become a DescriptionError, too."""
    pytest.importorskip("pxr" if suffix == "usda" else "xacro")
    path, rng, accepted = tmp_path / f"robot.{suffix}", random.Random(suffix), 0
    path.write_text(text)
    assert read(path, None) is not None
    for _ in range(200):
        path.write_text(mutate(text, rng), encoding="utf-8", errors="surrogatepass")
        accepted += read(path, None) is not None
    assert 0 < accepted < 200
