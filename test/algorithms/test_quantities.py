"""Quantities that every dynamics library has, against Pinocchio's, projected onto the loops.

Over all mechanisms of the table, and robots of example-robot-data with and without a floating base.
"""

import numpy as np
import pytest
from loop_oracle import STENCIL, mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    random_state,
)

from rbda_ros import SingularityError, load_robot

BY_DAY = {("panda", False), ("solo12", True), ("talos_full_v2", True)}
EXAMPLES = [
    pytest.param(name, floating, marks=[pytest.mark.nightly] * ((name, floating) not in BY_DAY))
    for name in distinct_robots()
    for floating in (False, True)
    if floating or name != "quadrotor_base"  # which is one link
]


def check(robot, oracle, q, qd, ydd, G, g, C_expected):
    """Every quantity at one state, as Pinocchio has it for the spanning tree."""
    yd, qdd = qd[list(robot.independent_coordinates)], G @ ydd + g
    size = robot.mass
    assert_close(robot.center_of_mass(q), oracle.center_of_mass(q), 1e-10)
    assert_close(robot.center_of_mass_jacobian(q), oracle.center_of_mass_jacobian(q) @ G, 1e-10)
    bias = robot.center_of_mass_bias_acceleration(q, qd)
    assert_close(bias, oracle.center_of_mass_acceleration(q, qd, g), 1e-10)
    A = robot.centroidal_momentum_matrix(q)
    assert_close(A, oracle.centroidal_momentum_matrix(q) @ G, 1e-10, size)
    assert_close(robot.centroidal_momentum(q, qd), oracle.centroidal_momentum(q, qd), 1e-10, size)
    assert_close(A @ yd, oracle.centroidal_momentum(q, qd), 1e-10, size)
    rate = robot.centroidal_momentum_rate(q, qd, ydd)
    assert_close(rate, oracle.centroidal_momentum_rate(q, qd, qdd), 1e-10, size)
    assert_close(robot.energy(q, qd), oracle.energy(q, qd), 1e-10, 9.81 * size)
    C = robot.coriolis_matrix(q, qd)
    H = G.T @ oracle.mass_matrix(q) @ G
    assert_close(C, C_expected, 1e-10, np.abs(H).max())
    forces = robot.bias_force(q, qd) - robot.gravity_force(q)
    assert_close(C @ yd, forces, 1e-10)
    if np.linalg.matrix_rank(H) < robot.ny:
        with pytest.raises(SingularityError):
            robot.mass_matrix_inverse(q)
    else:
        inverse = np.linalg.inv(H)
        assert_close(robot.mass_matrix_inverse(q), inverse, 1e-10 * np.linalg.cond(H) ** 0.5)
    check_frames(robot, oracle, q, qd, ydd, qdd, G)
    check_manifold(robot, oracle, q, qd)


