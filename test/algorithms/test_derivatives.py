"""Derivatives against central differences along the manifold, CasADi's AD and Pinocchio's."""

import numpy as np
import pinocchio as pin
import pytest
from loop_oracle import STENCIL, mechanism_states
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import assert_close, example_robots, random_state
from reference_data import SHARED_ROBOTS, shared_robot

from benchmark.derivative_counts import differentiated, traced
from rbda_ros import load_robot
from rbda_ros.algorithms.derivatives import inverse_dynamics_derivatives

ROBOTS = example_robots()
STEP = 5e-4


def differences(robot, function, q, yd, third):
    """By y, along the manifold and the base's twist; by yd; by the third argument."""

    def moved(i, h):
        step = robot.spanning_velocity(q, h * np.eye(robot.ny)[i])
        return robot.close(robot.tree.integrate(q, step), guess=q)

    def central(at):
        columns = [
            sum(c * (at(i, n * STEP) - at(i, -n * STEP)) for n, c in STENCIL.items()) / STEP
            for i in range(robot.ny)
        ]
        return np.array(columns).T

    e = np.eye(robot.ny)
    return (
        central(lambda i, h: function(moved(i, h), yd, third)),
        central(lambda i, h: function(q, yd + h * e[i], third)),
        central(lambda i, h: function(q, yd, third + h * e[i])),
    )


def check(robot, q, yd, third):
    pairs = (
        (robot.inverse_dynamics, robot.inverse_dynamics_derivatives),
        (robot.forward_dynamics, robot.forward_dynamics_derivatives),
    )
    for function, derivatives in pairs:
        got = derivatives(q, yd, third)
        value = function(q, yd, third)
        expected = differences(robot, function, q, yd, third)
        for mine, theirs in zip(vars(got).values(), expected, strict=True):
            # A difference loses the digits of the value over the step.
            assert_close(mine, theirs, 1e-9, size=max(1.0, np.abs(value).max()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_against_differences(name):
    robot, _, states = mechanism_states(name)
    rng = np.random.default_rng(1)
    for s in states[:2]:
        check(robot, s.q, s.yd, rng.normal(size=robot.ny))


@pytest.mark.parametrize(("name", "floating"), [("panda", False), ("solo12", True)])
def test_trees_against_differences(name, floating):
    robot = load_robot(ROBOTS[name], floating_base=floating)
    q, qd, tau = random_state(robot, np.random.default_rng(2))
    check(robot, q, qd[list(robot.tree.independent)], tau)


def check_against_ad(tree, positions):
    recursive, by_ad = (traced(f, tree) for f in (inverse_dynamics_derivatives, differentiated))
    rng = np.random.default_rng(3)
    for q in positions:
        state = q, *rng.normal(size=(2, tree.ny))
        for A, B in zip(recursive(*state), by_ad(*state), strict=True):
            assert_close(np.array(A), np.array(B), 1e-11)


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_against_algorithmic_differentiation(name):
    check_against_ad(MECHANISMS[name].tree(), closed_states(MECHANISMS[name], 3))


@pytest.mark.parametrize("name", SHARED_ROBOTS)
def test_shared_robots_against_algorithmic_differentiation(name):
    robot = load_robot(shared_robot(name), floating_base="humanoid" in name or "four" in name)
    rng = np.random.default_rng(4)
    moved = robot.tree.integrate(robot.tree.home, 0.05 * rng.normal(size=robot.nv))
    check_against_ad(robot.tree, [robot.tree.home, robot.close(moved)])


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


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("kind", ["helical", "spherical", "planar"])
def test_joints_of_every_type_against_algorithmic_differentiation(kind, floating):
    urdf, loops = every_axis(("revolute", "prismatic", "revolute", "planar", "continuous"))
    loops["joints"]["j3"] = {"type": "spherical"} if kind == "spherical" else loops["joints"]["j3"]
    urdf = urdf if kind == "planar" else urdf.replace('"planar"', '"revolute"')
    robot = load_robot(urdf, loops, floating_base=floating, gravity=(1.0, -2.0, 3.0))
    rng = np.random.default_rng(5)
    positions = [robot.tree.integrate(robot.tree.home, x) for x in rng.normal(size=(3, robot.nv))]
    check_against_ad(robot.tree, positions)


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
    rng = np.random.default_rng(5)
    for _ in range(3):
        q = robot.state(robot.tree.integrate(robot.tree.home, rng.normal(size=robot.nv))).q
        yd, ydd = rng.normal(size=(2, robot.ny))
        theirs = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        for vector, place, values in zip(theirs, (in_q, in_v, in_v), (q, yd, ydd), strict=True):
            vector[place] = values
        by_q, by_v, _ = pin.computeRNEADerivatives(model, data, *theirs)
        ours = robot.inverse_dynamics_derivatives(q, yd, ydd)
        assert_close(ours.position, by_q[np.ix_(in_v, in_v)], 1e-11)
        assert_close(ours.velocity, by_v[np.ix_(in_v, in_v)], 1e-11)


def test_talos_takes_half_the_instructions_of_algorithmic_differentiation():
    robot = load_robot(ROBOTS["talos_reduced"], floating_base=True)
    assert robot.kernel("inverse_dynamics_derivatives").instructions <= 56_362 // 2


@pytest.mark.parametrize("name", ["gear", "four_bar", "spherical_cut"])
def test_inverse_and_forward_are_inverses(name):
    robot, _, states = mechanism_states(name)
    s, ydd = states[0], np.ones(robot.ny)
    tau = robot.inverse_dynamics(s.q, s.yd, ydd)
    of_id = robot.inverse_dynamics_derivatives(s.q, s.yd, ydd)
    of_fd = robot.forward_dynamics_derivatives(s.q, s.yd, tau)
    assert_close(of_id.acceleration, robot.mass_matrix(s.q), 1e-14)
    assert_close(of_fd.force @ of_id.acceleration, np.eye(robot.ny), 1e-10)
    assert_close(of_id.acceleration @ of_fd.position, -of_id.position, 1e-10)
    assert_close(of_id.acceleration @ of_fd.velocity, -of_id.velocity, 1e-10)
