"""Rods that spin about themselves: what is frozen, and that it is what a universal joint does."""

import functools

import mujoco
import numpy as np
import pytest
import yaml
from loop_oracle import LoopOracle
from mechanism_table import MECHANISMS, closed_states
from mujoco_oracle import MujocoOracle
from parallel_robots import delta, stewart

from rbda_ros import load_robot
from rbda_ros.cluster_tree.tree import build_cluster_tree
from rbda_ros.description import read_description
from rbda_ros.errors import DescriptionError


def loops_of(name: str) -> dict:
    return yaml.safe_load(MECHANISMS[name].loops.read_text())


def with_loops(name: str, **changes):
    return load_robot(MECHANISMS[name].urdf, loops_of(name) | changes)


def idle_links(robot) -> list[str]:
    return [lock.successor.link for lock in robot.tree.idle_locks]


@functools.cache
def parallel(make):
    return load_robot(*make())


def test_efforts_and_accelerations_are_those_of_a_universal_joint():
    """The ball joint of the rod written as a universal joint, about the axes of the lock."""
    ours = with_loops("ball_rod")
    (idle,) = ours.tree.idle_locks
    axes = {"axis": list(idle.axis), "second_axis": list(idle.second_axis)}
    universal = with_loops("ball_rod", joints={"ball": {"type": "universal"} | axes})
    assert ours.ny == universal.ny == 1
    for y, yd, ydd in np.random.default_rng(0).normal(0.0, 0.4, (10, 3)):
        q, theirs = ours.close({"crank": y}), universal.close({"crank": y})
        tau = universal.inverse_dynamics(theirs, [yd], [ydd])
        np.testing.assert_allclose(ours.inverse_dynamics(q, [yd], [ydd]), tau, rtol=1e-11)
        np.testing.assert_allclose(ours.forward_dynamics(q, [yd], tau), [ydd], atol=1e-9)
        assert ours.frame_pose(q, "rod") == pytest.approx(universal.frame_pose(theirs, "rod"))


@pytest.mark.parametrize("make, freedom", [(stewart, 6), (delta, 3)])
def test_legs_and_rods_of_parallel_robots_are_frozen(make, freedom):
    tree = build_cluster_tree(read_description(*make()))
    assert tree.ny == freedom
    assert [tree.velocity_names[j] for j in tree.independent] == make()[1]["actuated_joints"]
    assert len(tree.idle_locks) == 6


@pytest.mark.nightly
@pytest.mark.parametrize("make, freedom", [(stewart, 6), (delta, 3)])
def test_motors_determine_parallel_robots(make, freedom):
    """Every leg or rod spins; the dense solve of all constraints and locks is the oracle."""
    robot = parallel(make)
    assert robot.ny == freedom
    assert robot.independent_joint_names == robot.actuated_joint_names
    assert len(robot.tree.idle_locks) == 6
    oracle = LoopOracle(robot)
    rng = np.random.default_rng(0)
    for _ in range(3):
        motors = dict(zip(robot.actuated_joint_names, rng.normal(0, 0.05, freedom), strict=True))
        q = robot.close(motors)
        yd, tau = rng.normal(size=robot.ny), rng.normal(size=robot.nv)
        qd = robot.spanning_velocity(q, yd)
        qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
        expected = oracle.forward_dynamics(q, qd, tau)
        np.testing.assert_allclose(qdd, expected, atol=1e-9 * np.abs(expected).max())
        assert np.linalg.matrix_rank(robot.actuation(q).W) == freedom


def test_motors_give_pitch_and_roll_and_back():
    robot = MECHANISMS["parallel_ankle"].load()
    motors = {"left_motor": 0.1, "right_motor": -0.15}
    there = robot.convert(
        motors, {"left_motor": 0.3, "right_motor": 0.2}, targets=["pitch", "roll"]
    )
    joints = dict(zip(there.joint_names, there.position, strict=True))
    rates = dict(zip(there.joint_names, there.velocity, strict=True))
    back = robot.convert(joints, rates, targets=list(motors))
    np.testing.assert_allclose(back.position, [*motors.values()], atol=1e-12)
    np.testing.assert_allclose(back.velocity, [0.3, 0.2], atol=1e-10)
    # Rods keep their lengths: the law that ankles of this kind are solved by.
    for side, length in (("left", 0.25), ("right", 0.18)):
        rod = robot.frame_pose(there.q, f"{side}_rod")[:3, 3]
        tip = robot.frame_pose(there.q, "foot") @ [-0.05, 0.045 if side == "left" else -0.035, 0, 1]
        assert np.linalg.norm(tip[:3] - rod) == pytest.approx(length, abs=1e-9)


