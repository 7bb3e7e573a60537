"""Energy: what swings freely keeps it, and actuators give what it gains.

Energy is counted link by link, from poses, velocities and the masses of the description: no
mass matrix and no inverse dynamics enter.
"""

import functools

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS

from rbda_ros import load_robot

GRAVITY = 9.81


def link(name, length):
    return f"""<link name="{name}"><inertial><origin xyz="0.01 0.02 {-length / 2}"/>
      <mass value="{4 * length}"/><inertia ixx="{length**3 / 3}" ixy="0" ixz="0"
      iyy="{length**3 / 3}" iyz="0" izz="0.001"/></inertial></link>"""


def hinge(name, parent, child, xyz):
    return f"""<joint name="{name}" type="continuous"><parent link="{parent}"/>
      <child link="{child}"/><origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>"""


FOUR_BAR_LEG = f"""<robot name="four_bar_leg"><link name="pelvis"/>
  {link("thigh", 0.4)}{link("shank", 0.4)}{link("crank", 0.1)}{link("rod", 0.36)}
  {hinge("hip", "pelvis", "thigh", "0 0 0")}{hinge("knee", "thigh", "shank", "0 0 -0.4")}
  {hinge("motor", "thigh", "crank", "0 0 -0.02")}{hinge("rod_pin", "crank", "rod", "0 0 -0.1")}
</robot>"""
LEG_LOOPS = {
    "independent_joints": ["hip", "motor"],
    "constraints": [
        {
            "name": "shank_pin",
            "type": "revolute",
            "predecessor": {"link": "rod", "xyz": [0, 0, -0.36]},
            "successor": {"link": "shank", "xyz": [-0.08, 0, 0.02]},
            "axis": [0, 1, 0],
        }
    ],
    "assembly": {"motor": 1.4, "rod_pin": -1.4, "knee": 0.3},
}
GEARED_PENDULUM = """<robot name="geared_pendulum"><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.3 0 0.02"/><mass value="1.2"/>
    <inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <joint name="swing" type="continuous"><parent link="base"/><child link="arm"/>
    <origin rpy="0.2 0 0"/><axis xyz="0 1 0"/></joint></robot>"""
GEAR = {"rotors": {"swing": {"ratio": 9.0, "inertia": 2e-4, "mass": 0.2}}}


@functools.cache
def robot_named(name):
    if name == "four_bar_leg":
        return load_robot(FOUR_BAR_LEG, LEG_LOOPS)
    return load_robot(GEARED_PENDULUM, GEAR)


def energy(robot, q, yd):
    """Kinetic and potential energy [J], a link at a time."""
    total = 0.0
    for link in robot.description.links:
        if link.inertia is None:
            continue
        i, place = link.inertia, (link.name, link.inertia.origin.xyz, link.inertia.origin.rpy)
        pose = robot.frame_pose(q, place)
        velocity = robot.jacobian(q, place) @ yd
        v, w = velocity[:3], pose[:3, :3].T @ velocity[3:]
        about = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
        total += i.mass * (v @ v / 2 + GRAVITY * pose[2, 3]) + w @ about @ w / 2
    return total


def four_bar_closed_by_hand(y):
    """q of the leg by the law of cosines; x and z of a vector as the complex number z + ix."""
    hip, motor = y
    crank_tip = -0.02 - 0.1 * np.exp(1j * motor)
    pin = 0.02 - 0.08j  # on the shank
    to_crank = crank_tip + 0.4  # from the knee
    cosine = (abs(pin) ** 2 + abs(to_crank) ** 2 - 0.36**2) / (2 * abs(pin) * abs(to_crank))
    knee = np.angle(to_crank / pin) - np.arccos(cosine)  # the branch of the assembly
    rod = np.angle(-(pin * np.exp(1j * knee) - to_crank))
    return {"hip": hip, "motor": motor, "knee": knee, "rod_pin": rod - motor}


