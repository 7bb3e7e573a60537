"""Robots in contact, against dense solves over Pinocchio and physical laws."""

import functools

import numpy as np
import pinocchio as pin
import pytest
from contact_oracle import CONTACTS, CORNERS, FEET, ContactOracle, load, states
from pinocchio_oracle import PinocchioOracle, assert_close, example_robots

from rbda_ros import Contact, InputError
from rbda_ros.contacts import ROWS

robot_in_contact = functools.cache(load)


# Every case by constrainedABA; the other routes where tracing them is quick.
ROUTES = [(case, "constrained_aba") for case in CONTACTS] + [
    (case, route)
    for case, (name, _) in CONTACTS.items()
    for route in ("prox_pv", "prox_ltl")
    if name != "talos_full_v2" or case == "talos"
]


@pytest.mark.parametrize(("case", "route"), ROUTES)
def test_equals_a_dense_solve(case, route):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    oracle = ContactOracle(robot)
    for state in states(robot, 4):
        motion = robot.constrained_forward_dynamics(
            state.q, state.yd, state.tau, contacts, route=route
        )
        qd = robot.spanning_velocity(state.q, state.yd)
        tau = np.zeros(robot.nv)
        tau[list(robot.tree.independent)] = state.tau
        qdd, force = oracle.motion(state.q, qd, tau, contacts)
        assert motion.converged
        assert_close(motion.ydd, qdd[list(robot.tree.independent)], 1e-9)
        pushed = sum(
            robot.jacobian(state.q, (c.link, c.xyz)).T @ f
            for c, f in zip(contacts, motion.forces, strict=True)
        )
        # Forces are differences of larger ones.
        assert_close(pushed, force, 1e-8)


def at_rest(robot, state, contacts):
    """The part of a velocity that leaves contacts where they are."""
    J = np.vstack([robot.jacobian(state.q, (c.link, c.xyz))[: len(ROWS[c.kind])] for c in contacts])
    return state.yd - np.linalg.pinv(J, rcond=1e-9) @ (J @ state.yd)


@pytest.mark.parametrize("case", ["arm welded", "solo on four"])
def test_equals_pinocchios_constraint_dynamics(case):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    oracle = PinocchioOracle(example_robots()[name], robot)
    model, data = oracle.model, oracle.data
    models = []
    for contact in contacts:
        frame = model.frames[model.getFrameId(contact.link, pin.BODY)]
        placement = frame.placement * pin.SE3(np.eye(3), np.array(contact.xyz, float))
        kind = pin.ContactType.CONTACT_6D if contact.kind == "weld" else pin.ContactType.CONTACT_3D
        models.append(pin.RigidConstraintModel(kind, model, frame.parentJoint, placement))
    datas = [constraint.createData() for constraint in models]
    models, datas = pin.StdVec_RigidConstraintModel(models), pin.StdVec_RigidConstraintData(datas)
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-12, 100)
    for state in states(robot, 5):
        # Theirs are spatial accelerations, which are ours where contacts are at rest.
        yd = at_rest(robot, state, contacts)
        theirs = oracle.position(state.q), oracle.velocity(yd), oracle.velocity(state.tau)
        ydd = pin.constraintDynamics(model, data, *theirs, models, datas, settings)
        motion = robot.constrained_forward_dynamics(
            state.q, yd, state.tau, contacts, tolerance=1e-13
        )
        assert_close(motion.ydd, ydd[oracle.velocity_index], 1e-9)


def test_redundant_contacts_take_ten_iterations():
    """24 rows on two feet, of which half are redundant (Sathya 2024, Fig. 4)."""
    robot = robot_in_contact("talos_full_v2")
    contacts = [Contact(foot, xyz) for foot in FEET["talos_full_v2"] for xyz in CORNERS]
    welds = [Contact(foot, kind="weld") for foot in FEET["talos_full_v2"]]
    for state in states(robot, 1000):
        yd = at_rest(robot, state, welds)
        motion = robot.constrained_forward_dynamics(
            state.q, yd, state.tau, contacts, tolerance=1e-16, max_iterations=10
        )
        assert motion.residual < 1e-10


def test_contradictory_contacts_are_satisfied_in_the_least_squares():
    robot = robot_in_contact("solo12")
    foot = FEET["solo12"][0]
    contacts = [Contact(foot, acceleration=(a, 0, 0, 0, 0, 0)) for a in (1.0, 4.0)]
    (state,) = states(robot, 1)
    motion = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, contacts)
    between = [Contact(foot, acceleration=(2.5, 0, 0, 0, 0, 0))]
    feasible = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, between)
    assert motion.converged
    assert_close(motion.ydd, feasible.ydd, 1e-8)
    assert 1.0 < motion.residual <= 1.5  # along the foot's axes


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
