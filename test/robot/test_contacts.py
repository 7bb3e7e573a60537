"""Robots in contact: what `Robot` makes of the algorithms, against physical laws."""

import functools

import numpy as np
import pinocchio as pin
import pytest
from contact_oracle import CONTACTS, FEET, ContactOracle, load, states
from pinocchio_oracle import PinocchioOracle, assert_close, example_robots

from rbda_ros import Contact, InputError

robot_in_contact = functools.cache(load)


def test_baumgartes_terms_draw_a_foot_to_its_place():
    robot = robot_in_contact("solo12")
    (state,) = states(robot, 1)
    foot = FEET["solo12"][1]
    pose, J = robot.frame_pose(state.q, foot), robot.jacobian(state.q, foot)
    target = pose[:3, 3] + [0.01, -0.02, 0.03]
    contact = Contact(foot, target=target, stiffness=100.0, damping=20.0)
    ydd = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, [contact]).ydd
    acceleration = J @ ydd + robot.frame_bias_acceleration(state.q, state.yd, foot)
    expected = 100.0 * np.array([0.01, -0.02, 0.03]) - 20.0 * (J @ state.yd)[:3]
    assert_close(acceleration[:3], expected, 1e-9)


def test_baumgartes_terms_turn_a_weld():
    robot = robot_in_contact("xarm7")
    (state,) = states(robot, 1)
    pose = robot.frame_pose(state.q, "link7")
    turn = np.array([0.0, 0.1, 0.0])
    target = pose.copy()
    target[:3, :3] = pin.exp3(turn) @ pose[:3, :3]
    contact = Contact("link7", kind="weld", target=target, stiffness=50.0)
    ydd = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, [contact]).ydd
    J = robot.jacobian(state.q, "link7")
    acceleration = J @ ydd + robot.frame_bias_acceleration(state.q, state.yd, "link7")
    assert_close(acceleration, np.concatenate([np.zeros(3), 50.0 * turn]), 1e-9)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("case", ["solo on three", "talos", "cassie"])
def test_impacts_obey_momentum_and_restitution(case, restitution):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    (state,) = states(robot, 1)
    hit = robot.impact(state.q, state.yd, contacts, restitution)
    H = robot.mass_matrix(state.q)
    momentum = np.zeros(robot.ny)
    for contact, impulse in zip(contacts, hit.impulses, strict=True):
        J = robot.jacobian(state.q, (contact.link, contact.xyz))
        momentum += J.T @ impulse
        held = slice(None) if contact.kind == "weld" else slice(3)
        assert_close((J @ hit.yd)[held], -restitution * (J @ state.yd)[held], 1e-8)
    assert_close(H @ (hit.yd - state.yd), momentum, 1e-8)
    if not restitution:
        assert hit.yd @ H @ hit.yd < state.yd @ H @ state.yd


@pytest.mark.parametrize("case", ["solo on four", "talos", "cassie", "mini_cheetah"])
def test_inverse_dynamics_with_contacts_undoes_forward_dynamics(case):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    for state in states(robot, 2):
        actuated = state.tau.copy()
        actuated[:6] = 0.0
        ydd = robot.constrained_forward_dynamics(state.q, state.yd, actuated, contacts).ydd
        efforts = robot.contact_inverse_dynamics(state.q, state.yd, ydd, contacts)
        assert efforts.residual < 1e-7
        assert_close(efforts.tau[:6], np.zeros(6), 1e-9)
        again = robot.constrained_forward_dynamics(state.q, state.yd, efforts.tau, contacts)
        assert_close(again.ydd, ydd, 1e-7)
        # No smaller forces would do: those found have no part that the base does not feel.
        J = np.vstack([robot.jacobian(state.q, (c.link, c.xyz))[:, :6] for c in contacts])
        sizes = [6 if contact.kind == "weld" else 3 for contact in contacts]
        rows = [6 * i + j for i, size in enumerate(sizes) for j in range(size)]
        f = efforts.forces.ravel()[rows]
        along = J[rows] @ np.linalg.pinv(J[rows]) @ f
        assert_close(along, f, 1e-8)