def check_frames(robot, oracle, q, qd, ydd, qdd, G):
    poses, speed = robot.frame_poses(q), np.abs(qd).sum()
    assert poses.shape == (len(robot.frames), 4, 4)
    for frame in {robot.frames[0], robot.frames[-1], robot.frames[len(robot.frames) // 2]}:
        at = robot.frames.index(frame)
        assert_close(poses[at], oracle.frame_pose(q, frame), 1e-10)
        for place in (frame, (frame, (0.1, -0.2, 0.3))):
            velocity = oracle.jacobian(q, place) @ qd
            assert_close(robot.frame_velocity(q, qd, place), velocity, 1e-10, speed)
            acceleration = oracle.frame_acceleration(q, qd, qdd, place)
            got = robot.frame_acceleration(q, qd, ydd, place)
            assert_close(got, acceleration, 1e-10, speed + speed**2)


def check_manifold(robot, oracle, q, qd):
    for dt in (1e-12, 1e-3, 0.4):
        reached = robot.integrate(q, qd, dt)
        assert_close(oracle.position(reached), oracle.integrate(q, dt * qd), 1e-10)
        assert_close(robot.difference(q, reached), oracle.difference(q, reached), 1e-10)
        assert_close(robot.difference(q, reached), dt * qd, 1e-10)


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_equal_pinocchio(name):
    robot, oracle, states = mechanism_states(name)
    rng = np.random.default_rng(3)
    for s in states[:2]:
        C = christoffel(oracle, s) if robot.nq == robot.nv else projected(robot, oracle, s)
        check(robot, oracle, s.q, s.qd, rng.normal(size=robot.ny), s.G, s.g, C)


def christoffel(oracle, s):
    """C of coordinates: Coriolis forces are a symmetric form of yd, and C yd is half of it."""
    H = oracle.mass_matrix(s.q)
    at_rest = oracle.bias(s.q, np.zeros_like(s.qd))

    def forces(yd):
        qd = s.G @ yd
        g = oracle.explicit(s.q, qd)[1]
        return s.G.T @ (oracle.bias(s.q, qd) - at_rest + H @ g)

    own = forces(s.yd)
    columns = [(forces(s.yd + e) - own - forces(e)) / 2 for e in np.eye(len(s.yd))]
    return np.array(columns).T


def projected(robot, oracle, s):
    """``G' (C G + H G-dot)``, with G-dot by differences along the motion."""
    h = 2e-3 / np.abs(s.qd).max(initial=1.0)

    def G(t):
        q = robot.tree.integrate(s.q, t * s.qd + t**2 / 2 * s.g)
        return explicit_jacobian(robot, robot.close(q, q) if robot.has_loops else q)

    G_rate = sum(c * (G(i * h) - G(-i * h)) for i, c in STENCIL.items()) / h
    return s.G.T @ (oracle.coriolis_matrix(s.q, s.qd) @ s.G + oracle.mass_matrix(s.q) @ G_rate)


@pytest.mark.parametrize(("name", "floating_base"), EXAMPLES)
def test_example_robots_equal_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(4)
    for _ in range(2):
        q, qd, ydd = random_state(robot, rng)
        G = explicit_jacobian(robot, q) if robot.nv != robot.ny else np.eye(robot.nv)
        C = G.T @ oracle.coriolis_matrix(q, qd) @ G
        check(robot, oracle, q, qd, ydd, G, np.zeros(robot.nv), C)


SPRINGS = """<mujoco><compiler angle='radian'/><option><flag energy='enable'/></option><worldbody>
<body name='arm'><joint name='hinge' axis='0 1 .3' stiffness='7' springref='.4' armature='.3'/>
 <inertial pos='.1 .02 -.03' mass='1.2' diaginertia='.02 .03 .025'/>
 <body name='rod' pos='.2 0 0'><joint name='slide' type='slide' axis='1 0 0' stiffness='30'/>
  <inertial pos='.1 .02 -.03' mass='.7' diaginertia='.02 .03 .025'/></body></body></worldbody>
</mujoco>"""


def test_energy_has_springs_and_armature_as_mujoco_has_them():
    mujoco = pytest.importorskip("mujoco", reason="the oracle is MuJoCo")
    model = mujoco.MjModel.from_xml_string(SPRINGS)
    data, robot = mujoco.MjData(model), load_robot(SPRINGS)
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:], data.qvel[:] = rng.normal(size=(2, 2))
        mujoco.mj_forward(model, data)
        kinetic, potential = robot.energy(data.qpos, data.qvel)
        assert isinstance(kinetic, float)
        assert_close((potential, kinetic), data.energy, 1e-12)


@pytest.mark.parametrize("name", ["overlapping_loops", "parallel_ankle", "ball_screw_knee"])
def test_coriolis_matrix_belongs_to_the_mass_matrix(name):
    """``H-dot - 2 C`` is skew-symmetric, with H-dot from momentum: ``H-dot yd + H ydd``."""
    robot, _, states = mechanism_states(name)
    for s in states[:3]:
        h = 1e-3 / np.abs(s.qd).max()

        def H(t, s=s):
            q = robot.tree.integrate(s.q, t * s.qd + t**2 / 2 * s.g)
            return robot.mass_matrix(robot.close(q, q))

        rate = sum(c * (H(i * h) - H(-i * h)) for i, c in STENCIL.items()) / h
        odd = rate - 2 * robot.coriolis_matrix(s.q, s.qd)
        assert_close(odd + odd.T, np.zeros_like(odd), 1e-8, np.abs(rate).max(initial=1.0))


def test_robot_without_mass_has_no_center():
    robot = load_robot("""<robot name="ghost"><link name="base"/><link name="arm"/>
      <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
      <axis xyz="0 1 0"/></joint></robot>""")
    with pytest.raises(SingularityError, match="no inertia"):
        robot.center_of_mass([0.1])
