"""SDF: the same dynamics as our own files of the same mechanism, and clear words for the rest."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from lxml import etree
from mechanism_table import MECHANISMS, Mechanism
from scipy.spatial.transform import Rotation
from sdf_writer import SdfWriter

from rbda_ros import DescriptionError, Robot, load_robot
from rbda_ros.description import read_description
from rbda_ros.description.model import Coupling, CutJoint
from rbda_ros.description.writers import write_urdf

CUTS = ("revolute", "prismatic", "universal", "spherical", "fixed")


def in_sdf(mechanism: Mechanism) -> bool:
    """Whether SDF has joints for all of it; it has no word for what freezes a rod."""
    if mechanism.name in ("ball_rod", "parallel_ankle"):
        return False
    described = read_description(mechanism.urdf, mechanism.loops)
    return all(
        len(c.terms) == 2 if isinstance(c, Coupling) else isinstance(c, CutJoint) and c.type in CUTS
        for c in described.constraints
    ) and all(joint.type not in ("planar", "floating") for joint in described.joints)


def from_home(robot: Robot, q: np.ndarray) -> dict[str, np.ndarray]:
    """Positions by joint, where the assembly is zero."""
    found = {}
    for name, place in robot.tree.coordinates.positions.items():
        home, now = robot.tree.home[place], q[place]
        found[name] = now - home
        if len(place) == 4:
            found[name] = (Rotation.from_quat(home).inv() * Rotation.from_quat(now)).as_quat()
    return found


@pytest.mark.parametrize("name", [name for name, m in MECHANISMS.items() if in_sdf(m)])
def test_dynamics_are_those_of_our_files(name):
    mechanism = MECHANISMS[name]
    loops = yaml.safe_load(mechanism.loops.read_text()) if mechanism.loops else {}
    ours = load_robot(mechanism.urdf, loops)
    free = {"idle_freedoms": loops.get("idle_freedoms", {})}
    theirs = load_robot(SdfWriter(ours).text, free)
    layout, own = theirs.tree.coordinates, ours.tree.coordinates
    rng = np.random.default_rng(0)
    step = ours.spanning_velocity(ours.tree.home, 0.05 * rng.normal(size=ours.ny))
    near = ours.tree.integrate(ours.tree.home, step)
    for q in (ours.tree.home, ours.close(near, near)):
        positions, yd, tau = from_home(ours, q), rng.normal(size=ours.ny), rng.normal(size=ours.nv)
        there = np.concatenate([positions[name] for name in layout.positions])
        order = np.concatenate([[*own.velocities[joint]] for joint in layout.velocities])
        their_yd = ours.spanning_velocity(q, yd)[order][list(theirs.tree.independent)]
        expected = ours.spanning_acceleration(q, yd, ours.forward_dynamics(q, yd, tau))[order]
        ydd = theirs.forward_dynamics(there, their_yd, tau[order])
        found = theirs.spanning_acceleration(there, their_yd, ydd)
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


OF = (
    "<inertial><pose>.1 .02 -.03 .1 .2 .3</pose><mass>1.3</mass><inertia><ixx>.02</ixx>"
    "<iyy>.03</iyy><izz>.04</izz><ixy>.001</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
)
Z = "<axis><xyz>0 0 1</xyz></axis>"


def link(name: str, pose: str = "", inside: str = OF) -> str:
    return f"<link name='{name}'>{pose}{inside}</link>"


def joint(name: str, kind: str, parent: str, child: str, inside: str = Z) -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f"<joint name='{name}' type='{kind}'>{ends}{inside}</joint>"


def sdf(*parts: str, version: str = "1.11") -> str:
    return f"<sdf version='{version}'><model name='m'>{''.join(parts)}</model></sdf>"


ARM = (link("base"), link("arm", "<pose>.1 .2 .3 0 0 1.2</pose>"))


def test_a_frame_stands_for_the_link_it_is_on():
    text = sdf(
        *ARM,
        "<frame name='tip' attached_to='arm'><pose>.3 0 0 0 0 0</pose></frame>",
        "<frame name='end' attached_to='tip'><pose relative_to='tip'>0 .1 0 0 0 0</pose></frame>",
        link("tool", "<pose relative_to='end'/>"),
        joint("a", "revolute", "base", "arm"),
        joint("b", "continuous", "end", "tool"),
    )
    robot = load_robot(text)
    assert robot.description.joints[1].parent == "arm"
    np.testing.assert_allclose(robot.description.joints[1].origin.xyz, (0.3, 0.1, 0.0), atol=1e-15)


IN_MODEL = (np.cos(1.2), -np.sin(1.2), 0.0)


@pytest.mark.parametrize(
    ("version", "inside", "axis"),
    [
        ("1.6", "<xyz>1 0 0</xyz>", (1.0, 0.0, 0.0)),
        ("1.4", "<xyz>1 0 0</xyz>", IN_MODEL),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame>", IN_MODEL),
        ("1.11", "<xyz expressed_in='base'>1 0 0</xyz>", IN_MODEL),
    ],
)
def test_axes_are_in_the_frame_that_the_version_means(version, inside, axis):
    hinge = joint("a", "revolute", "base", "arm", f"<axis>{inside}</axis>")
    robot = load_robot(sdf(*ARM, hinge, version=version))
    np.testing.assert_allclose(robot.description.joints[0].axis, axis, atol=1e-15)


def test_a_joint_off_its_child_keeps_the_frames_of_links():
    turned = "<pose>0 -.2 0 0 0 0</pose>" + Z
    robot = load_robot(sdf(*ARM, joint("a", "revolute", "base", "arm", turned)))
    T = robot.frame_pose([np.pi], "arm")  # about a point .2 m behind the arm's own origin
    R = np.array([[np.cos(1.2), -np.sin(1.2)], [np.sin(1.2), np.cos(1.2)]])
    np.testing.assert_allclose(T[:2, 3], np.array([0.1, 0.2]) + 2 * R @ [0.0, -0.2], atol=1e-12)


SECOND = (
    "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper>"
    "<effort>5</effort></limit><dynamics><damping>.3</damping></dynamics></axis2>"
)
NINE = "<gearbox_ratio>9</gearbox_ratio><gearbox_reference_body>arm</gearbox_reference_body>"


def test_two_axes_are_two_joints_and_a_gearbox_is_a_gear():
    robot = load_robot(
        sdf(
            *ARM,
            joint("u", "universal", "base", "arm", SECOND),
            link("wheel"),
            joint("w", "continuous", "arm", "wheel"),
            link("rotor"),
            joint("r", "continuous", "arm", "rotor"),
            joint("gear", "gearbox", "wheel", "rotor", NINE),
        )
    )
    assert robot.joint_names == ("u_1", "u_2", "w", "r")
    second = robot.description.joints[1]
    assert (second.limits.upper, second.limits.effort, second.damping) == (1.0, 5.0, 0.3)
    q = robot.close({"u_1": 0.0, "u_2": 0.0, "w": 0.1})
    assert q[robot.joint_names.index("r")] == pytest.approx(-0.9)


def angle_about(axis: np.ndarray, R: np.ndarray) -> float:
    """Angle [rad] of a rotation (3, 3) about an axis that it leaves where it is."""
    vector = Rotation.from_matrix(R).as_rotvec()
    np.testing.assert_allclose(np.cross(vector, axis), 0.0, atol=1e-12)
    return float(vector @ axis)


@pytest.mark.parametrize("reference", ["arm", "frame"])
@pytest.mark.parametrize("first", [1.0, -1.0])
@pytest.mark.parametrize("second", [1.0, -1.0])
def test_a_gearbox_turns_its_child_by_minus_the_ratio(first, second, reference):
    """The specification: theta_2 = -ratio theta_1, about <axis2> and <axis>, from the reference."""
    axes = (
        f"<axis><xyz expressed_in='wheel'>0 0 {first}</xyz></axis>"
        f"<axis2><xyz expressed_in='rotor'>0 {second} 0</xyz></axis2>"
        f"<gearbox_ratio>3</gearbox_ratio>"
        f"<gearbox_reference_body>{reference}</gearbox_reference_body>"
    )
    robot = load_robot(
        sdf(
            *ARM,
            "<frame name='frame' attached_to='arm'/>",
            joint("hip", "continuous", "base", "arm"),
            link("wheel", "<pose relative_to='arm'>0 0 .1 .3 .2 .1</pose>"),
            # followed backwards
            joint(
                "w", "continuous", "wheel", "arm", Z.replace("xyz>0", "xyz expressed_in='wheel'>0")
            ),
            link("rotor", "<pose relative_to='arm'>.1 0 0 -.4 1 2</pose>"),
            joint("r", "continuous", "arm", "rotor", "<axis><xyz>0 -1 0</xyz></axis>"),
            joint("gear", "gearbox", "wheel", "rotor", axes),
        )
    )
    zero, q = robot.close({"hip": 0.0, "w": 0.0}), robot.close({"hip": 0.7, "w": 0.2})

    def turned(name: str) -> np.ndarray:
        """Rotation of a link against the arm since zero, in the link's axes."""
        arm, own = (robot.frame_pose(q, each)[:3, :3] for each in ("arm", name))
        arm_0, own_0 = (robot.frame_pose(zero, each)[:3, :3] for each in ("arm", name))
        return (arm_0.T @ own_0).T @ (arm.T @ own)

    theta_1 = angle_about(np.array([0.0, 0.0, first]), turned("wheel"))
    theta_2 = angle_about(np.array([0.0, second, 0.0]), turned("rotor"))
    assert abs(theta_1) == pytest.approx(0.2)
    assert theta_2 == pytest.approx(-3.0 * theta_1)


