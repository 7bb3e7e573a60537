"""The momentum observer against outside forces that a simulation applied."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS

from rbda_ros import InputError, MomentumObserver, Robot, load_robot
from rbda_ros.demo.resources import share_file

Y = np.array([0.1, 0.2, 0.9, 0.1])


@functools.cache
def leg() -> Robot:
    return load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )


def inertia(oracle, q, qd):
    """G' M G, of Pinocchio's terms."""
    G = oracle.explicit(q, qd)[0]
    return G.T @ oracle.mass_matrix(q) @ G


@pytest.mark.parametrize("name", MECHANISMS)
def test_momentum_and_its_rate(name):
    """p is H yd of Pinocchio; its rate, with forces, is found by small steps."""
    robot, oracle, states = mechanism_states(name)
    for s in states[:3]:
        p, free = robot.kernel("momentum").call(s.q, s.yd)
        np.testing.assert_allclose(p, s.G.T @ oracle.mass_matrix(s.q) @ s.qd, rtol=1e-8, atol=1e-9)
        h = 1e-5  # the tolerance below: these positions are off the loops by h^2
        later, earlier = (robot.tree.integrate(s.q, sign * h * s.qd) for sign in (1, -1))
        H_rate = (inertia(oracle, later, s.qd) - inertia(oracle, earlier, s.qd)) / (2 * h)
        bias = s.G.T @ (oracle.bias(s.q, s.qd) + oracle.mass_matrix(s.q) @ s.g)
        wanted = H_rate @ s.yd - bias
        np.testing.assert_allclose(free, wanted, rtol=1e-4, atol=1e-4 * (1 + np.abs(wanted).max()))


def run(observer, wrench, seconds=1.0, dt=1e-3):
    """The leg falls and swings under motors that hold it half, and a force on its foot."""
    robot = leg()
    y, yd, q = Y.copy(), np.zeros(4), robot.close(Y)
    estimates, truths = [], []
    for k in range(int(seconds / dt)):
        tau = robot.gravity_force(q) + np.array([5.0, 6.0, 4.0, 2.0]) * (Y - y) - 0.8 * yd
        outside = {} if wrench is None else {"foot": wrench}
        force = np.zeros(4)
        if wrench is not None:
            force = robot.inverse_dynamics(q, yd, np.zeros(4)) - robot.inverse_dynamics(
                q, yd, np.zeros(4), outside
            )
        estimates.append(observer.update(k * dt, q, yd, tau))
        truths.append(force)
        ydd = robot.forward_dynamics(q, yd, tau, outside)
        middle = robot.close(y + 0.5 * dt * yd, q)
        half = yd + 0.5 * dt * ydd
        ydd = robot.forward_dynamics(middle, half, tau, outside)
        y, yd = y + dt * half, yd + dt * ydd
        q = robot.close(y, q)
    return np.array(estimates), np.array(truths), q


def test_finds_a_force_on_the_foot():
    observer = MomentumObserver(leg(), 100.0)
    estimates, truths, _ = run(observer, [0.0, 0.0, 20.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(estimates[-1], truths[-1], rtol=0.02, atol=0.05)


def test_finds_nothing_where_nothing_is():
    estimates, _, _ = run(MomentumObserver(leg(), 100.0), None, seconds=0.3)
    assert np.abs(estimates).max() < 0.05


def test_follows_a_first_order_lag():
    """At rest, held still: r = tau_external (1 - exp(-gain t))."""
    robot, gain, dt = leg(), 10.0, 1e-4
    observer = MomentumObserver(robot, gain)
    q = robot.close(Y)
    tau = robot.gravity_force(q) - np.array([1.0, 0.0, -2.0, 0.5])
    for k in range(1001):
        found = observer.update(k * dt, q, np.zeros(4), tau)
    wanted = np.array([1.0, 0.0, -2.0, 0.5]) * (1.0 - np.exp(-gain * 0.1))
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-12)


def test_wrench_at_a_frame():
    robot = leg()
    q = robot.close(Y)
    force = np.array([3.0, -2.0, 10.0])
    outside = robot.jacobian(q, "foot")[:3].T @ force
    observer = MomentumObserver(robot, 1000.0)
    for k in range(100):
        observer.update(0.01 * k, q, np.zeros(4), robot.gravity_force(q) - outside)
    np.testing.assert_allclose(observer.wrench("foot", linear_only=True)[:3], force, rtol=1e-3)
    explained = robot.jacobian(q, "foot").T @ observer.wrench("foot")
    np.testing.assert_allclose(explained, observer.external, rtol=1e-6, atol=1e-9)


def test_efforts_of_motors_will_do():
    robot = leg()
    q = robot.close(Y)
    spanning = np.zeros(robot.nv)
    spanning[list(robot.tree.actuated)] = robot.actuator_efforts(q, robot.gravity_force(q))
    observer = MomentumObserver(robot)
    for k in range(10):
        found = observer.update(0.01 * k, q, np.zeros(4), spanning)
    assert np.abs(found).max() < 1e-10


def test_mistakes_are_named():
    robot = leg()
    for gain in (0.0, -1.0, np.nan, [1.0, 2.0], "fast"):
        with pytest.raises(InputError, match="gain"):
            MomentumObserver(robot, gain)
    observer = MomentumObserver(robot)
    with pytest.raises(InputError, match="nothing was observed"):
        observer.wrench("foot")
    observer.update(1.0, Y, np.zeros(4), np.zeros(4))
    with pytest.raises(InputError, match="not later"):
        observer.update(1.0, Y, np.zeros(4), np.zeros(4))
    with pytest.raises(InputError, match="finite"):
        observer.update(2.0, Y, np.zeros(4), [np.nan, 0.0, 0.0, 0.0])
