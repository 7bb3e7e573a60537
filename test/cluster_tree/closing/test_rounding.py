"""Loops of files that an exporter rounded: tolerances follow from the digits that it kept."""

import numpy as np
import pytest
from parallel_robots import spherical_manipulator

from rbda_ros import DescriptionError, InputError, load_robot
from rbda_ros.cluster_tree.closing.tolerances import NEARLY_CLOSED, ON_LOOPS, rounding_gap
from rbda_ros.description.source import significant_digits


@pytest.mark.parametrize("digits", [15, 8, 6, 5])
def test_rounded_exports_load(digits):
    urdf, loops = spherical_manipulator(digits)
    robot = load_robot(urdf, loops)
    assert robot.ny == 3
    assert robot.independent_joint_names == ("motor_0", "motor_1", "motor_2")
    exact = load_robot(*spherical_manipulator(15))
    motors = dict(zip(robot.independent_joint_names, (0.1, -0.05, 0.2), strict=True))
    tau, expected = (
        each.inverse_dynamics(each.close(motors), np.ones(3), np.ones(3)) for each in (robot, exact)
    )
    # Rounding of frames is what is left, and what it does to torques.
    np.testing.assert_allclose(tau, expected, atol=1e-12 if digits == 15 else 200 * 10.0**-digits)


def test_what_rounding_does_not_explain_is_still_refused():
    urdf, loops = spherical_manipulator(8)
    loops["constraints"][0]["successor"]["rpy"][1] += 2e-4
    with pytest.raises(DescriptionError, match=r"closes? .*more digits|does not close"):
        load_robot(urdf, loops)


def test_positions_of_such_a_file_may_be_off_by_its_rounding():
    robot = load_robot(*spherical_manipulator(6))
    q = robot.close({"motor_0": 0.1, "motor_1": 0.0, "motor_2": 0.1})
    off = q.copy()
    off[robot.coordinates.scalar_positions["motor_0"]] += 3e-5
    residual = np.abs(robot.kernel("loop_state").call(off)[0]).max()
    assert ON_LOOPS < residual < robot.tree.on_loops
    robot.inverse_dynamics(off, np.zeros(3), np.zeros(3))
    exact = load_robot(*spherical_manipulator(15))
    with pytest.raises(InputError, match="does not satisfy the loops"):
        exact.inverse_dynamics(off, np.zeros(3), np.zeros(3))


def test_digits_are_counted_in_frames_alone():
    assert significant_digits("<origin xyz='0.123457 -1.5e-3 0.0314159' rpy='1.5708 0 0'/>") == 6
    assert significant_digits("<origin xyz='0.3 0.25 0'/><mass value='1.23456789'/>") is None
    assert significant_digits("<pose>0.1234567 0 0 0 0 1.234567</pose>") == 7
    assert rounding_gap(None, 10) == rounding_gap(16, 10) == NEARLY_CLOSED
    assert rounding_gap(6, 10) == pytest.approx(6e-5)