ANOTHER_CUT = ("universal_cut", "spherical_cut", "fixed_cut", "ball_joint_loop")
"""Mechanisms that are cut elsewhere if joints are swapped: no coordinates to compare by."""


@pytest.mark.parametrize(
    "name", [name for name, m in MECHANISMS.items() if in_sdf(m) and name not in ANOTHER_CUT]
)
def test_joints_are_followed_both_ways(name):
    """Parent and child swapped and the axis reversed: the same joint, with the same position."""
    mechanism = MECHANISMS[name]
    text = SdfWriter(load_robot(mechanism.urdf, mechanism.loops)).text
    xml = etree.fromstring(text)
    for element in xml.iter("joint"):
        if element.get("type") not in ("ball", "universal"):  # their positions would be others
            parent, child = element.find("parent"), element.find("child")
            parent.text, child.text = child.text, parent.text
            for axis in element.iter("xyz"):
                axis.text = " ".join(repr(-float(value)) for value in axis.text.split())
    one, other = load_robot(text), load_robot(etree.tostring(xml, encoding="unicode"))
    assert sorted(one.joint_names) == sorted(other.joint_names)
    rng = np.random.default_rng(1)
    step = one.spanning_velocity(one.tree.home, 0.05 * rng.normal(size=one.ny))
    q = one.close(near := one.tree.integrate(one.tree.home, step), near)
    yd, tau = rng.normal(size=one.ny), rng.normal(size=one.nv)
    positions, velocities = one.tree.coordinates.positions, one.tree.coordinates.velocities
    layout = other.tree.coordinates
    there = np.concatenate([q[list(positions[joint])] for joint in layout.positions])
    order = np.concatenate([[*velocities[joint]] for joint in layout.velocities])
    their_yd = one.spanning_velocity(q, yd)[order][list(other.tree.independent)]
    expected = one.spanning_acceleration(q, yd, one.forward_dynamics(q, yd, tau))[order]
    ydd = other.forward_dynamics(there, their_yd, tau[order])
    found = other.spanning_acceleration(there, their_yd, ydd)
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())


