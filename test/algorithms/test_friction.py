"""Friction and damping of the URDF: their size, their sign, and the switch."""

import numpy as np
import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close

from rbda_ros import load_robot
from rbda_ros.algorithms.friction import STICTION_SPEED

DAMPING = {"swing": 0.3, "rotor": 0.002, "elbow": 0.1, "crank": 0.05, "rocker": 0.2}
FRICTION = {"swing": 0.2, "rotor": 0.01, "elbow": 0.0, "coupler": 0.3}


def with_friction(name):
    """A mechanism of the table whose joints have friction and damping."""
    mechanism = MECHANISMS[name]
    text = mechanism.urdf.read_text()
    for joint in {*DAMPING, *FRICTION}:
        start = text.find(f'<joint name="{joint}"')
        if start >= 0:
            end = text.index("</joint>", start)
            damping, friction = DAMPING.get(joint, 0.0), FRICTION.get(joint, 0.0)
            tag = f'<dynamics damping="{damping}" friction="{friction}"/>'
            text = text[:end] + tag + text[end:]
    return load_robot(text, mechanism.loops, floating_base=mechanism.floating_base)


@pytest.fixture(params=["gear", "four_bar"])
def robot(request):
    return with_friction(request.param)


def states(robot, count=20):
    rng = np.random.default_rng(1)
    for _ in range(count):
        step = rng.normal(size=robot.nv) * 0.2
        yield robot.close(robot.tree.integrate(robot.tree.home, step)), rng.normal(size=robot.ny)


def test_every_joint_counts_on_its_own_side_of_the_gear(robot):
    for q, yd in states(robot):
        qd = robot.spanning_velocity(q, yd)
        base = 6 if robot.floating_base else 0
        d, f = np.zeros((2, robot.nv))
        d[base:] = [DAMPING.get(name, 0.0) for name in robot.joint_names]
        f[base:] = [FRICTION.get(name, 0.0) for name in robot.joint_names]
        spanning = d * qd + f * np.tanh(qd / STICTION_SPEED)
        expected = robot.generalized_force(q, spanning)
        assert_close(robot.friction_force(q, yd), expected, 1e-12)


def test_takes_power_and_never_gives_any(robot):
    for q, yd in states(robot, 50):
        for scale in (1e-6, 1e-2, 1.0, 100.0):
            assert robot.friction_force(q, scale * yd) @ (scale * yd) >= 0.0
    assert not robot.friction_force(q, 0.0 * yd).any()


def test_is_off_unless_asked_for(robot):
    rng = np.random.default_rng(2)
    for q, yd in states(robot, 5):
        ydd, tau = rng.normal(size=(2, robot.ny))
        plain = robot.inverse_dynamics(q, yd, ydd)
        friction = robot.friction_force(q, yd)
        assert np.abs(friction).max() > 1e-3
        assert_close(robot.inverse_dynamics(q, yd, ydd, friction=True), plain + friction, 1e-13)
        expected = robot.forward_dynamics(q, yd, tau - friction)
        assert_close(robot.forward_dynamics(q, yd, tau, friction=True), expected, 1e-13)
        assert_close(robot.bias_force(q, yd), robot.inverse_dynamics(q, yd, 0 * ydd), 1e-13)


def test_inverse_and_forward_dynamics_agree_about_it(robot):
    rng = np.random.default_rng(3)
    for q, yd in states(robot, 5):
        ydd = rng.normal(size=robot.ny)
        tau = robot.inverse_dynamics(q, yd, ydd, friction=True)
        assert_close(robot.forward_dynamics(q, yd, tau, friction=True), ydd, 1e-9)


def test_coulomb_friction_at_speed():
    robot = with_friction("gear")
    names = robot.independent_joint_names
    speed = np.array([5.0 if name == "swing" or name == "rotor" else 0.0 for name in names])
    qd = dict(zip(robot.joint_names, robot.spanning_velocity(robot.tree.home, speed), strict=True))
    power = robot.friction_force(robot.tree.home, speed) @ speed
    expected = sum(d * qd[j] ** 2 for j, d in DAMPING.items() if j in qd)
    expected += sum(f * abs(qd[j]) for j, f in FRICTION.items() if j in qd)
    assert power == pytest.approx(expected)
