"""Commands in joint space as commands for the motors, over and over."""

import functools

import numpy as np
import pytest

from rbda_ros import ClosureError, InputError, SingularityError, load_robot
from rbda_ros.demo.resources import share_file

Y, YD = np.array([0.1, 0.3, 0.9, -0.1]), np.array([0.5, -1.0, 2.0, 0.3])


@functools.cache
def leg():
    return load_robot(
        share_file("config/robots/demo_leg.urdf"), share_file("config/robots/demo_leg_loops.yaml")
    )


def moved(call, position, velocity=YD):
    call.position[:], call.velocity[:] = position, velocity
    call()
    return call


@pytest.mark.parametrize("of_motors", [False, True])
def test_motion_and_efforts_equal_the_methods(of_motors):
    """An impedance at the joints, beside efforts and feedforward, from joints or from motors."""
    robot, rng = leg(), np.random.default_rng(1)
    motors, joints = robot.actuated_joint_names, robot.independent_joint_names
    names = motors if of_motors else joints
    call = robot.motor_command(
        names, efforts=("commanded", "springs", "dampers", "feedforward"), measured=motors
    )
    in_qd = [robot.coordinates.velocities[name].start for name in call.joints]
    in_q = [robot.coordinates.scalar_positions[name] for name in call.joints]
    here = robot.close(Y + 0.1)
    measured = robot.spanning_velocity(here, -YD)
    for k in range(5):
        q = robot.close(Y + 0.05 * k, call.q)
        qd = robot.spanning_velocity(q, YD)
        call.effort[:], call.stiffness[:], call.damping[:] = rng.normal(size=(3, robot.nv))
        call.measured_q[:], call.feedforward[:] = here, rng.normal(size=len(motors))
        call.measured_velocity[:] = measured[sorted(robot.tree.actuated)]
        moved(call, q[in_q], qd[in_qd])
        np.testing.assert_allclose(call.q, q, atol=1e-9)
        np.testing.assert_allclose(
            call.motor_position, q[[robot.joint_names.index(name) for name in motors]], atol=1e-8
        )
        np.testing.assert_allclose(call.motor_velocity, qd[list(robot.tree.actuated)], atol=1e-7)
        # Joints of the leg have one coordinate each: q and qd stand in the same places.
        spanning = call.effort + call.stiffness * (q - here) + call.damping * (qd - measured)
        tau = robot.generalized_force(here, spanning)
        wanted = robot.actuator_efforts(here, tau) + call.feedforward
        np.testing.assert_allclose(call.motor_effort, wanted, rtol=1e-8, atol=1e-8)


def test_efforts_alone_stop_at_their_limits():
    robot = leg()
    call = robot.motor_command(None, efforts=("commanded",))
    q = robot.close(Y)
    call.start_from(q)
    call.measured_q[:] = q
    call.effort[robot.joint_names.index("knee")] = 7.0
    call()
    tau = robot.generalized_force(q, call.effort)
    wanted = robot.actuator_efforts(q, tau)
    np.testing.assert_allclose(call.motor_effort, wanted, rtol=1e-9, atol=1e-12)
    call.limit[:] = 0.1
    call()
    np.testing.assert_allclose(call.motor_effort, np.clip(wanted, -0.1, 0.1), rtol=1e-9, atol=1e-12)


def test_what_cannot_be_is_refused_and_forgotten():
    robot = leg()
    call = robot.motor_command(robot.independent_joint_names, efforts=("commanded",))
    q = moved(call, Y).q.copy()
    with pytest.raises(ClosureError, match="within reach"):
        moved(call, [*Y[:3], 9.0])
    np.testing.assert_allclose(moved(call, Y).q, q, atol=1e-10)
    with pytest.raises(InputError, match="not finite"):
        moved(call, [*Y[:3], np.nan])
    call.effort[0] = np.inf
    with pytest.raises(InputError, match="not finite"):
        moved(call, Y)
    call.effort[0] = 0.0
    call.max_condition_number = 1.0
    with pytest.raises(SingularityError, match="dead point"):
        moved(call, Y)


def test_a_pose_near_the_robot_but_far_from_the_last_command():
    """As when the robot was moved by hand: a controller may take it up from where it is."""
    robot = leg()
    call = robot.motor_command(robot.independent_joint_names)
    call.measured_q[:] = robot.close(Y)
    call.start_from(np.full(robot.nq, 1e3))
    np.testing.assert_allclose(moved(call, Y + 0.02).q, robot.close(Y + 0.02), atol=1e-9)


def test_efforts_that_the_motors_cannot_give():
    text = share_file("config/robots/demo_leg_loops.yaml").read_text()
    robot = load_robot(
        share_file("config/robots/demo_leg.urdf"), text.replace(", ankle_pulley_rotor]", "]")
    )
    call = robot.motor_command(robot.independent_joint_names, efforts=("commanded",))
    call.measured_q[:] = robot.close(Y)
    call.effort[robot.joint_names.index("ankle")] = 1.0
    with pytest.raises(InputError, match="cannot give the commanded force on"):
        moved(call, Y)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="efforts: luck; there are commanded"):
        leg().motor_command(None, efforts=("luck",))
