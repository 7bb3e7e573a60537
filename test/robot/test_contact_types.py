"""Contacts between two links, and wheels, against loops, momentum and motions known by hand."""

import numpy as np
import pytest
from contact_oracle import FEET, HANDS, load, states
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import assert_close

from rbda_ros import Contact, InputError, Wheel, load_robot
from rbda_ros.description.model import CutJoint
from rbda_ros.robot.contact_dynamics import read_contacts

GRAVITY = 9.81
SLOPE = 0.3
BALL = """<robot name="ball"><link name="ball"><inertial><mass value="{mass}"/>
<inertia ixx="{i}" iyy="{j}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def ball(mass: float, radius: float, ratio: float = 0.4, spin: float | None = None):
    """A body with inertia ``ratio m r^2`` about two axes, and ``spin m r^2`` about its axle y."""
    about = mass * radius**2
    text = BALL.format(mass=mass, i=ratio * about, j=(ratio if spin is None else spin) * about)
    slope = GRAVITY * np.array([np.sin(SLOPE), 0.0, -np.cos(SLOPE)])
    return load_robot(text, floating_base=True, gravity=slope)


@pytest.mark.parametrize("name", ["four_bar", "overlapping_loops", "spherical_cut"])
def test_a_contact_between_links_is_a_loop(name):
    """A cut joint of the description, left out and held at run time instead."""
    mechanism = MECHANISMS[name]
    closed = mechanism.load()
    cuts = [c for c in closed.description.constraints if isinstance(c, CutJoint)]
    opened = load_robot(mechanism.urdf, floating_base=mechanism.floating_base)
    contacts = [Contact(cut.predecessor.link, cut.predecessor.origin.xyz, to=cut.successor.link)
                for cut in cuts]  # fmt: skip
    rng = np.random.default_rng(0)
    for q in closed_states(mechanism, 3):
        yd, tau = rng.normal(size=(2, closed.ny))
        qd = closed.spanning_velocity(q, yd)
        spread = np.zeros(closed.nv)
        spread[list(closed.tree.independent)] = tau
        expected = closed.spanning_acceleration(q, yd, closed.forward_dynamics(q, yd, spread))
        at = [j for body in opened.tree.spanning.bodies
              for j in closed.coordinates.positions[body.joint.name]]  # fmt: skip
        order = [j for body in opened.tree.spanning.bodies
                 for j in closed.coordinates.velocities[body.joint.name]]  # fmt: skip
        motion = opened.constrained_forward_dynamics(q[at], qd[order], spread[order], contacts)
        assert motion.converged
        assert_close(motion.ydd, expected[order], 1e-7)


def test_hands_on_each_other_leave_the_centre_of_mass_alone():
    robot = load("talos_full_v2")
    (state,) = states(robot, 1)
    tau = state.tau.copy()
    tau[:6] = 0.0
    held = [Contact(HANDS[0], (0.1, 0.0, 0.0), kind="weld", to=HANDS[1])]
    motion = robot.constrained_forward_dynamics(state.q, state.yd, tau, held)
    free = robot.forward_dynamics(state.q, state.yd, tau)
    assert np.abs(motion.ydd - free).max() > 1.0
    # The force of one hand on the other is internal: total momentum changes as without it.
    H = robot.mass_matrix(state.q)[:6]
    assert_close(H @ motion.ydd, H @ free, 1e-8)
    # Both sides feel the same force.
    p = robot.frame_pose(state.q, (HANDS[0], (0.1, 0.0, 0.0)))[:3, 3]
    other = robot.frame_pose(state.q, HANDS[1])
    offset = other[:3, :3].T @ (p - other[:3, 3])
    J = robot.jacobian(state.q, (HANDS[0], (0.1, 0.0, 0.0)))
    J = J - robot.jacobian(state.q, (HANDS[1], offset))
    expected = robot.mass_matrix(state.q) @ (motion.ydd - free)
    assert_close(J.T @ motion.forces[0], expected, 1e-7)


def test_inverse_dynamics_and_impacts_take_contacts_between_links():
    robot = load("solo12")
    (state,) = states(robot, 1)
    feet = FEET["solo12"]
    held = [Contact(feet[0]), Contact(feet[1]), Contact(feet[2], to=feet[3])]
    tau = state.tau.copy()
    tau[:6] = 0.0
    ydd = robot.constrained_forward_dynamics(state.q, state.yd, tau, held).ydd
    efforts = robot.contact_inverse_dynamics(state.q, state.yd, ydd, held)
    again = robot.constrained_forward_dynamics(state.q, state.yd, efforts.tau, held)
    assert_close(again.ydd, ydd, 1e-7)
    after = robot.impact(state.q, state.yd, held).yd
    velocity = [robot.jacobian(state.q, foot)[:3] @ after for foot in feet]
    assert_close(velocity[2], velocity[3] + np.cross(*_turning(robot, state, after, feet)), 1e-9)


def _turning(robot, state, yd, feet):
    """Angular velocity of the second link, and how far the first one's point is from it."""
    p, p_o = (robot.frame_pose(state.q, foot)[:3, 3] for foot in feet[2:])
    return robot.jacobian(state.q, feet[3])[3:] @ yd, p - p_o