def test_a_root_that_no_joint_holds_stands_as_it_is_drawn():
    """Gravity turns a pendulum about a horizontal axis, and none about a vertical one."""
    hinge = joint("a", "continuous", "base", "arm", Z)
    upright = (link("base"), link("arm"))  # the hinge is vertical
    lying = (link("base", "<pose>0 0 0 1.1 0 0</pose>"), link("arm", "<pose>0 0 0 1.1 0 0</pose>"))
    assert load_robot(sdf(*upright, hinge)).gravity_force([0.3])[0] == pytest.approx(0.0, abs=1e-12)
    for parts in ((*lying, hinge), ("<pose>1 2 3 1.1 0 0</pose>", *upright, hinge)):
        robot = load_robot(sdf(*parts))
        # Potential energy 1.3 kg x 9.81 m/s^2 x height of the point (.1, .02, -.03) of the arm.
        q, g = 0.3, 1.3 * 9.81 * np.sin(1.1)
        slope = g * (0.1 * np.cos(q) - 0.02 * np.sin(q))
        assert robot.gravity_force([q])[0] == pytest.approx(slope, rel=1e-9)
        written = load_robot(write_urdf(robot.description))
        assert written.gravity_force([q])[0] == pytest.approx(slope, rel=1e-9)
    assert load_robot(sdf(*lying, hinge), floating_base=True).nv == 7


@pytest.mark.parametrize(
    "pitch",
    [
        "<screw_thread_pitch>.5</screw_thread_pitch>",
        f"<thread_pitch>{-4 * np.pi!r}</thread_pitch>",
    ],
)
def test_a_screw_travels_its_pitch_in_a_turn(pitch):
    robot = load_robot(sdf(*ARM, joint("s", "screw", "base", "arm", Z + pitch)))
    assert robot.frame_pose([2 * np.pi], "arm")[2, 3] == pytest.approx(0.3 + 0.5)


