"""Motions that excite: inside every limit, loops closed, and better than others."""

import numpy as np
import pytest
from bag_maker import LEG, LOOPS
from identification_cases import ROBOTS

from rbda_ros import InputError, load_robot
from rbda_ros.recordings.excitation import excite


@pytest.fixture(scope="module")
def found():
    robot = ROBOTS["demo_leg"]()
    return robot, excite(robot, seconds=8.0, rate=50.0, tries=12)


def test_stays_inside_the_limits_of_all_joints_and_motors(found):
    robot, motion = found
    limits = {joint.name: joint.limits for joint in robot.description.joints}
    q = robot.close(motion.position)
    qd = robot.spanning_velocity(q, motion.velocity)
    efforts, force = robot.inverse_dynamics_efforts(q, motion.velocity, motion.acceleration)
    for j, name in enumerate(robot.joint_names):
        assert limits[name].lower < q[:, j].min() and q[:, j].max() < limits[name].upper
        assert np.abs(qd[:, j]).max() < limits[name].velocity
    for j, name in enumerate(robot.independent_joint_names):
        assert np.abs(force[:, j]).max() < limits[name].effort
    for j, name in enumerate(robot.actuated_joint_names):
        assert np.abs(efforts[:, j]).max() < limits[name].effort


def test_begins_and_ends_at_rest_and_rates_are_those_of_positions(found):
    _, motion = found
    for numbers in (motion.velocity, motion.acceleration):
        np.testing.assert_allclose(numbers[[0, -1]], 0.0, atol=1e-12)
    step = motion.times[1]
    for rate, of in ((motion.velocity, motion.position), (motion.acceleration, motion.velocity)):
        slopes = np.gradient(of, step, axis=0)[1:-1]
        np.testing.assert_allclose(slopes, rate[1:-1], atol=0.02 * np.abs(rate).max())


def test_tells_of_friction_and_masses_and_more_tries_are_no_worse(found):
    robot, motion = found
    told = set(motion.told)
    assert {f"{name}.damping" for name in robot.independent_joint_names} <= told
    assert "thigh.mz" in told and not told & set(motion.untold)
    fewer = excite(robot, seconds=8.0, rate=50.0, tries=3)
    assert motion.information >= fewer.information > 0.0


def test_the_limits_of_a_motor_bind():
    """Weak motors move less."""
    urdf = (
        '<robot name="arm"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
        '</inertial></link><joint name="j" type="revolute"><parent link="base"/><child link="arm"/>'
        '<axis xyz="0 0 1"/><limit lower="-2" upper="2" velocity="9" effort="{}"/></joint></robot>'
    )
    widths = []
    for effort in (50.0, 0.2):
        motion = excite(load_robot(urdf.format(effort)), seconds=4.0, rate=50.0, tries=6)
        widths.append(np.ptp(motion.position))
    assert widths[1] < 0.9 * widths[0]
    limited = excite(
        load_robot(urdf.format(50.0)), seconds=4.0, rate=50.0, tries=6, effort_limits={"j": 0.2}
    )
    assert np.ptp(limited.position) < 0.9 * widths[0]
    with pytest.raises(InputError, match="no motion around the assembly fits"):
        weak = urdf.format(0.2).replace("0 0 1", "0 1 0")  # cannot even hold its weight
        excite(load_robot(weak), seconds=4.0, rate=50.0, tries=3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"what": ("payload",)}, "what: payload"),
        ({"seconds": -1.0}, "give at least"),
        ({"seconds": float("nan")}, "give at least"),
    ],
)
def test_refuses_what_it_cannot_do(arguments, says):
    with pytest.raises(InputError, match=says):
        excite(ROBOTS["demo_leg"](), **arguments)
    with pytest.raises(InputError, match="fixed base"):
        excite(load_robot(LEG, LOOPS, floating_base=True))
