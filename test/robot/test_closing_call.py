"""Velocities of every joint from those measured, against Pinocchio's G."""

import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS

from rbda_ros import InputError, load_robot


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


def test_joints_that_say_the_same_do_not_determine_the_others():
    """As many as the independent joints of a five-bar, but one is geared to the other."""
    inertial = (
        "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>"
        "</inertial>"
    )
    bodies = "".join(
        f"<link name='{name}_link'>{inertial}</link><joint name='{name}' type='continuous'>"
        f"<parent link='{parent}'/><child link='{name}_link'/><origin xyz='{at}'/>"
        "<axis xyz='0 0 1'/></joint>"
        for name, parent, at in (
            ("left", "base", "0 0 0"),
            ("left_elbow", "left_link", "0.3 0 0"),
            ("right", "base", "0.4 0 0"),
            ("right_elbow", "right_link", "0.3 0 0"),
            ("dial", "base", "0 0 1"),
        )
    )
    ends = {
        end: {"link": f"{side}_elbow_link", "xyz": [0.4, 0, 0]}
        for end, side in (("predecessor", "left"), ("successor", "right"))
    }
    loops = {
        "constraints": [
            {"name": "tip", "type": "revolute", "axis": [0, 0, 1], **ends},
            {"name": "gear", "type": "coupling", "terms": {"left": 2.0, "dial": -1.0}},
        ],
        "assembly": {"left": 2.0, "left_elbow": -1.2, "right": 1.1, "right_elbow": 1.2},
    }
    robot = load_robot(f"<robot name='r'><link name='base'/>{bodies}</robot>", loops)
    places, home = robot.coordinates.scalar_positions, robot.neutral()
    assert robot.ny == 2
    for names in (("left", "dial"), ("dial", "left")):
        with pytest.raises(InputError, match="do not determine"):
            robot.close({name: home[places[name]] for name in names})
    closed = robot.close({"left": home[places["left"]] + 0.1, "right": home[places["right"]]})
    assert closed[places["dial"]] == pytest.approx(home[places["dial"]] + 0.2)