def test_external_wrenches_act_beside_contacts():
    robot = robot_in_contact("solo12")
    oracle = PinocchioOracle(example_robots()["solo12"], robot)
    (state,) = states(robot, 1)
    contacts = CONTACTS["solo on three"][1]
    wrench = np.arange(1.0, 7.0)  # in the base's frame
    tau = state.tau.copy()
    tau[:6] += wrench
    expected = robot.constrained_forward_dynamics(state.q, state.yd, tau, contacts).ydd
    found = robot.constrained_forward_dynamics(
        state.q, state.yd, state.tau, contacts, external_wrenches={"base_link": wrench}
    )
    assert_close(found.ydd, expected, 1e-9)
    efforts = robot.contact_inverse_dynamics(
        state.q, state.yd, expected, contacts, {"base_link": wrench}
    )
    pushed = sum(
        robot.jacobian(state.q, (c.link, c.xyz)).T @ f
        for c, f in zip(contacts, efforts.forces, strict=True)
    )
    needed = oracle.rnea(state.q, state.yd, expected)
    needed[:6] -= wrench
    assert_close((efforts.tau + pushed)[6:], needed[6:], 1e-9)


def test_inverse_dynamics_tells_what_contacts_cannot_give():
    robot = robot_in_contact("solo12")
    (state,) = states(robot, 1)
    one_foot = [Contact(FEET["solo12"][0])]
    ydd = np.zeros(robot.ny)
    ydd[3:6] = 10.0  # a moment that no single point gives
    assert robot.contact_inverse_dynamics(state.q, state.yd, ydd, one_foot).residual > 1e-3


@pytest.mark.parametrize("case", CONTACTS)
def test_damped_delassus_inverse_equals_the_dense_one(case):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    oracle = ContactOracle(robot)
    for state in states(robot, 2):
        G, _ = oracle.explicit(state.q, np.zeros(robot.nv))
        H = G.T @ oracle.mass_matrix(state.q) @ G
        J = np.vstack([oracle.jacobian_of(state.q, contact) for contact in contacts]) @ G
        mu = 100.0 * robot.mass
        expected = np.linalg.inv(J @ np.linalg.solve(H, J.T) + np.eye(len(J)) / mu)
        found = robot.damped_delassus_inverse(state.q, contacts, mu)
        # The two may turn a contact's axes differently about its normal: compare what stays.
        assert_close(np.linalg.eigvalsh(found), np.linalg.eigvalsh(expected), 1e-9)


BAD = {
    "no link": (Contact("nowhere"), "nowhere"),
    "kind": (Contact("FL_FOOT", kind="glue"), "kind 'glue'"),
    "rows": (Contact("FL_FOOT", rows=("w",)), "rows"),
    "normal": (Contact("FL_FOOT", normal=(0, 0, 0)), "normal"),
    "acceleration": (Contact("FL_FOOT", acceleration=(np.nan,) * 6), "acceleration"),
    "target": (Contact("FL_FOOT", stiffness=1.0), "needs a target"),
    "gain": (Contact("FL_FOOT", damping=-1.0), "damping"),
}


@pytest.mark.parametrize("what", BAD)
def test_refuses_bad_contacts(what):
    contact, words = BAD[what]
    robot = robot_in_contact("solo12")
    (state,) = states(robot, 1)
    with pytest.raises(InputError, match=words):
        robot.constrained_forward_dynamics(state.q, state.yd, state.tau, [contact])


def test_refuses_no_contact_and_unknown_routes():
    robot = robot_in_contact("solo12")
    (state,) = states(robot, 1)
    with pytest.raises(InputError, match="at least one"):
        robot.constrained_forward_dynamics(state.q, state.yd, state.tau, [])
    with pytest.raises(InputError, match="route"):
        robot.constrained_forward_dynamics(
            state.q, state.yd, state.tau, [Contact("FL_FOOT")], route="magic"
        )
