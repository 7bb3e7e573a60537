"""Derivatives by recursions against algorithmic differentiation and Pinocchio's."""

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close, example_robots

from rbda_ros import load_robot
from rbda_ros.algorithms.derivatives import differentiated
from rbda_ros.algorithms.tree_derivatives import has_tree_derivatives, tree_derivatives
from rbda_ros.cluster_tree.regroup import regroup


def every_axis(joints=("revolute", "prismatic", "helical", "continuous", "prismatic")):
    """A branched robot with a joint of each type of one axis."""
    parts = ['<robot name="every_axis"><link name="l0">' + inertial(0) + "</link>"]
    for i, kind in enumerate(joints, 1):
        parent = f"l{max(0, i - 1 - i % 2)}"
        kind = "revolute" if kind == "helical" else kind
        parts.append(
            f'<link name="l{i}">{inertial(i)}</link><joint name="j{i}" type="{kind}">'
            f'<parent link="{parent}"/><child link="l{i}"/><axis xyz="0.3 {0.5 * i - 1} 0.8"/>'
            f'<origin xyz="0.2 {0.1 * i} -0.3" rpy="{0.4 * i} 0.2 -0.7"/>'
            '<limit lower="-6" upper="6" effort="9" velocity="9"/></joint>'
        )
    return "".join(parts) + "</robot>", {"joints": {"j3": {"type": "helical", "pitch": 0.3}}}


def inertial(i):
    return (
        f'<inertial><mass value="{1.0 + 0.3 * i}"/><origin xyz="0.1 {0.05 * i} -0.2"/><inertia'
        ' ixx="0.3" iyy="0.4" izz="0.5" ixy="0.02" ixz="-0.03" iyz="0.04"/></inertial>'
    )


def function(algorithm, robot):
    symbols = [
        ca.SX.sym(name, size) for name, size in zip("qvx", (robot.nq, *[robot.ny] * 2), strict=True)
    ]
    outputs = [ca.densify(ca.SX(A)) for A in algorithm(regroup(robot.tree), *symbols)]
    return ca.Function("derivatives", symbols, ca.cse(outputs))


def states(robot, count=3):
    rng = np.random.default_rng(5)
    for _ in range(count):
        q = robot.tree.integrate(robot.tree.home, rng.normal(size=robot.nv))
        yield robot.state(q).q, *rng.normal(size=(2, robot.ny))


def robots():
    for floating in (False, True):
        urdf, loops = every_axis()
        yield load_robot(urdf, loops, floating_base=floating)
    yield load_robot(example_robots()["ur5_robot"], gravity=(1.0, -2.0, 3.0))
    yield load_robot(example_robots()["solo12"], floating_base=True)


def test_they_are_those_of_algorithmic_differentiation():
    for robot in robots():
        assert has_tree_derivatives(robot.tree)
        recursive, by_ad = function(tree_derivatives, robot), function(differentiated, robot)
        assert recursive.n_instructions() < by_ad.n_instructions()
        for state in states(robot):
            for A, B in zip(recursive(*state), by_ad(*state), strict=True):
                assert_close(np.array(A), np.array(B), 1e-12)


@pytest.mark.parametrize("floating", [False, True])
def test_they_are_pinocchios(floating):
    urdf, _ = every_axis(("revolute", "prismatic", "revolute", "revolute", "prismatic"))
    robot = load_robot(urdf, floating_base=floating)
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromXML(urdf, *root)
    data = model.createData()
    places = [model.joints[model.getJointId(name)] for name in robot.joint_names]
    in_q = [*range(7 * floating), *(joint.idx_q for joint in places)]
    in_v = [*range(6 * floating), *(joint.idx_v for joint in places)]
    for q, yd, ydd in states(robot):
        theirs = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        for vector, place, values in zip(theirs, (in_q, in_v, in_v), (q, yd, ydd), strict=True):
            vector[place] = values
        by_q, by_v, _ = pin.computeRNEADerivatives(model, data, *theirs)
        ours = robot.inverse_dynamics_derivatives(q, yd, ydd)
        assert_close(ours.position, by_q[np.ix_(in_v, in_v)], 1e-11)
        assert_close(ours.velocity, by_v[np.ix_(in_v, in_v)], 1e-11)


def test_talos_takes_half_the_instructions():
    robot = load_robot(example_robots()["talos_reduced"], floating_base=True)
    assert robot.kernel("inverse_dynamics_derivatives").instructions <= 56_362 // 2


def test_loops_and_joints_of_several_axes_are_differentiated():
    for name in ("four_bar", "ball_joint_loop", "gear"):
        assert not has_tree_derivatives(MECHANISMS[name].tree())
    urdf, _ = every_axis()
    ball = load_robot(urdf, {"joints": {"j3": {"type": "spherical"}}})
    assert not has_tree_derivatives(ball.tree)