def closed(robot, y):
    """The spanning position of y, without searching for it."""
    if robot.name == "four_bar_leg":
        q = four_bar_closed_by_hand(y)
        return np.array([q[name] for name in robot.joint_names])
    return robot.tree.home + robot.spanning_velocity(robot.tree.home, y)  # a gear is linear


def swing(robot, y, yd, seconds, step, tau):
    """RK4 in y; the loops are closed at every stage. Yields q and yd, from the start on."""

    def rates(y, yd):
        q = closed(robot, y)
        return yd, robot.forward_dynamics(q, yd, tau(q, yd))

    yield closed(robot, y), yd
    for _ in range(round(seconds / step)):
        v1, a1 = rates(y, yd)
        v2, a2 = rates(y + step / 2 * v1, yd + step / 2 * a1)
        v3, a3 = rates(y + step / 2 * v2, yd + step / 2 * a2)
        v4, a4 = rates(y + step * v3, yd + step * a3)
        y = y + step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        yd = yd + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        yield closed(robot, y), yd


def test_closure_by_hand_is_that_of_the_robot():
    robot = robot_named("four_bar_leg")
    for motor in np.linspace(1.0, 2.0, 11):
        y = np.array([0.3, motor])
        np.testing.assert_allclose(closed(robot, y), robot.close(y), 0, 1e-9)


@pytest.mark.parametrize(
    ("name", "start", "speed", "step"),
    [("four_bar_leg", [0.3, 1.6], [0.5, 0.0], 5e-3), ("geared_pendulum", [1.0], [2.0], 5e-3)],
)
def test_free_swing_conserves_energy(name, start, speed, step):
    robot = robot_named(name)
    start = np.array(start)
    no_force = np.zeros(robot.ny)
    path = list(swing(robot, start, np.array(speed), 10.0, step, lambda q, yd: no_force))
    energies = np.array([energy(robot, q, yd) for q, yd in path[::40]])
    kinetic = max(yd @ robot.mass_matrix(q) @ yd / 2 for q, yd in path[::40])
    motion = np.ptp([q for q, _ in path], axis=0)
    assert np.all(motion > 0.3)  # it does swing
    assert np.ptp(energies) < 1e-6 * kinetic


@pytest.mark.parametrize("name", ["four_bar_leg", "geared_pendulum"])
def test_actuators_give_what_energy_gains(name):
    robot = robot_named(name)
    start = np.array([0.3, 1.6][: robot.ny])
    actuated = list(robot.tree.actuated)
    pattern = np.linspace(1.0, -0.5, robot.ny)

    def tau(q, yd):
        return 0.3 * pattern * np.cos(q[0]) - 0.1 * yd

    path = list(swing(robot, start, np.zeros(robot.ny), 0.5, 1e-3, tau))
    power = []
    for q, yd in path:
        efforts = robot.actuator_efforts(q, tau(q, yd))
        power.append(efforts @ robot.spanning_velocity(q, yd)[actuated])
    work = np.sum((np.array(power)[1:] + np.array(power)[:-1]) / 2) * 1e-3
    gained = energy(robot, *path[-1]) - energy(robot, *path[0])
    assert abs(work) > 1e-3
    assert work == pytest.approx(gained, rel=1e-4)


@pytest.mark.parametrize("name", MECHANISMS)
def test_power_is_the_rate_of_energy(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    for s in states[:2]:
        tau = rng.normal(size=robot.ny)
        ydd = robot.forward_dynamics(s.q, s.yd, tau)
        qdd = robot.spanning_acceleration(s.q, s.yd, ydd)
        h = 1e-5 / np.sqrt(max(1.0, np.abs(s.qd).max(), np.abs(qdd).max()))

        def after(t, s=s, qdd=qdd, ydd=ydd):
            q = robot.tree.integrate(s.q, t * s.qd + t * t / 2 * qdd)
            return energy(robot, robot.close(q, guess=s.q), s.yd + t * ydd)

        rate = (after(h) - after(-h)) / (2 * h)
        size = max(1.0, np.abs(energy(robot, s.q, s.yd)))
        assert rate == pytest.approx(tau @ s.yd, rel=1e-5, abs=1e-11 * size / h + 1e-6)
