"""Other independent joints for the same robot: the same motion, told by other coordinates."""

import numpy as np
import pytest
from loop_oracle import mechanism_states

from rbda_ros import InputError, Payload

MECHANISMS = (
    "four_bar", "slider_crank", "geared_four_bar", "nested_loops", "tello_leg", "universal_cut",
    "ball_screw_knee", "free_parents",
)  # fmt: skip


def free_motion(robot, q, qd):
    """(nv,) accelerations of a robot on which nothing acts but gravity."""
    yd = qd[list(robot.tree.independent)]
    return robot.spanning_acceleration(q, yd, robot.forward_dynamics(q, yd, np.zeros(robot.ny)))


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_motion_does_not_depend_on_the_choice(name, count):
    robot, _, states = mechanism_states(name)
    dependent = [n for n in robot.joint_names if n not in robot.independent_joint_names]
    for state in states[:count]:
        for joints in (None, dependent[:1]):
            try:
                other = robot.with_independent_joints(joints, at=state.q)
            except InputError:  # one joint may not be enough
                continue
            expected = free_motion(robot, state.q, state.qd)
            near = 1e-8 * np.abs(expected).max()
            assert free_motion(other, state.q, state.qd) == pytest.approx(expected, abs=near)
            assert other.actuated_joint_names == robot.actuated_joint_names


def four_bar():
    return mechanism_states("four_bar")[0]


def test_payloads_stay():
    robot = four_bar().with_payloads({"load": Payload("rocker_link", 2.0)})
    other = robot.with_independent_joints(["rocker"])
    assert other.payloads == robot.payloads
    assert other.mass == pytest.approx(robot.mass)
    assert "rocker" in other.independent_joint_names


@pytest.mark.parametrize(
    ("joints", "words"),
    [(["knee"], "has no joint 'knee'"), (["crank", "rocker"], "too many")],
)
def test_names_that_will_not_do_are_told(joints, words):
    with pytest.raises(InputError, match=words):
        four_bar().with_independent_joints(joints)


def test_a_position_off_the_loops_is_refused():
    robot = four_bar()
    off = robot.tree.home.copy()
    off[robot.coordinates.scalar_positions["rocker"]] += 0.1
    with pytest.raises(InputError, match="does not satisfy the loops"):
        robot.with_independent_joints(at=off)