@pytest.mark.parametrize(("ratio", "share"), [(0.4, 5 / 7), (0.5, 2 / 3), (1.0, 0.5)])
def test_balls_and_rings_roll_down_a_slope(ratio, share):
    robot = ball(2.0, 0.3, ratio)
    q = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])
    rolling = np.array([0.6, 0.0, 0.0, 0.0, 2.0, 0.0])
    motion = robot.constrained_forward_dynamics(
        q, rolling, np.zeros(6), [Wheel("ball", 0.3, axis=None)]
    )
    a = share * GRAVITY * np.sin(SLOPE)
    assert_close(motion.ydd, np.array([a, 0.0, 2.0 * 0.6, 0.0, a / 0.3, 0.0]), 1e-9)  # -w x v
    friction = 2.0 * (a - GRAVITY * np.sin(SLOPE))
    assert_close(
        motion.forces[0, :3], np.array([friction, 0.0, 2.0 * GRAVITY * np.cos(SLOPE)]), 1e-9
    )


@pytest.mark.parametrize("rows", [("x", "y", "z"), ("x", "z"), ("y", "z"), ("x", "y")])
def test_a_leaning_wheel_keeps_rolling(rows):
    """The rate of the velocities that are held vanishes, by central differences."""
    robot = ball(1.5, 0.25, 0.25, spin=0.5)
    wheel = Wheel("ball", 0.25, rows=rows, xyz=(0.0, 0.02, 0.0))
    rng = np.random.default_rng(5)
    for _ in range(5):
        (state,) = states(robot, 1, seed=int(rng.integers(1000)))
        yd, tau = rng.normal(size=(2, 6))
        motion = robot.constrained_forward_dynamics(state.q, yd, tau, [wheel])

        def held(t, q=state.q, yd=yd, ydd=motion.ydd):
            at = robot.tree.integrate(q, t * yd + 0.5 * t**2 * ydd)
            moved = robot.state(at, yd + t * ydd)
            read = read_contacts(robot, [wheel], moved)
            return read.along_axes([read.motions[0].velocity])

        rate = (held(1e-5) - held(-1e-5)) / 2e-5
        assert_close(rate, np.zeros(len(rows)), 1e-6, size=np.abs(motion.ydd).max())
        assert np.abs(held(0.0)).max() > 0.1