def test_bounds_that_are_none_and_inertias_that_are_left_out():
    limits = "<limit><lower>-1e16</lower><upper>1e16</upper><effort>-1</effort></limit>"
    axis = f"<axis><xyz>0 0 1</xyz>{limits}</axis>"
    robot = load_robot(
        sdf(link("base"), link("arm", inside=""), joint("a", "revolute", "base", "arm", axis))
    )
    (found,) = robot.description.joints
    assert found.type == "continuous"
    assert np.isinf(found.limits.effort)
    assert robot.mass_matrix([0.0])[0, 0] == pytest.approx(1.0)
    assert any("SDF gives it 1 kg" in warning for warning in robot.warnings)


def test_a_world_with_a_ground_and_one_robot():
    text = sdf(*ARM, joint("a", "revolute", "base", "arm"))
    ground = "<model name='ground'><static>true</static><link name='plane'/></model>"
    world = text.replace("<model", f"<world name='w'>{ground}<model", 1)
    assert load_robot(world.replace("</sdf>", "</world></sdf>")).joint_names == ("a",)


HINGE = joint("a", "revolute", "base", "arm")


def nested(name: str, attributes: str, *parts: str) -> str:
    return f"<model name='{name}' {attributes}>{''.join(parts)}</model>"


@pytest.mark.parametrize(
    ("attributes", "pose"),
    [
        ("", "<pose relative_to='arm'>.1 0 0 .3 .2 .1</pose>"),
        ("placement_frame='grip'", "<pose relative_to='at_grip'/>"),
        ("placement_frame='grip' canonical_link='tool'", "<pose relative_to='at_grip'/>"),
    ],
)
def test_models_inside_models_are_the_model_written_out(attributes, pose):
    """The inner model hangs from the outer arm; a loop joins its tool to the outer base."""
    mimic = "<axis><xyz>0 1 0</xyz><mimic joint='{}'><multiplier>2</multiplier></mimic></axis>"
    far = "<pose relative_to='{0}'>.2 0 .1 0 .4 0</pose>"
    at_grip = "<frame name='at_grip' attached_to='{1}'><pose relative_to='{0}'>{2}</pose></frame>"
    inner = nested(
        "hand", attributes, pose,
        link("palm"),
        "<frame name='grip' attached_to='palm'><pose>0 0 .05 0 1 0</pose></frame>",
        link("tool", far.format("__model__")),
        nested("deep", "", "<pose relative_to='grip'>0 .1 0 0 0 0</pose>", link("tip")),
        joint("wrist", "revolute", "palm", "tool"),
        joint("end", "revolute", "tool", "deep::tip", mimic.format("wrist")),
    )  # fmt: skip
    outer = (*ARM, HINGE)
    grip = at_grip.format("palm_frame", "arm", "0 0 .05 0 1 0")
    frame = "<frame name='palm_frame' attached_to='arm'><pose>.1 0 0 .3 .2 .1</pose></frame>"
    robot = load_robot(sdf(*outer, frame, grip, inner, joint("b", "revolute", "arm", "hand")))
    on = "hand::tool" if "canonical" in attributes else "hand::palm"
    flat = load_robot(
        sdf(
            *outer, frame,
            link("hand::palm", "<pose relative_to='palm_frame'/>"),
            link("hand::tool", far.format("palm_frame")),
            at_grip.format("palm_frame", "hand::palm", "0 0 .05 0 1 0"),
            link("hand::deep::tip", "<pose relative_to='at_grip'>0 .1 0 0 0 0</pose>"),
            joint("b", "revolute", "arm", on, "<pose relative_to='palm_frame'/>" + Z),
            joint("hand::wrist", "revolute", "hand::palm", "hand::tool"),
            joint("hand::end", "revolute", "hand::tool", "hand::deep::tip",
                  mimic.format("hand::wrist")),
        )
    )  # fmt: skip
    assert robot.joint_names == flat.joint_names
    rng = np.random.default_rng(0)
    for _ in range(5):
        y, yd, ydd = rng.normal(size=(3, robot.ny))
        found, expected = (each.inverse_dynamics(y, yd, ydd) for each in (robot, flat))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


