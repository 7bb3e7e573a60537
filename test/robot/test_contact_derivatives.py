"""Derivatives through contacts, against central differences."""

import functools

import numpy as np
import pytest
from contact_oracle import CONTACTS, FEET, states
from contact_oracle import load as load_uncached
from pinocchio_oracle import assert_close

from rbda_ros import Contact, FrictionContact, InputError, SingularityError, Wheel, load_robot

load = functools.cache(load_uncached)
DT = 1e-2
STENCIL = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}  # central differences of sixth order
STEP = 3e-4


def moved(robot, q, direction):
    """A closed position next to q: along y, on the manifold."""
    there = robot.tree.integrate(q, robot.spanning_velocity(q, direction))
    return robot.close(there, guess=there) if robot.tree.has_loops else there


def along(function, direction, step=STEP):
    """Derivative of a function of a vector, in a direction."""
    ends = (
        w * (function(k * step * direction) - function(-k * step * direction))
        for k, w in STENCIL.items()
    )
    return sum(ends) / step


def directions(size):
    """Some directions (size,) to compare derivatives along."""
    return np.random.default_rng(8).normal(size=(2, size))


CASES = [
    "arm welded", "solo on three", "solo on four", "mini_cheetah", "talos", "talos sliding",
    "cassie",
]  # fmt: skip
STEPS_ALONG = {"y": 1e-3, "yd": 0.1, "tau": 0.1}
"""The motion is quadratic in yd and linear in tau, so that long steps are exact."""


@pytest.mark.parametrize("case", CASES)
def test_motion_in_contact(case):
    name, contacts = CONTACTS[case]
    robot = load(name)
    (state,) = states(robot, 1, seed=9)  # where no leg is near to being straight
    q, yd, tau = state.q, state.yd, state.tau

    def motion(q, yd, tau):
        found = robot.constrained_forward_dynamics(q, yd, tau, contacts)
        return np.concatenate([found.ydd, found.forces.ravel()])

    found = robot.constrained_forward_dynamics_derivatives(q, yd, tau, contacts)
    functions = {
        "y": lambda d: motion(moved(robot, q, d), yd, tau),
        "yd": lambda d: motion(q, yd + d, tau),
        "tau": lambda d: motion(q, yd, tau + d),
    }
    for by, function in functions.items():
        for d in directions(robot.ny):
            right = along(function, d, STEPS_ALONG[by])
            assert_close(getattr(found, f"ydd_by_{by}") @ d, right[: robot.ny], 1e-7)
            forces = getattr(found, f"forces_by_{by}") @ d
            assert_close(forces.ravel(), right[robot.ny :], 1e-7)


def test_gains_of_contacts_are_part_of_it():
    robot = load("solo12")
    (state,) = states(robot, 1)
    foot = FEET["solo12"][0]
    target = robot.frame_pose(state.q, foot)[:3, 3] + 0.01
    contacts = [Contact(foot, target=target, stiffness=100.0, damping=20.0)]
    found = robot.constrained_forward_dynamics_derivatives(state.q, state.yd, state.tau, contacts)

    def motion(d):
        q = moved(robot, state.q, d)
        return robot.constrained_forward_dynamics(q, state.yd, state.tau, contacts).ydd

    for d in directions(robot.ny):
        assert_close(found.ydd_by_y @ d, along(motion, d), 1e-7)


def above(robot, contacts, q):
    """Heights of contacts' points above the planes that they are on at first."""
    return np.array([robot.frame_pose(q, (c.link, c.xyz))[:3, 3] @ c.normal for c in contacts])


