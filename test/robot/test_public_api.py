"""The members of `Robot` that users are promised: names, shapes, and how they belong together."""

import pickle

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import Simulator


@pytest.mark.parametrize("name", ["gear", "four_bar", "parallel_ankle"])
def test_every_member_answers(name):
    robot = MECHANISMS[name].load()
    state = robot.random_state(3)
    q, yd, ny, nv = state.q, state.yd, robot.ny, robot.nv
    frame, still = robot.frames[-1], np.zeros(robot.ny)
    assert q.shape == (robot.nq,) and yd.shape == (ny,) and robot.mass > 0.0
    assert set(robot.independent_joint_names) <= set(robot.joint_names)
    assert set(robot.actuated_joint_names) <= set(robot.joint_names)
    assert {joint for each in robot.clusters for joint in each.joints} >= set(robot.joint_names)
    assert len(robot.limits.lower) == robot.nq and frame in robot.links
    np.testing.assert_allclose(robot.close(q), q, atol=1e-9)
    assert isinstance(robot.within_limits(q), bool | np.bool_)

    tau = robot.inverse_dynamics(q, yd, still)
    np.testing.assert_allclose(robot.forward_dynamics(q, yd, tau), still, atol=1e-8)
    np.testing.assert_allclose(robot.bias_force(q, yd), tau, atol=1e-9)
    np.testing.assert_allclose(robot.gravity_force(q), robot.bias_force(q, still), atol=1e-9)
    H = robot.mass_matrix(q)
    np.testing.assert_allclose(H @ robot.mass_matrix_inverse(q), np.eye(ny), atol=1e-8)
    C = robot.coriolis_matrix(q, yd)
    np.testing.assert_allclose(C @ yd + robot.gravity_force(q), tau, atol=1e-8)
    qd = robot.spanning_velocity(q, yd)
    assert qd.shape == robot.spanning_acceleration(q, yd, still).shape == (nv,)
    space = robot.operational_space_inertia(q, [frame])
    assert space.inverse_inertia.shape == (6, 6) and 0 < space.rank <= 6
    assert robot.frame_pose(q, frame).shape == (4, 4)
    J = robot.jacobian(q, frame)
    np.testing.assert_allclose(robot.frame_velocity(q, yd, frame), J @ yd, atol=1e-9)
    bias = robot.frame_bias_acceleration(q, yd, frame)
    np.testing.assert_allclose(robot.frame_acceleration(q, yd, still, frame), bias, atol=1e-9)
    assert robot.regressor(q, yd, still).shape == (ny, len(robot.parameters().values))
    if not robot.floating_base:
        assert robot.actuator_efforts(q, tau).shape == (len(robot.actuated_joint_names),)
        assert robot.actuation(q).W.shape[0] == len(robot.actuated_joint_names)

    speed = robot.center_of_mass_jacobian(q) @ yd
    assert robot.center_of_mass(q).shape == speed.shape == (3,)
    A = robot.centroidal_momentum_matrix(q)
    np.testing.assert_allclose((A @ yd)[:3], robot.mass * speed, atol=1e-9)
    kinetic, _ = robot.energy(q, yd)
    np.testing.assert_allclose(kinetic, yd @ H @ yd / 2, rtol=1e-9)
    reached = robot.integrate(q, yd, 1e-3)
    np.testing.assert_allclose(robot.difference(q, reached), 1e-3 * qd, atol=1e-9)
    assert robot.neutral().shape == (robot.nq,)

    y = robot.independent_position(q)
    for function, given in (
        (robot.casadi("forward_dynamics", near=q), (y, yd, tau)),
        (robot.casadi("forward_dynamics", coordinates="spanning"), (q, qd, tau)),
    ):
        assert isinstance(function, ca.Function)
        np.testing.assert_allclose(np.array(function(*given)).ravel(), still, atol=1e-7)
    kernel = robot.kernel("inverse_dynamics")
    assert kernel.instructions > 0 and kernel.call(q, yd, still)[0].shape == (ny,)
    assert kernel.batch(q[None], yd[None], still[None])[0].shape == (1, ny)
    again = pickle.loads(pickle.dumps(robot))
    np.testing.assert_array_equal(again.inverse_dynamics(q, yd, still), tau)
    assert robot.name in repr(robot)
    for batch in (None, 2):
        simulator = Simulator(robot, dt=1e-3, batch=batch)
        simulator.reset(seed=1)
        simulator.step(np.zeros(len(robot.actuated_joint_names)))
        assert simulator.q.shape[-1] == robot.nq and simulator.qd.shape[-1] == nv
