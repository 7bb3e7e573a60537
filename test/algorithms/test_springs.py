"""Springs against MuJoCo's passive forces, and in every algorithm that they act in."""

import functools
import re

import mujoco
import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS
from mujoco_oracle import MujocoOracle

from rbda_ros import Contact, DescriptionError, load_robot
from rbda_ros.description import read_description
from rbda_ros.description.writers import write_loop_file, write_urdf
from rbda_ros.exports.mjcf_writer import write_mjcf

OF = "<inertial pos='.1 .02 -.03' mass='1.2' diaginertia='.02 .03 .025'/>"
TREE = f"""<mujoco><compiler angle='radian' autolimits='true'/><worldbody>
<body name='base'><freejoint name='free'/>{OF}
 <body name='arm' pos='.1 0 .2'><joint name='hinge' axis='0 1 .3' stiffness='7' springref='.4'/>{OF}
  <body name='rod' pos='.2 0 0'><joint name='slide' type='slide' axis='1 0 0' stiffness='30'
   springref='-.02' ref='.01'/>{OF}
   <body name='ball' pos='.1 0 0'><joint name='ball' type='ball' stiffness='3'/>{OF}
    <body name='tip' pos='.1 0 0'><joint name='tip' axis='1 0 0'/>{OF}</body></body></body></body>
</body></worldbody>
<tendon><fixed name='cord' stiffness='11' springlength='-.1 .2'>
<joint joint='hinge' coef='1.5'/><joint joint='tip' coef='-.7'/></fixed></tendon></mujoco>"""


def passive(model, oracle, q) -> np.ndarray:
    """MuJoCo's passive force (nv) in our coordinates: what springs give."""
    data = mujoco.MjData(model)
    data.qpos[:] = oracle.positions(q)
    mujoco.mj_forward(model, data)
    return oracle.velocity_map(q).T @ data.qfrc_passive


def state_of(robot, rng):
    q = robot.tree.integrate(robot.tree.home, rng.normal(0.0, 0.8, robot.nv))
    return q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)


@functools.cache
def with_and_without():
    """The robot, and the same one without its springs."""
    return load_robot(TREE), load_robot(re.sub(r"stiffness='\d+'", "", TREE))


@pytest.mark.parametrize("seed", range(6))
def test_forces_are_mujocos_passive_forces(seed):
    model = mujoco.MjModel.from_xml_string(TREE)
    robot, bare = with_and_without()
    assert not robot.warnings
    assert len(robot.description.springs) == 4
    assert bare.tree.springs is None
    oracle = MujocoOracle(model, robot)
    rng = np.random.default_rng(seed)
    q, yd, _ = state_of(robot, rng)
    expected = passive(model, oracle, q)
    held = robot.bias_force(q, yd) - bare.bias_force(q, yd)
    np.testing.assert_allclose(held, -expected, atol=1e-10)
    np.testing.assert_allclose(robot.gravity_force(q) - bare.gravity_force(q), held, atol=1e-10)
    tau = rng.normal(size=robot.ny)
    ydd = robot.forward_dynamics(q, yd, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, yd, ydd), tau, atol=1e-9)
    np.testing.assert_allclose(robot.mass_matrix(q), bare.mass_matrix(q), atol=1e-12)


def test_free_joints_have_springs_too():
    source = f"""<mujoco><worldbody><body name='b' pos='.1 .2 .3'><joint name='f' type='free'
      stiffness='5'/>{OF}</body></worldbody></mujoco>"""
    model, robot = mujoco.MjModel.from_xml_string(source), load_robot(source)
    oracle, rng = MujocoOracle(model, robot), np.random.default_rng(0)
    for _ in range(4):
        q, _, _ = state_of(robot, rng)
        np.testing.assert_allclose(
            np.array(robot.tree.springs.force(q)).ravel(), -passive(model, oracle, q), atol=1e-10
        )


ROPES = (
    TREE.replace("<body name='ball'", "<site name='a' pos='.01 .1 .2'/><body name='ball'")
    .replace(f"{OF}</body></body></body>", f"{OF}<site name='b' pos='0 .1 .1'/>"
             "<site name='c' pos='.1 .2 .1'/></body><site name='d' pos='.3 0 .2'/></body></body>")
    .replace("</tendon>", """
<spatial name='over' stiffness='90' springlength='.1 .3'><site site='a'/><site site='b'/>
<site site='c'/><site site='d'/></spatial>
<spatial name='pulleys' stiffness='40' springlength='.2'><site site='a'/><site site='d'/>
<pulley divisor='2'/><site site='d'/><site site='c'/><site site='b'/>
<pulley divisor='3'/><site site='a'/><site site='b'/></spatial></tendon>""")
)  # fmt: skip