def test_skid_steering_turns_on_the_spot():
    """Four wheels that hold where they head: a moment on the cart turns it, sideways they slide."""
    wheels = "".join(
        f"""<link name="w{i}"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.01"
        ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{i}" type="continuous">
        <parent link="cart"/><child link="w{i}"/><origin xyz="{x} {y} 0"/><axis xyz="0 1 0"/>
        </joint>"""
        for i, (x, y) in enumerate([(0.4, 0.3), (0.4, -0.3), (-0.4, 0.3), (-0.4, -0.3)])
    )
    cart = BALL.replace("</robot>", wheels + "</robot>").replace('"ball"', '"cart"')
    robot = load_robot(cart.format(mass=10, i=1.0, j=1.0), floating_base=True)
    q = np.zeros(robot.nq)
    q[2], q[6] = 0.2, 1.0
    held = [Wheel(f"w{i}", 0.2, rows=("x", "z")) for i in range(4)]
    tau = np.zeros(robot.ny)
    tau[6:] = [-2.0, 2.0, -2.0, 2.0]  # left wheels back, right ones ahead
    ydd = robot.constrained_forward_dynamics(q, np.zeros(robot.ny), tau, held).ydd
    assert ydd[5] > 0.1
    assert_close(ydd[[0, 1, 2, 3, 4]], np.zeros(5), 1e-9)
    assert_close(ydd[6:], ydd[5] * 0.3 / 0.2 * np.array([-1.0, 1.0, -1.0, 1.0]), 1e-9)
    # With all rows it cannot turn.
    stuck = [Wheel(f"w{i}", 0.2) for i in range(4)]
    ydd = robot.constrained_forward_dynamics(q, np.zeros(robot.ny), tau, stuck).ydd
    assert_close(ydd, np.zeros(robot.ny), 1e-9)


CUTS = {"four_bar": 1, "spherical_cut": 3, "cylindrical_cut": 2, "overlapping_loops": 1}


@pytest.mark.parametrize("name", CUTS)
def test_an_actuator_at_a_cut_joint_pushes_both_links(name):
    """As opposite wrenches on the two links do."""
    mechanism = MECHANISMS[name]
    robot = mechanism.load()
    cut = next(c for c in robot.description.constraints if isinstance(c, CutJoint))
    rng = np.random.default_rng(1)
    for q in closed_states(mechanism, 2):
        yd, tau = rng.normal(size=(2, robot.ny))
        effort = rng.normal(size=CUTS[name])
        end = cut.predecessor.link, cut.predecessor.origin.xyz, cut.predecessor.origin.rpy
        pose = robot.frame_pose(q, end)
        axis = np.array(cut.axis) / np.linalg.norm(cut.axis)
        travel = effort[0] if CUTS[name] == 2 else 0.0
        turn = effort if CUTS[name] == 3 else effort[-1] * axis
        wrench = travel * axis, turn
        force, moment = (pose[:3, :3] @ part for part in wrench)
        wrenches = {}
        for side, sign in ((cut.predecessor, -1.0), (cut.successor, 1.0)):
            link, at = (
                robot.frame_pose(q, side.link),
                robot.frame_pose(q, (side.link, side.origin.xyz)),
            )
            about = moment + np.cross(at[:3, 3] - link[:3, 3], force)
            R = link[:3, :3].T
            wrenches[side.link] = sign * np.concatenate([R @ force, R @ about])
        expected = robot.forward_dynamics(q, yd, tau, wrenches)
        driven = tau + robot.cut_joint_force(q, {cut.name: effort})
        assert_close(robot.forward_dynamics(q, yd, driven), expected, 1e-8)
    with pytest.raises(InputError, match="no cut joint"):
        robot.cut_joint_force(q, {"nowhere": 1.0})
    with pytest.raises(InputError, match="efforts"):
        robot.cut_joint_force(q, {cut.name: np.zeros(5)})


BAD = {
    "radius": (Wheel("ball", 0.0), "radius"),
    "rows": (Wheel("ball", 0.1, rows=("rx",)), "rows"),
    "axis": (Wheel("ball", 0.1, axis=(0, 0, 0)), "axis"),
    "flat": (Wheel("ball", 0.1, axis=(0, 0, 1)), "lies flat"),
    "weight": (Contact("ball", weight=-1.0), "weight"),
    "to": (Contact("ball", to="nowhere"), "nowhere"),
}


@pytest.mark.parametrize("what", BAD)
def test_refuses_what_is_no_contact(what):
    contact, words = BAD[what]
    robot = ball(1.0, 0.1)
    q = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(InputError, match=words):
        robot.constrained_forward_dynamics(q, np.zeros(6), np.zeros(6), [contact])
