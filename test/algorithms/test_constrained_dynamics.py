"""Forward dynamics with contacts by every route, against dense solves over Pinocchio."""

import functools

import numpy as np
import pinocchio as pin
import pytest
from contact_oracle import CONTACTS, CORNERS, FEET, ContactOracle, load, states
from pinocchio_oracle import PinocchioOracle, assert_close, example_robots

from rbda_ros import Contact, load_robot
from rbda_ros.robot.contacts import ROWS

robot_in_contact = functools.cache(load)

# Every case by constrainedABA; the other routes where tracing them is quick.
ROUTES = [(case, "constrained_aba") for case in CONTACTS] + [
    (case, route)
    for case, (name, _) in CONTACTS.items()
    for route in ("prox_pv", "prox_ltl", "prox_ltls")
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
    assert abs(motion.residual - 1.5) < 1e-9
    # Of all forces that give this motion, the two contacts share theirs equally.
    assert_close(motion.forces[0], motion.forces[1], 1e-9)
    assert_close(motion.forces.sum(axis=0), feasible.forces[0], 1e-8)


def test_weights_decide_where_contacts_contradict():
    robot = robot_in_contact("solo12")
    foot = FEET["solo12"][0]
    contacts = [
        Contact(foot, acceleration=(1.0, 0, 0, 0, 0, 0), weight=2.0),
        Contact(foot, acceleration=(4.0, 0, 0, 0, 0, 0)),
    ]
    (state,) = states(robot, 1)
    motion = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, contacts)
    between = [Contact(foot, acceleration=(2.0, 0, 0, 0, 0, 0))]
    feasible = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, between)
    assert_close(motion.ydd, feasible.ydd, 1e-9)


def test_iterations_alone_say_that_they_have_not_converged():
    """Near the elbow's singularity constrainedABA takes hundreds; auto is right at once."""
    robot = load_robot(example_robots()["ur5_robot"])
    q = np.array([0.3, -0.4, 1e-3, 0.7, -0.6, 0.2])
    yd, tau = np.full(6, 0.1), np.ones(6)
    held = [Contact("tool0", kind="weld")]
    slow = robot.constrained_forward_dynamics(q, yd, tau, held, route="constrained_aba")
    assert not slow.converged
    motion = robot.constrained_forward_dynamics(q, yd, tau, held)
    assert motion.converged
    qdd, _ = ContactOracle(robot).motion(q, yd, tau, held)
    assert_close(motion.ydd, qdd, 1e-9)


@pytest.mark.parametrize("case", ["solo on three", "talos", "mini_cheetah"])
def test_a_warm_start_saves_iterations(case):
    name, contacts = CONTACTS[case]
    robot = robot_in_contact(name)
    (state,) = states(robot, 1)
    given = state.q, state.yd, state.tau, contacts
    weak = 10.0 * robot.mass  # so weak that a cold start takes long
    cold = robot.constrained_forward_dynamics(*given, mu=weak, max_iterations=400, route="prox_pv")
    warm = robot.constrained_forward_dynamics(
        *given, mu=weak, warm_start=cold.forces, max_iterations=400, route="prox_pv"
    )
    assert cold.converged
    assert warm.converged
    assert warm.iterations < cold.iterations
    assert_close(warm.ydd, cold.ydd, 1e-7)