NO_AXIS = "<axis><xyz>0 0 0</xyz></axis>"
WRONG = {
    "has 0 models": "<sdf version='1.11'/>",
    "models of other files": sdf(*ARM, HINGE, "<include><uri>model://x</uri></include>"),
    "inside a nested model": sdf(
        *ARM, HINGE, "<model name='n'><drake:ball_constraint/></model>"
    ),
    "unknown frame 'bse'; did you mean 'base'": sdf(
        link("base"), link("arm", "<pose relative_to='bse'/>"), HINGE
    ),
    "relative to itself": sdf(
        link("base"), link("arm", "<pose relative_to='f'/>"), HINGE,
        "<frame name='f' attached_to='base'><pose relative_to='arm'/></frame>",
    ),
    "is not 6 numbers": sdf(link("base"), link("arm", "<pose>1 2 3</pose>"), HINGE),
    "zero length": sdf(*ARM, joint("a", "revolute", "base", "arm", NO_AXIS)),
    "has no <axis>": sdf(*ARM, joint("a", "revolute", "base", "arm", "")),
    "'arn' is on no link; did you mean 'arm'": sdf(*ARM, joint("a", "revolute", "base", "arn")),
    "type 'hinge' is unknown": sdf(*ARM, joint("a", "hinge", "base", "arm")),
    "a screw joint cannot": sdf(*ARM, HINGE, joint("b", "screw", "base", "arm")),
    "no <collision> with a volume": sdf(
        link("base", inside="<inertial auto='true'/>"), link("arm"), HINGE
    ),
    "of which 'mesh' is not one that is read": sdf(
        link("base", inside="<inertial auto='true'/><collision name='c'><geometry><mesh/>"
        "</geometry></collision>"), link("arm"), HINGE,
    ),
    "has no pitch": sdf(*ARM, joint("a", "screw", "base", "arm")),
    "'rotor' and 'base' do not turn to each other about its axis: joint 'r'": sdf(
        *ARM, link("rotor"), HINGE, joint("r", "prismatic", "base", "rotor"),
        joint("g", "gearbox", "arm", "rotor", NINE.replace(">arm<", ">base<")),
    ),
    "has no <gearbox_reference_body>": sdf(
        *ARM, link("rotor"), HINGE, joint("r", "continuous", "base", "rotor"),
        joint("g", "gearbox", "arm", "rotor"),
    ),
    "has 2 roots": sdf(*ARM, HINGE, link("other")),
    "<mass> (line 1)": sdf(link("base", inside="<inertial><mass>x</mass></inertial>")),
}  # fmt: skip


@pytest.mark.parametrize("reason", WRONG)
def test_what_is_wrong_is_said(reason):
    with pytest.raises(DescriptionError) as caught:
        load_robot(WRONG[reason])
    assert reason in str(caught.value)


def test_what_a_cut_loses_is_named():
    axis = "<axis><xyz>0 0 1</xyz><dynamics><damping>1</damping></dynamics></axis>"
    text = sdf(
        *ARM, HINGE, link("rod"), joint("b", "revolute", "arm", "rod"), link("far"),
        joint("c", "revolute", "base", "far", "<pose>.4 0 0 0 0 0</pose>" + Z),
        joint("pin", "revolute", "rod", "far", "<pose>.2 .5 0 0 0 0</pose>" + axis),
    )  # fmt: skip
    robot = load_robot(text)
    assert robot.ny == 1
    assert any("'pin'" in w and "<dynamics>" in w for w in robot.warnings)


def test_a_link_without_gravity_has_no_weight_and_is_named():
    swing = HINGE.replace("0 0 1", "0 1 0")
    text = sdf(link("base"), link("arm", "<gravity>false</gravity>"), swing)
    robot, whole = load_robot(text), load_robot(text.replace("false", "true"))
    assert any("'arm'" in w and "takes weight" in w for w in robot.warnings)
    full = whole.gravity_force([0.3])[0]
    assert abs(full) > 0.1
    assert robot.gravity_force([0.3])[0] == pytest.approx(0.0, abs=1e-12)
    half = load_robot(text, {"weights": {"arm": 0.5}})
    assert half.gravity_force([0.3])[0] == pytest.approx(full / 2)
    assert not any("takes weight" in warning for warning in half.warnings)
    np.testing.assert_allclose(robot.mass_matrix([0.3]), whole.mass_matrix([0.3]))
    with pytest.raises(DescriptionError, match="weights: 'amr'"):
        load_robot(text, {"weights": {"amr": 0.5}})