STEPS = {
    "sticking": {"friction": 5.0, "distance": -1e-3},
    "sliding": {"friction": 0.05, "distance": -1e-3},
    "compliant": {"friction": 0.4, "distance": -2e-2, "stiffness": 5e3, "damping": 40.0},
    "bouncing": {"friction": 0.3, "distance": -1e-3, "restitution": 0.6},
    "without friction": {"friction": 0.0, "distance": -1e-3},
    "in the air": {"friction": 0.5, "distance": 1.0},
}


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("name", ["solo12", "mini_cheetah", "cassie"])
def test_step_with_friction(name, how):
    robot = load(name)
    (state,) = states(robot, 1, seed=1)
    offset = (0.0, 0.0, -0.2) if name == "mini_cheetah" else (0.0, 0.0, 0.0)
    feet = [FrictionContact(foot, offset, **STEPS[how]) for foot in FEET[name][:3]]
    q, yd, tau = state.q, 0.5 * state.yd, state.tau
    rest = above(robot, feet, q) - [contact.distance for contact in feet]
    found = robot.frictional_step_derivatives(q, yd, tau, feet, DT, joint_limits=False)
    check_step(robot, (q, yd, tau), feet, found, rest, joint_limits=False)


def check_step(robot, given, feet, found, rest, **options):
    q, yd, tau = given

    def step(q, yd, tau):
        heights = above(robot, feet, q) - rest if feet else []
        after = robot.frictional_step(
            q, yd, tau, feet, DT, distances=heights, tolerance=1e-12, **options
        )
        pressed, before = after.impulses[2::3], found.step.impulses[2::3]
        assert np.all((pressed > 0.0) == (before > 0.0))  # no contact opened or closed
        return after.yd

    functions = {
        "y": lambda d: step(moved(robot, q, d), yd, tau),
        "yd": lambda d: step(q, yd + d, tau),
        "tau": lambda d: step(q, yd, tau + 100.0 * d) / 100.0,
    }
    for by, function in functions.items():
        for d in directions(robot.ny):
            # Differences of velocities that are right to 1e-12, over steps of 1e-4.
            right = along(function, d, 1e-4)
            assert_close(getattr(found, f"yd_by_{by}") @ d, right, 1e-7)


def test_limits_and_dry_friction_and_held_feet():
    robot = load("mini_cheetah")
    (state,) = states(robot, 1, seed=2)
    held = [Contact(FEET["mini_cheetah"][0], (0.0, 0.0, -0.2))]
    given = state.q, 0.2 * state.yd, state.tau
    found = robot.frictional_step_derivatives(*given, [], DT, held=held)
    check_step(robot, given, [], found, np.zeros(0), held=held)


def test_a_joint_at_its_limit_with_damping():
    urdf = """<robot name="arm"><link name="base"/><link name="rod"><inertial>
    <origin xyz="0.5 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0"
    iyz="0"/></inertial></link><link name="tip"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-0.5" upper="0.5" effort="100" velocity="10"/><dynamics damping="0.3"/></joint>
    <joint name="elbow" type="revolute"><parent link="rod"/><child link="tip"/><axis xyz="0 1 0"/>
    <origin xyz="1 0 0"/><limit lower="-3" upper="3" effort="100" velocity="10"/>
    <dynamics friction="0.5"/></joint></robot>"""
    robot = load_robot(urdf)
    given = np.array([0.499, 0.3]), np.array([2.0, -1.0]), np.array([1.0, 2.0])
    found = robot.frictional_step_derivatives(*given, [], DT)
    assert found.step.joint_forces[0] != 0.0
    check_step(robot, given, [], found, np.zeros(0))


def test_refuses_what_has_no_derivatives():
    robot = load("solo12")
    (state,) = states(robot, 1)
    given = state.q, state.yd, state.tau
    foot = FEET["solo12"][0]
    with pytest.raises(InputError, match="no derivatives"):
        robot.constrained_forward_dynamics_derivatives(*given, [Wheel(foot, 0.1, axis=None)])
    contrary = [Contact(foot), Contact(foot, acceleration=(1.0, 0, 0, 0, 0, 0))]
    with pytest.raises(SingularityError, match="contradict"):
        robot.constrained_forward_dynamics_derivatives(*given, contrary)
    with pytest.raises(InputError, match="planes of the world"):
        robot.frictional_step_derivatives(*given, [FrictionContact(foot, to="base_link")], DT)
