"""Operational-space inertia against dense J H^-1 J' and generalized_rbda; how its cost grows."""

import casadi as ca
import numpy as np
import pytest
from contact_oracle import CONTACTS, ContactOracle
from contact_oracle import load as load_in_contact
from contact_oracle import states as contact_states
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from osim_mechanisms import chain, dense, frames_of, growth_in_depth_and_rows, many_legs
from pinocchio_oracle import (
    assert_close,
    distinct_robots,
    example_robot,
    explicit_jacobian,
    random_state,
    some_by_day,
)
from reference_data import ANGULAR_FIRST, REFERENCE_ROBOTS, reference

from rbda_ros import Contact, load_robot
from rbda_ros.algorithms.pv_osim import (
    damped_inverse_product,
    delassus_product,
    inverse_operational_space_inertia,
)
from rbda_ros.robot.contact_dynamics import read_contacts

ROBOTS = distinct_robots()
MASSLESS_TIPS = {"romeo", "romeo_laas_small"}
"""Links without inertia have no OSIM."""

# Fixed bases are the mechanisms' and the chosen robots' here; every robot floats.
CASES = some_by_day(sorted(ROBOTS.keys() - MASSLESS_TIPS), floating_base=True) + [
    (name, False) for name in ("panda", "ur5_robot", "talos_full_v2", "tiago_pro")
]


@pytest.mark.parametrize(("name", "floating_base"), CASES)
def test_equals_pinocchio(name, floating_base):
    robot, oracle = example_robot(name, floating_base)
    rng = np.random.default_rng(1)
    frames = frames_of(robot, 3)[:2]
    for _ in range(3):
        q, _, _ = random_state(robot, rng)
        G = explicit_jacobian(robot, q) if robot.nv != robot.ny else np.eye(robot.nv)
        inverse = robot.operational_space_inertia(q, frames).inverse_inertia
        assert_close(inverse, dense(oracle, q, G, frames, 6), 1e-8)