@functools.cache
def roped():
    return load_robot(ROPES)


@pytest.mark.parametrize("seed", range(4))
def test_tendons_of_several_segments_and_pulleys_are_mujocos(seed):
    model, robot = mujoco.MjModel.from_xml_string(ROPES), roped()
    assert not robot.warnings
    assert [len(spring.segments) for spring in robot.description.springs[-2:]] == [2, 3]
    oracle = MujocoOracle(model, robot)
    q, _, _ = state_of(robot, np.random.default_rng(seed))
    expected = passive(model, oracle, q)
    held = np.array(robot.tree.springs.force(q)).ravel()
    np.testing.assert_allclose(held, -expected, atol=1e-10)


def test_written_files_keep_ropes_pulleys_and_springs_of_balls():
    """As a URDF with a loop file, and as MJCF: the same forces."""
    robot = roped()
    described = robot.description
    again = load_robot(write_urdf(described), write_loop_file(described))
    assert again.description.springs == described.springs
    export = write_mjcf(robot)
    model = mujoco.MjModel.from_xml_string(export.text)
    data = mujoco.MjData(model)
    q, _, _ = state_of(robot, np.random.default_rng(0))
    data.qpos[:] = export.qpos(q)
    mujoco.mj_forward(model, data)
    ours = mujoco.MjModel.from_xml_string(ROPES)
    expected = mujoco.MjData(ours)
    expected.qpos[:] = MujocoOracle(ours, robot).positions(q)
    mujoco.mj_forward(ours, expected)
    np.testing.assert_allclose(data.qfrc_passive, expected.qfrc_passive, atol=1e-9)


SPRINGS = [
    {"name": "coil", "joint": "crank", "stiffness": 4.0, "rest": 0.3, "pretension": 0.7},
    {"name": "pair", "terms": {"coupler": 1.0, "rocker": -0.5}, "stiffness": 2.0},
    {
        "name": "cord",
        "predecessor": {"link": "crank_link", "xyz": [0.05, 0.01, 0.02]},
        "successor": {"link": "rocker_link", "xyz": [0.02, 0.0, 0.03]},
        "stiffness": 300.0,
        "rest": 0.1,
        "pretension": 5.0,
    },
]


@functools.cache
def without_springs():
    return four_bar(springs=[])


def four_bar(springs=SPRINGS, **changes):
    mechanism = MECHANISMS["four_bar"]
    loops = yaml.safe_load(mechanism.loops.read_text()) | {"springs": springs} | changes
    return load_robot(mechanism.urdf, loops, floating_base=True)


@pytest.fixture(scope="module")
def sprung():
    robot = four_bar()
    rng = np.random.default_rng(1)
    step = robot.spanning_velocity(robot.tree.home, rng.normal(0.0, 0.1, robot.ny))
    q = robot.close(robot.tree.integrate(robot.tree.home, step), robot.tree.home)
    return robot, q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)


def energy(robot, q) -> float:
    """Of the springs of the file, once more, from the poses of links."""
    at = robot.coordinates.scalar_positions
    crank, coupler, rocker = (q[at[name]] for name in ("crank", "coupler", "rocker"))
    ends = [
        robot.frame_pose(q, side["link"]) @ [*side["xyz"], 1.0]
        for side in (SPRINGS[2]["predecessor"], SPRINGS[2]["successor"])
    ]
    length = np.linalg.norm(ends[0] - ends[1])
    return (
        2.0 * (crank - 0.3) ** 2 + 0.7 * crank + (coupler - 0.5 * rocker) ** 2
        + 150.0 * (length - 0.1) ** 2 + 5.0 * length
    )  # fmt: skip


def moved(robot, q, j, h):
    y = np.zeros(robot.ny)
    y[j] = h
    near = robot.tree.integrate(q, robot.spanning_velocity(q, y))
    return robot.close(near, near)


def test_forces_in_loops_are_the_gradient_of_the_energy(sprung):
    robot, q, yd, _ = sprung
    held = robot.bias_force(q, yd) - without_springs().bias_force(q, yd)
    h = 1e-4
    for j in range(6, robot.ny):
        slope = (energy(robot, moved(robot, q, j, h)) - energy(robot, moved(robot, q, j, -h))) / (
            2 * h
        )
        assert held[j] == pytest.approx(slope, abs=1e-6)  # of differences
    np.testing.assert_allclose(held[:6], 0.0, atol=1e-12)  # none acts on the base
    assert float(robot.tree.springs.energy(q)) == pytest.approx(energy(robot, q))