def test_the_kernel_closes_from_far_away_in_steps():
    """Quaternions in loops do not keep the closure from the kernel, nor from the branch."""
    robot = MECHANISMS["parallel_ankle"].load()
    q = robot.tree.home
    for angle in np.linspace(0.0, 0.6, 25):
        q = robot.close({"left_motor": angle, "right_motor": 0.5 * angle}, q)
    motors = {"left_motor": 0.6, "right_motor": 0.3}
    np.testing.assert_allclose(robot.close(motors), q, atol=1e-9)
    assert robot._closer.close_nearby(motors, robot.tree.home) is not None


ROD = "<inertial pos='.15 0 0' mass='.3' diaginertia='{axial} .002 .002'/>"
FOUR_BAR = """<mujoco><compiler angle='radian' autolimits='true'/><worldbody>
<body name='crank'><joint name='crank' axis='0 1 0'/>
  <inertial pos='0 0 .05' mass='.5' diaginertia='.001 .001 .001'/>
  <body name='rod' pos='0 0.01 .1'><joint name='ball' type='ball'/>{rod}</body></body>
<body name='rocker' pos='.28 .03 0'><joint name='rocker' axis='.1 1 .05'/>
  <inertial pos='0 0 .06' mass='.6' diaginertia='.001 .001 .001'/></body>
</worldbody><equality><connect body1='rod' body2='rocker' anchor='.3 0 0'/></equality>
<actuator><motor joint='crank'/></actuator></mujoco>"""


def mjcf(rod: str) -> str:
    return FOUR_BAR.format(rod=rod)


def crank_acceleration(source: str, loops=None) -> tuple[float, float]:
    """Ours, and MuJoCo's of the free rod, from rest to 0.7 rad/s of the crank."""
    robot = load_robot(source, loops)
    q = robot.close({"crank": 0.2})
    yd = robot.independent_velocity(q, {"crank": 0.7} | ({} if robot.ny == 1 else {"rocker": 0.0}))
    qd = robot.spanning_velocity(q, yd)
    tau = np.zeros(robot.nv)
    tau[robot.coordinates.velocities["crank"].start] = 0.4
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    oracle = MujocoOracle(mujoco.MjModel.from_xml_string(source), robot)
    oracle._idle = ()
    at = robot.coordinates.velocities["crank"].start
    return float(qdd[at]), float(oracle.accelerations(q, qd, tau)[0])


def test_mujocos_free_rod_differs_by_the_inertia_about_its_own_axis():
    ours, free = crank_acceleration(mjcf(ROD.format(axial="1e-9")))
    thick, free_thick = crank_acceleration(mjcf(ROD.format(axial="1e-5")))
    assert ours == pytest.approx(free, rel=1e-8)
    assert thick == pytest.approx(free_thick, rel=1e-3)
    assert abs(thick - free_thick) > 10 * abs(ours - free)


def test_accelerations_are_mujocos_with_the_lock_as_one_more_row():
    source = mjcf(ROD.format(axial="1e-3"))
    robot = load_robot(source)
    oracle = MujocoOracle(mujoco.MjModel.from_xml_string(source), robot)
    rng = np.random.default_rng(0)
    for angle in (-0.2, 0.1, 0.3):
        q = robot.close({"crank": angle})
        yd, tau = rng.normal(size=1), rng.normal(size=robot.nv)
        qd = robot.spanning_velocity(q, yd)
        qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
        expected = oracle.accelerations(q, qd, tau)
        np.testing.assert_allclose(oracle.ours(q, qd, qdd), expected, atol=1e-7)


def test_a_link_can_be_set_free_and_frozen_by_name():
    free = with_loops("ball_rod", idle_freedoms={"rod": "free"}, independent_joints=None)
    assert free.ny == 2
    assert not free.tree.idle_locks
    with pytest.raises(DescriptionError, match="unknown link 'rood'"):
        with_loops("ball_rod", idle_freedoms={"rood": "free"})
    with pytest.raises(DescriptionError, match="frozen or free"):
        with_loops("ball_rod", idle_freedoms={"rod": "maybe"})


