"""Velocities of every joint from those measured, against Pinocchio's G."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS

from rbda_ros import InputError


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"ball_joint_loop", "planar_joint_loop"}))
def test_equals_the_oracle(name):
    robot, _, states = mechanism_states(name)
    call = robot.completion(robot.independent_joint_names)
    joints = robot.determining_joints(robot.independent_joint_names)
    for s in states[:3]:
        call.q[:] = s.q
        call.base_twist[:] = s.qd[: robot.coordinates.base_nv]
        call.velocity[:] = [s.qd[robot.coordinates.velocities[n].start] for n in joints]
        np.testing.assert_allclose(call(), s.qd, rtol=1e-8, atol=1e-9)


def test_joints_that_do_not_determine_the_others():
    robot = MECHANISMS["chained_loops"].load()
    with pytest.raises(InputError, match="do not determine"):
        robot.completion(["crank"])