@pytest.mark.parametrize("linear_only", [False, True], ids=["6d", "linear"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_equals_pinocchio_projected_onto_the_loops(name, linear_only):
    robot, oracle, states = mechanism_states(name)
    frames = frames_of(robot, 4)
    rows = 3 if linear_only else 6
    for s in states:
        space = robot.operational_space_inertia(s.q, frames, linear_only=linear_only)
        assert_close(space.inverse_inertia, dense(oracle, s.q, s.G, frames, rows), 1e-10)
        J = np.vstack([robot.jacobian(s.q, frame)[:rows] for frame in frames])
        assert_close(space.jacobian, J, 1e-12)
        assert np.array_equal(space.inverse_inertia, space.inverse_inertia.T)


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_reference(name):
    ref = reference(name)
    points = ref.end_effectors
    frames = [(point["body"], point["local_offset"]) for point in points]
    for state in ref.states:
        q = ref.position(state)
        inverse = ref.robot.operational_space_inertia(q, frames).inverse_inertia
        to_theirs = np.zeros_like(inverse)  # body axes, angular first
        for i, point in enumerate(points):
            R = np.array(state["body_poses"][point["body"]]["R_body_to_world"])
            turn = np.kron(np.eye(2), R.T)[ANGULAR_FIRST]
            to_theirs[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = turn
        expected = np.array(state["inv_osim_body_frame"])
        assert_close(to_theirs @ inverse @ to_theirs.T, expected, 1e-9)


def test_inertia_is_the_inverse_where_there_is_one():
    robot = load_robot(ROBOTS["panda"])
    rng = np.random.default_rng(2)
    for _ in range(20):
        q, _, _ = random_state(robot, rng)
        space = robot.operational_space_inertia(q, "panda_hand")
        assert space.rank == 6
        assert space.condition == pytest.approx(np.linalg.cond(space.inverse_inertia), 1e-6)
        product = space.inertia @ space.inverse_inertia
        np.testing.assert_allclose(product, np.eye(6), 0, 1e-13 * space.condition)


def test_rank_deficiency_is_reported():
    robot = load_robot(ROBOTS["panda"])
    q = np.array([0.3, -0.5, 0.2, -1.5, 0.4, 1.2, 0.1, 0.0, 0.0])[: robot.nq]
    # Two frames of one body have twelve rows and six degrees of freedom.
    space = robot.operational_space_inertia(q, ["panda_hand", ("panda_hand", (0.1, 0, 0))])
    assert (space.rank, space.condition) == (6, np.inf)
    inverse = space.inverse_inertia
    assert_close(inverse @ space.inertia @ inverse, inverse, 1e-9)  # a pseudo-inverse
    # A frame on the first link only turns about the vertical.
    first = robot.operational_space_inertia(q, [("panda_link1", (0.2, 0.0, 0.0))])
    assert first.rank == 1
    # The fixed base does not move at all.
    base = robot.operational_space_inertia(q, "panda_link0")
    assert base.rank == 0
    assert not base.inertia.any() and not base.inverse_inertia.any()


def test_stretched_arm_loses_a_rank():
    robot = load_robot(ROBOTS["ur5_robot"])
    stretched, bent = np.zeros(6), np.array([0.1, -1.0, 1.2, 0.4, 0.7, 0.2])
    assert robot.operational_space_inertia(bent, "ee_link").rank == 6
    assert robot.operational_space_inertia(stretched, "ee_link").rank < 6


def test_damping_is_added_to_the_inverse():
    robot = load_robot(ROBOTS["panda"])
    q = np.full(robot.nq, 0.3)
    frames = ["panda_hand", ("panda_hand", (0.1, 0, 0))]
    space = robot.operational_space_inertia(q, frames, damping=1e-3)
    damped = space.inverse_inertia + 1e-3 * np.eye(12)
    assert_close(space.inertia @ damped, np.eye(12), 1e-9)
    assert space.rank == 6  # of the inverse itself, not of the damped one


def test_cost_is_linear_in_depth_and_quadratic_in_rows():
    growth_in_depth_and_rows(inverse_operational_space_inertia)


def test_rows_along_a_chain_cost_their_square():
    """O(n + m^2): a frame on every link, where sums over the joints below each pair are cubic."""

    def count(links):
        robot = chain(links)
        q = ca.SX.sym("q", robot.nq)
        at = [robot.body_frame(f"l{i}")[1] for i in range(1, links + 1)]
        inverse = ca.SX(inverse_operational_space_inertia(robot.tree, q, at, linear_only=True))
        return ca.Function("f", [q], ca.cse([inverse])).n_instructions()

    second = np.diff([count(links) for links in (15, 18, 21, 24)], 2)
    np.testing.assert_allclose(second, second[0], rtol=0.05)


@pytest.mark.parametrize("case", ["solo on three", "solo on a slope", "talos with hands", "cassie"])
def test_product_equals_dense(case):
    name, contacts = CONTACTS[case]
    robot = load_in_contact(name)
    oracle = ContactOracle(robot)
    for state in contact_states(robot, 2):
        G, _ = oracle.explicit(state.q, np.zeros(robot.nv))
        H = G.T @ oracle.mass_matrix(state.q) @ G
        read = read_contacts(robot, contacts)
        J = read.along_axes([robot.jacobian(state.q, (c.link, c.xyz)) for c in contacts])
        forces = np.random.default_rng(0).normal(size=len(J))
        expected = J @ np.linalg.solve(H, J.T @ forces)
        assert_close(robot.delassus_product(state.q, contacts, forces), expected, 1e-9)


def test_product_is_linear_in_the_legs():
    def count(legs):
        robot, frames = many_legs(legs)
        q, axes = ca.SX.sym("q", robot.nq), ca.SX.sym("axes", 3, 3 * legs)
        forces = ca.SX.sym("forces", 3 * legs)
        product = delassus_product(robot.tree, q, axes, forces, frames)
        return ca.Function("f", [q, axes, forces], ca.cse([product])).n_instructions()

    counts = np.array([count(legs) for legs in (4, 6, 8, 10)])
    assert abs(np.diff(counts, 2)).max() <= 0.01 * np.diff(counts)[0]


ON_THE_BASE = "solo12", [Contact("base_link"), Contact("FL_FOOT"), Contact("FR_FOOT", kind="weld")]


DAMPED = [
    (*CONTACTS[case], mu)
    for case in ("arm welded", "solo on four", "talos with hands", "cassie")
    for mu in (500.0, 1e7)
]


@pytest.mark.parametrize(("name", "contacts", "mu"), [*DAMPED, (*ON_THE_BASE, 500.0)])
def test_damped_inverse_by_limbs_equals_dense(name, contacts, mu):
    """PV-OSIMf has no mu in its inertias: as many digits for a large one."""
    robot = load_in_contact(name)
    (state,) = contact_states(robot, 1)
    oracle = ContactOracle(robot)
    G, _ = oracle.explicit(state.q, np.zeros(robot.nv))
    H = G.T @ oracle.mass_matrix(state.q) @ G
    read = read_contacts(robot, contacts)
    J = read.along_axes([robot.jacobian(state.q, (c.link, c.xyz)) for c in contacts])
    x = np.random.default_rng(0).normal(size=len(J))
    # From x that forces can give: where rows are redundant the rest is mu x, of any size.
    x = J @ np.linalg.solve(H, J.T @ x)
    expected = np.linalg.solve(J @ np.linalg.solve(H, J.T) + np.eye(len(J)) / mu, x)
    found = robot.damped_delassus_inverse_product(state.q, contacts, mu, x, route="pv_osim")
    assert_close(found, expected, 1e-8)


def test_damped_inverse_by_limbs_is_linear_in_the_legs():
    def count(legs):
        robot, frames = many_legs(legs)
        q, axes = ca.SX.sym("q", robot.nq), ca.SX.sym("axes", 3, 3 * legs)
        x = ca.SX.sym("x", 3 * legs)
        product = damped_inverse_product(robot.tree, q, axes, x, frames, 100.0)
        return ca.Function("f", [q, axes, x], ca.cse([product])).n_instructions()

    counts = np.array([count(legs) for legs in (4, 6, 8, 10)])
    assert abs(np.diff(counts, 2)).max() <= 0.01 * np.diff(counts)[0]