def test_a_swing_is_frozen_only_beside_motors_and_is_named():
    """Mass beside the line between the ball joints: gravity turns it, not friction alone."""
    swing = mjcf("<inertial pos='.15 0 -.2' mass='.3' diaginertia='.001 .002 .002'/>")
    robot = load_robot(swing)
    assert robot.ny == 1
    assert robot.convert({"crank": 0.1}, targets=["rocker"]).position.shape == (1,)
    assert any("idle_freedoms: {rod: free}" in warning for warning in robot.warnings)
    assert load_robot(swing, {"idle_freedoms": {"rod": "free"}}).ny == 2
    without = load_robot(swing.replace("<actuator><motor joint='crank'/></actuator>", ""))
    assert without.ny == 2
    assert any("idle_freedoms: {rod: frozen}" in warning for warning in without.warnings)


def test_a_rod_that_a_cut_closes_in_its_middle_is_one_rod():
    """Half of it hangs from the crank, half from the rocker, and a weld joins them."""
    half = "<inertial pos='{x} 0 0' mass='.15' diaginertia='1e-9 .0003 .0003'/>"
    first, second = half.format(x=".075"), half.format(x="-.075")
    other = f"<body name='other' pos='.02 0 .1'><joint type='ball'/>{second}</body>"
    source = mjcf(first).replace("</body>\n</worldbody>", f"{other}</body>\n</worldbody>")
    source = source.replace(
        "<connect body1='rod' body2='rocker' anchor='.3 0 0'/>",
        "<weld body1='rod' body2='other' relpose='.3 0 0 1 0 0 0'/>",
    )
    robot = load_robot(source)
    assert (robot.nv, robot.ny, len(idle_links(robot))) == (8, 1, 1)
    oracle = MujocoOracle(mujoco.MjModel.from_xml_string(source), robot)
    q, yd, tau = robot.close({"crank": 0.1}), np.array([0.7]), np.linspace(-1.0, 1.0, robot.nv)
    qd = robot.spanning_velocity(q, yd)
    qdd = robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, tau))
    expected = oracle.accelerations(q, qd, tau)
    np.testing.assert_allclose(oracle.ours(q, qd, qdd), expected, atol=1e-7)


def test_ball_joints_made_of_hinges_are_seen():
    hinges = ROD.format(axial="1e-5")
    inner = "<inertial pos='0 0 0' mass='1e-4' diaginertia='1e-8 1e-8 1e-8'/>"
    for axis, name in (("1 0 0", "x"), ("0 0 1", "z")):
        hinges = f"<joint name='ball_{name}' axis='{axis}'/>{hinges}"
        if name == "x":
            hinges = f"<joint name='ball_y' axis='0 1 0'/>{inner}<body name='rod'>{hinges}</body>"
    source = mjcf("").replace("<joint name='ball' type='ball'/>", hinges)
    source = source.replace("name='rod' pos", "name='cross' pos")
    robot = load_robot(source)
    assert robot.ny == 1
    assert idle_links(robot) == ["rod"]


def test_states_are_followed_over_the_whole_range():
    """The lock stays regular while the crank makes its way: no dead point of its own."""
    robot = MECHANISMS["ball_rod"].load()
    for q in closed_states(MECHANISMS["ball_rod"], 20):
        assert robot.state(q).conditioning > 0.05


def test_a_strut_that_can_do_nothing_but_spin_leaves_the_rest_as_it_was():
    """A rod between two points of the base: its cluster has no freedom left."""
    robot = load_robot(
        """<mujoco><worldbody>
        <body name='arm'><joint name='arm' axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>
        <body name='strut' pos='0 1 0'><joint name='ball' type='ball'/>
          <inertial pos='.1 0 0' mass='.2' diaginertia='1e-4 1e-3 1e-3'/></body>
        </worldbody><equality><connect body1='strut' body2='world' anchor='.2 0 0'/></equality>
        </mujoco>"""
    )
    assert robot.ny == 1
    q = robot.close({"arm": 0.3})
    tau = robot.inverse_dynamics(q, [0.2], [0.5])
    np.testing.assert_allclose(robot.forward_dynamics(q, [0.2], tau), [0.5])