def test_forward_and_inverse_dynamics_agree_embedded_or_not(sprung):
    robot, q, yd, ydd = sprung
    tau = robot.inverse_dynamics(q, yd, ydd)
    np.testing.assert_allclose(robot.forward_dynamics(q, yd, tau), ydd, atol=1e-9)
    opened = four_bar(method="proximal")
    same = opened.close(q, q)
    np.testing.assert_allclose(opened.forward_dynamics(same, yd, tau), ydd, atol=1e-6)


def test_contacts_feel_them(sprung):
    """A contact that holds the flag: what the springs give is a part of tau."""
    robot, q, yd, _ = sprung
    bare = without_springs()
    contact = [Contact("flag_link")]
    tau = np.random.default_rng(3).normal(size=robot.ny)
    held = robot.bias_force(q, yd) - bare.bias_force(q, yd)
    found = robot.constrained_forward_dynamics(q, yd, tau, contact)
    expected = bare.constrained_forward_dynamics(q, yd, tau - held, contact)
    np.testing.assert_allclose(found.ydd, expected.ydd, atol=1e-7)


def test_derivatives_are_those_of_differences(sprung):
    robot, q, yd, ydd = sprung
    by_y = robot.inverse_dynamics_derivatives(q, yd, ydd).position
    h = 1e-5
    bare = without_springs()
    of_springs = by_y - bare.inverse_dynamics_derivatives(q, yd, ydd).position
    for j in range(robot.ny):
        ahead, behind = (
            robot.gravity_force(there) - bare.gravity_force(there)
            for there in (moved(robot, q, j, h), moved(robot, q, j, -h))
        )
        np.testing.assert_allclose(of_springs[:, j], (ahead - behind) / (2 * h), atol=1e-6)


def test_the_regressor_has_their_stiffness(sprung):
    robot, q, yd, ydd = sprung
    parameters = robot.parameters()
    assert parameters.names[-5:] == (
        "coil.stiffness", "coil.pretension", "pair.stiffness", "cord.stiffness", "cord.pretension",
    )  # fmt: skip
    tau = robot.inverse_dynamics(q, yd, ydd, friction=True)
    np.testing.assert_allclose(robot.regressor(q, yd, ydd) @ parameters.values, tau, atol=1e-9)


def test_written_loop_files_keep_them():
    mechanism = MECHANISMS["four_bar"]
    loops = yaml.safe_load(mechanism.loops.read_text()) | {"springs": SPRINGS}
    described = read_description(mechanism.urdf, loops)
    again = read_description(mechanism.urdf, write_loop_file(described))
    assert again.springs == described.springs


def test_sdf_springs_are_read():
    sdf = """<sdf version='1.11'><model name='m'><link name='base'/><link name='arm'/>
    <joint name='fix' type='fixed'><parent>world</parent><child>base</child></joint>
    <joint name='j' type='revolute'><parent>base</parent><child>arm</child><axis><xyz>0 0 1</xyz>
    <dynamics><spring_reference>.2</spring_reference><spring_stiffness>3</spring_stiffness>
    </dynamics></axis></joint></model></sdf>"""
    robot = load_robot(sdf)
    np.testing.assert_allclose(robot.bias_force([0.7], [0.0]), [1.5])


@pytest.mark.parametrize(
    "spring, message",
    [
        ({"joint": "crankk", "stiffness": 1.0}, "unknown joint 'crankk'"),
        ({"stiffness": 1.0}, "between"),
        ({"joint": "crank", "stiffness": -1.0}, "negative"),
        ({"joint": "crank"}, "stiffness"),
        (SPRINGS[2] | {"successor": {"link": "nowhere"}}, "unknown link 'nowhere'"),
        (SPRINGS[2] | {"successor": {"link": "crank_link"}}, "fixed to each other"),
        ({"segments": [], "stiffness": 1.0, "rest": 0.1}, "has no segments"),
        ({"joint": "crank", "stiffness": 1.0, "rest": [0.2, 0.1]}, "ascending"),
        ({"joint": "crank", "stiffness": 1.0, "reference": [0, 0, 0, 1]}, "does not fit"),
        ({"joint": "crank", "stiffness": 1.0, "reference": [0, 0, 0, 0]}, "quaternion"),
    ],
)
def test_bad_springs_are_named(spring, message):
    with pytest.raises(DescriptionError, match=message):
        four_bar(springs=[spring])
