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
    call.move()
    return call


def test_motion_and_efforts_equal_the_methods():
    robot = leg()
    call = robot.motor_command(robot.independent_joint_names)
    for k in range(5):
        y = Y + 0.05 * k
        moved(call, y)
        q = robot.close(y, call.q)
        np.testing.assert_allclose(call.q, q, atol=1e-9)
        np.testing.assert_allclose(call.qd, robot.spanning_velocity(q, YD), atol=1e-8)
        spanning = np.random.default_rng(k).normal(size=robot.nv)
        wanted = robot.actuator_efforts(q, robot.generalized_force(q, spanning))
        np.testing.assert_allclose(call.efforts(q, spanning), wanted, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_is_refused_and_forgotten():
    robot = leg()
    call = robot.motor_command(robot.independent_joint_names)
    q = moved(call, Y).q.copy()
    with pytest.raises(ClosureError, match="within reach"):
        moved(call, [*Y[:3], 9.0])
    np.testing.assert_array_equal(call.q, q)
    with pytest.raises(InputError, match="not finite"):
        moved(call, [*Y[:3], np.nan])
    call.max_condition_number = 1.0
    with pytest.raises(SingularityError, match="dead point"):
        moved(call, Y)


def test_efforts_that_the_motors_cannot_give():
    text = share_file("config/robots/demo_leg_loops.yaml").read_text()
    robot = load_robot(
        share_file("config/robots/demo_leg.urdf"), text.replace(", ankle_pulley_rotor]", "]")
    )
    call = robot.motor_command(robot.independent_joint_names)
    spanning = np.zeros(robot.nv)
    spanning[robot.joint_names.index("ankle")] = 1.0
    with pytest.raises(InputError, match="cannot give the commanded force on"):
        call.efforts(robot.close(Y), spanning)
