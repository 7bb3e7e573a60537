"""Contacts with friction, limits and dry friction, against motions known by hand."""

import functools

import numpy as np
import pytest
from contact_oracle import FEET, states
from contact_oracle import load as load_uncached
from pinocchio_oracle import assert_close

from rbda_ros import Contact, FrictionContact, InputError, load_robot

load = functools.cache(load_uncached)
GRAVITY = 9.81
DT = 1e-3
BLOCK = """<robot name="block"><link name="block"><inertial><mass value="{mass}"/>
<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
CORNERS = [(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
UPRIGHT = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])


def block(slope: float = 0.0, mass: float = 2.0, inertia: float = 0.05):
    """A box on a plane that falls toward x; the world's axes are the plane's."""
    g = GRAVITY * np.array([np.sin(slope), 0.0, -np.cos(slope)])
    return load_robot(BLOCK.format(mass=mass, i=inertia), floating_base=True, gravity=g)


def corners(friction: float, **more) -> list[FrictionContact]:
    return [FrictionContact("block", corner, friction=friction, **more) for corner in CORNERS]


def right(step) -> None:
    """Coulomb's law, Signorini's condition and the bounds hold to 1e-8."""
    assert np.all(step.converged)
    assert step.cone_violation < 1e-8
    assert step.complementarity < 1e-8


@pytest.mark.parametrize("slope", [0.1, 0.3, 0.45])
def test_a_block_sticks_inside_its_cone_and_slides_outside(slope):
    robot = block(slope)
    for friction, slides in ((np.tan(slope) + 0.01, False), (np.tan(slope) - 0.01, True)):
        step = robot.frictional_step(UPRIGHT, np.zeros(6), np.zeros(6), corners(friction), DT)
        right(step)
        a = GRAVITY * (np.sin(slope) - friction * np.cos(slope)) if slides else 0.0
        assert_close(step.ydd, np.array([a, 0, 0, 0, 0, 0]), 1e-8)
        weight = 2.0 * GRAVITY * np.cos(slope)
        assert_close(step.forces.sum(axis=0)[2], np.array(weight), 1e-8)


def test_a_sliding_block_stops_and_stays():
    robot, q, yd = block(), UPRIGHT, np.array([1.0, 0.5, 0, 0, 0, 0])
    step, friction = None, 0.4
    speed = np.hypot(1.0, 0.5)
    for n in range(400):
        step = robot.frictional_step(q, yd, np.zeros(6), corners(friction), DT, warm_start=step)
        right(step)
        yd = step.yd
        expected = max(speed - friction * GRAVITY * DT * (n + 1), 0.0)
        assert abs(np.hypot(*yd[:2]) - expected) < 1e-8
        q = robot.tree.integrate(q, DT * yd)
    assert np.abs(yd).max() < 1e-9


def test_a_ball_that_slides_ends_up_rolling():
    """It rolls at 5/7 of its speed at first, whatever the friction."""
    robot = load_robot(BLOCK.format(mass=1.0, i=0.4 * 0.1**2), floating_base=True)
    q, yd, time = UPRIGHT, np.array([1.0, 0, 0, 0, 0, 0]), 0.0
    while time < 0.4:
        R = robot.frame_pose(q, "block")[:3, :3]
        below = R.T @ np.array([0.0, 0.0, -0.1])
        step = robot.frictional_step(
            q, yd, np.zeros(6), [FrictionContact("block", below, friction=0.1)], DT
        )
        right(step)
        q, yd, time = robot.tree.integrate(q, DT * step.yd), step.yd, time + DT
        slip = (R @ yd[:3])[0] - 0.1 * (R @ yd[3:])[1]
    assert abs(slip) < 1e-6
    # The step is of first order; the time it takes to roll is 2 v / (7 mu g) = 0.29 s.
    assert abs((R @ yd[:3])[0] - 5 / 7) < 5e-3


@pytest.mark.parametrize("name", ["solo12", "talos_full_v2"])
def test_internal_forces_of_feet_stay_inside_their_cones(name):
    """Feet that are pulled together by the motors stick, as far as friction holds them."""
    robot = load(name)
    (state,) = states(robot, 1)
    feet = [FrictionContact(foot, friction=0.7) for foot in FEET[name]]
    tau = np.zeros(robot.ny)
    tau[6:] = 3.0 * np.random.default_rng(2).normal(size=robot.ny - 6)
    step = robot.frictional_step(state.q, 0.1 * state.yd, tau, feet, DT, joint_friction=False)
    right(step)
    # Newton's law with the forces that were found.
    free = robot.forward_dynamics(state.q, 0.1 * state.yd, tau)
    pushed = sum(
        robot.jacobian(state.q, foot)[:3].T @ f
        for foot, f in zip(FEET[name], step.forces, strict=True)
    )
    limits = robot.generalized_force(state.q, step.joint_forces)
    H = robot.mass_matrix(state.q)
    assert_close(H @ (step.ydd - free), pushed + limits, 1e-6)


def test_many_states_are_each_as_alone():
    robot = load("solo12")
    all_states = states(robot, 20)
    q = np.array([state.q for state in all_states])
    yd = np.array([0.3 * state.yd for state in all_states])
    tau = np.array([state.tau for state in all_states])
    feet = [FrictionContact(foot, friction=0.6) for foot in FEET["solo12"]]
    together = robot.frictional_step(q, yd, tau, feet, DT, joint_limits=False)
    right(together)
    for n in range(len(q)):
        alone = robot.frictional_step(q[n], yd[n], tau[n], feet, DT, joint_limits=False)
        assert_close(together.yd[n], alone.yd, 1e-8)
    distances = np.tile([0.0, 1.0, 1.0, 1.0], (len(q), 1))
    one_foot = robot.frictional_step(q, yd, tau, feet, DT, distances=distances, joint_limits=False)
    right(one_foot)
    assert np.all(one_foot.forces[:, 1:] == 0.0)


def test_redundant_contacts_share_a_weight():
    robot = block()
    points = [(x, y, -0.1) for x in np.linspace(-0.2, 0.2, 4) for y in np.linspace(-0.2, 0.2, 4)]
    many = [FrictionContact("block", point, friction=0.5) for point in points]
    step = robot.frictional_step(UPRIGHT, np.zeros(6), np.array([2.0, 1, 0, 0, 0, 0.1]), many, DT)
    right(step)
    assert_close(step.ydd, np.zeros(6), 1e-7)
    assert_close(step.forces.sum(axis=0), np.array([-2.0, -1.0, 2.0 * GRAVITY]), 1e-7)


def test_stiff_planes_give_way_as_springs_do():
    robot, stiffness = block(), 1e4
    soft = corners(0.5, stiffness=stiffness, damping=300.0)
    q, yd, step = UPRIGHT.copy(), np.zeros(6), None
    for _ in range(400):
        heights = [q[2] - 0.1] * 4
        step = robot.frictional_step(
            q, yd, np.zeros(6), soft, DT, distances=heights, warm_start=step
        )
        right(step)
        q, yd = robot.tree.integrate(q, DT * step.yd), step.yd
    assert_close(q[2] - 0.1, np.array(-2.0 * GRAVITY / (4 * stiffness)), 1e-6)
    # The stiffer, the nearer to the rigid one.
    rigid = robot.frictional_step(UPRIGHT, np.zeros(6), np.zeros(6), corners(0.5), DT)
    hard = corners(0.5, stiffness=1e12)
    stiff = robot.frictional_step(UPRIGHT, np.zeros(6), np.zeros(6), hard, DT)
    assert_close(stiff.yd, rigid.yd, 1e-5, size=GRAVITY * DT)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_falling_block_bounces(restitution):
    robot = block()
    falling = np.array([0.0, 0.0, -2.0, 0, 0, 0])
    step = robot.frictional_step(
        UPRIGHT, falling, np.zeros(6), corners(0.5, restitution=restitution), DT
    )
    right(step)
    assert_close(step.yd[2], np.array(2.0 * restitution), 1e-9)


ARM = """<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0.5 0 0"/>
<mass value="1"/><inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-0.5" upper="0.5" effort="100" velocity="10"/><dynamics friction="{friction}"/>
</joint></robot>"""


def test_limits_stop_a_joint_and_let_it_go():
    robot = load_robot(ARM.format(friction=0.0))
    q, yd = np.array([0.4999]), np.array([3.0])
    step = robot.frictional_step(q, yd, np.zeros(1), [], DT)
    right(step)
    assert q[0] + DT * step.yd[0] <= 0.5 + 1e-12
    assert step.joint_forces[0] < 0.0
    back = robot.frictional_step(q, -yd, np.zeros(1), [], DT)
    assert back.joint_forces[0] == 0.0
    free = robot.frictional_step(q, yd, np.zeros(1), [], DT, joint_limits=False)
    assert free.yd[0] > 2.9


def test_dry_friction_holds_a_joint_up_to_its_bound():
    robot = load_robot(ARM.format(friction=6.0), gravity=(0.0, 0.0, 0.0))
    for torque, moves in ((5.9, 0.0), (-5.9, 0.0), (7.0, 1.0), (-8.0, -2.0)):
        step = robot.frictional_step(np.zeros(1), np.zeros(1), np.array([torque]), [], DT)
        right(step)
        assert_close(0.35 * step.ydd, np.array([moves]), 1e-9)
        assert_close(step.joint_forces, np.array([moves - torque]), 1e-9)


def test_limits_act_through_loops_and_held_feet_stay():
    robot = load("mini_cheetah")
    (state,) = states(robot, 1)
    held = [Contact(foot, (0.0, 0.0, -0.2)) for foot in FEET["mini_cheetah"][:2]]
    step = robot.frictional_step(state.q, state.yd, state.tau, [], DT, held=held)
    right(step)
    for contact in held:
        velocity = robot.jacobian(state.q, (contact.link, contact.xyz))[:3] @ step.yd
        assert_close(velocity, np.zeros(3), 1e-9)


@pytest.mark.parametrize("compliant", [False, True])
def test_inverse_dynamics_undoes_a_step(compliant):
    robot = load("solo12")
    more = {"stiffness": 1e4, "damping": 50.0, "distance": -1e-3} if compliant else {}
    feet = [FrictionContact(foot, friction=0.6, **more) for foot in FEET["solo12"]]
    for state in states(robot, 4):
        tau = state.tau.copy()
        tau[:6] = 0.0
        options = {"joint_limits": False, "joint_friction": False}
        step = robot.frictional_step(state.q, 0.1 * state.yd, tau, feet, DT, **options)
        right(step)
        efforts = robot.frictional_inverse_dynamics(state.q, 0.1 * state.yd, step.ydd, feet, DT)
        assert efforts.residual < 1e-6
        assert_close(efforts.tau[:6], np.zeros(6), 1e-9)
        sideways = np.hypot(efforts.forces[:, 0], efforts.forces[:, 1])
        assert np.all(sideways <= 0.6 * efforts.forces[:, 2] + 1e-7)
        again = robot.frictional_step(state.q, 0.1 * state.yd, efforts.tau, feet, DT, **options)
        assert_close(again.yd, step.yd, 1e-6)


def test_inverse_dynamics_of_many_states_is_that_of_each():
    robot = load("solo12")
    feet = [FrictionContact(foot, friction=0.6) for foot in FEET["solo12"]]
    some = states(robot, 3)
    q, yd = np.array([s.q for s in some]), 0.1 * np.array([s.yd for s in some])
    options = {"joint_limits": False, "joint_friction": False}
    ydd = robot.frictional_step(q, yd, np.zeros(robot.ny), feet, DT, **options).ydd
    many = robot.frictional_inverse_dynamics(q, yd, ydd, feet, DT)
    assert many.tau.shape == (3, robot.ny) and many.forces.shape == (3, 4, 3)
    for n in range(3):
        one = robot.frictional_inverse_dynamics(q[n], yd[n], ydd[n], feet, DT)
        assert np.array_equal(many.tau[n], one.tau)
        assert np.array_equal(many.forces[n], one.forces)
        assert many.residual[n] == one.residual < 1e-6


def test_inverse_dynamics_says_what_friction_cannot_give():
    robot = block()
    pulled = np.array([0.0, 0.0, 3.0, 0, 0, 0])  # no contact pulls it up
    efforts = robot.frictional_inverse_dynamics(UPRIGHT, np.zeros(6), pulled, corners(0.5), DT)
    assert efforts.residual > 1.0
    stuck = robot.frictional_inverse_dynamics(UPRIGHT, np.zeros(6), np.zeros(6), corners(0.5), DT)
    assert stuck.residual < 1e-6
    assert_close(stuck.forces.sum(axis=0), np.array([0.0, 0.0, 2.0 * GRAVITY]), 1e-7)


BAD = {
    "friction": (FrictionContact("block", friction=-1.0), "friction"),
    "normal": (FrictionContact("block", normal=(0, 0, 0)), "normal"),
    "distance": (FrictionContact("block", distance=np.nan), "distance"),
    "stiffness": (FrictionContact("block", stiffness=0.0), "stiffness"),
    "restitution": (FrictionContact("block", restitution=2.0), "restitution"),
    "link": (FrictionContact("nowhere"), "nowhere"),
    "words": (FrictionContact("block", ("a", "b", "c")), "xyz"),
}


@pytest.mark.parametrize("what", BAD)
def test_refuses_what_is_no_contact(what):
    contact, words = BAD[what]
    with pytest.raises(InputError, match=words):
        block().frictional_step(UPRIGHT, np.zeros(6), np.zeros(6), [contact], DT)


def test_points_and_normals_may_be_arrays_and_lists():
    robot, rest = block(), np.zeros(6)
    arrays = [FrictionContact("block", np.array(c), normal=np.array([0.0, 0, 1])) for c in CORNERS]
    lists = [FrictionContact("block", c, normal=[0.0, 0.0, 1.0]) for c in CORNERS]
    expected = robot.frictional_step(UPRIGHT, rest, rest, corners(0.8), DT).yd
    for contacts in (arrays, lists):
        assert np.array_equal(robot.frictional_step(UPRIGHT, rest, rest, contacts, DT).yd, expected)


def test_refuses_bad_steps():
    robot = block()
    with pytest.raises(InputError, match="dt"):
        robot.frictional_step(UPRIGHT, np.zeros(6), np.zeros(6), corners(0.5), 0.0)
    for bad in ([1.0], np.zeros((3, 4)), [np.nan] * 4, object()):
        with pytest.raises(InputError, match="distances"):
            robot.frictional_step(
                UPRIGHT, np.zeros(6), np.zeros(6), corners(0.5), DT, distances=bad
            )