SHAPES = {
    "sphere": ("<radius>.2</radius>", "sphere", ".2"),
    "box": ("<size>.2 .4 .6</size>", "box", ".1 .2 .3"),
    "ellipsoid": ("<radii>.2 .4 .6</radii>", "ellipsoid", ".2 .4 .6"),
    "cylinder": ("<radius>.2</radius><length>.6</length>", "cylinder", ".2 .3"),
    "capsule": ("<radius>.2</radius><length>.6</length>", "capsule", ".2 .3"),
}
"""Fields of each shape in SDF, and its type and size in MJCF."""


def collision(shape: str, fields: str, pose: str, density: str = "") -> str:
    geometry = f"<geometry><{shape}>{fields}</{shape}></geometry>"
    return f"<collision name='{shape}'>{pose}{density}{geometry}</collision>"


def with_auto(inertial: str, *collisions: str) -> str:
    inside = f"<inertial auto='true'>{inertial}</inertial>{''.join(collisions)}"
    return sdf(link("base"), link("arm", inside=inside), HINGE)


def spatial_inertia(robot: Robot, name: str) -> np.ndarray:
    """(4, 4) pseudo-inertia of a link in its frame, that does not depend on how it is written."""
    inertia = next(each.inertia for each in robot.description.links if each.name == name)
    R = Rotation.from_euler("xyz", inertia.origin.rpy).as_matrix()
    i = inertia
    own = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    return pseudo_inertia(i.mass, np.array(i.origin.xyz), R @ own @ R.T)


def pseudo_inertia(mass: float, p: np.ndarray, own: np.ndarray) -> np.ndarray:
    out = np.zeros((4, 4))
    out[:3, :3] = np.trace(own) / 2 * np.eye(3) - own + mass * np.outer(p, p)
    out[:3, 3] = out[3, :3] = mass * p
    out[3, 3] = mass
    return out


@pytest.mark.parametrize("mass", [None, 7.0])
def test_inertia_of_shapes_is_mujocos(mass):
    """All shapes on one link, one with a density of its own, one placed in another frame."""
    mujoco = pytest.importorskip("mujoco")
    poses = np.random.default_rng(0).uniform(-0.5, 0.5, (len(SHAPES), 6))
    collisions, geoms = [], []
    for (shape, (fields, kind, size)), pose in zip(SHAPES.items(), poses, strict=True):
        density = "300" if shape == "capsule" else ""
        on = "relative_to='arm'" if shape == "cylinder" else ""
        at = f"<pose {on}>{' '.join(map(str, pose))}</pose>"
        own = f"<density>{density}</density>" if density else ""
        collisions.append(collision(shape, fields, at, own))
        quat = Rotation.from_euler("xyz", pose[3:]).as_quat(scalar_first=True)
        geoms.append(
            f"<geom type='{kind}' size='{size}' pos='{' '.join(map(str, pose[:3]))}'"
            f" quat='{' '.join(map(str, quat))}' density='{density or 700}'/>"
        )
    stated = "<density>700</density>" + ("" if mass is None else f"<mass>{mass}</mass>")
    robot = load_robot(with_auto(stated, *collisions))
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body name='arm'><joint/>{''.join(geoms)}</body></worldbody></mujoco>"
    )
    R = Rotation.from_quat(model.body_iquat[1], scalar_first=True).as_matrix()
    own = R @ np.diag(model.body_inertia[1]) @ R.T
    expected = pseudo_inertia(model.body_mass[1], model.body_ipos[1], own)
    expected *= 1.0 if mass is None else mass / model.body_mass[1]
    np.testing.assert_allclose(spatial_inertia(robot, "arm"), expected, rtol=1e-12, atol=1e-12)


def test_inertia_of_a_cone_is_that_of_its_slices():
    text = with_auto("", collision("cone", "<radius>.3</radius><length>.8</length>", ""))
    heights, step = np.linspace(-0.4, 0.4, 200001, retstep=True)
    middle = (heights[:-1] + heights[1:]) / 2
    radius = 0.3 * (0.4 - middle) / 0.8  # the tip is up
    slices = 1000.0 * np.pi * radius**2 * step
    second = np.diag([np.sum(slices * radius**2 / 4)] * 2 + [np.sum(slices * middle**2)])
    expected = np.zeros((4, 4))
    expected[:3, :3] = second
    expected[2, 3] = expected[3, 2] = np.sum(slices * middle)
    expected[3, 3] = np.sum(slices)
    np.testing.assert_allclose(
        spatial_inertia(load_robot(text), "arm"), expected, rtol=1e-9, atol=1e-9
    )
