"""Loops closed by their forces, against a dense solve and against the same loops embedded."""

from dataclasses import replace

import numpy as np
import pytest
from contact_oracle import CONTACTS, load, states
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from pinocchio_oracle import assert_close
from reference_data import REFERENCE_ROBOTS, reference

from benchmark.limbs import PER_LIMB, limbs
from benchmark.parallel_chains import parallel_chains
from rbda_ros import Contact, Payload, Robot, load_robot

TREATMENTS = {
    "by forces": lambda i: "proximal",
    "mixed": lambda i: "proximal" if i % 2 else "embed",
    "mixed otherwise": lambda i: "embed" if i % 2 else "proximal",
}


def treated(robot, method_of):
    """The same robot with other methods; ``method_of`` the number of each constraint."""
    constraints = tuple(
        replace(constraint, method=method_of(i))
        for i, constraint in enumerate(robot.description.constraints)
    )
    description = replace(robot.description, constraints=constraints)
    return Robot(replace(robot.tree, description=description))


SEVERAL = (
    "belt_pair", "cam", "chained_loops", "differential", "geared_four_bar", "mimic_chain",
    "nested_loops", "overlapping_loops", "planar_joint_loop", "rotors", "tello_leg", "two_parents",
)  # fmt: skip
"""Mechanisms of more than one constraint."""


@pytest.mark.parametrize(
    ("name", "treatment"),
    [(name, "by forces") for name in MECHANISMS] + [(name, "mixed") for name in SEVERAL],
)
def test_equals_a_dense_solve(name, treatment):
    embedded, oracle, drawn = mechanism_states(name)
    robot = treated(embedded, TREATMENTS[treatment])
    assert robot.loop_methods.by_forces
    rng = np.random.default_rng(0)
    for state in drawn[:4]:
        tau = rng.normal(size=robot.nv)
        expected = oracle.forward_dynamics(state.q, state.qd, tau)[list(robot.tree.independent)]
        assert_close(robot.forward_dynamics(state.q, state.yd, tau), expected, 1e-8)


@pytest.mark.parametrize("name", REFERENCE_ROBOTS)
def test_equals_the_reference(name):
    data = reference(name)
    robot = treated(data.robot, TREATMENTS["mixed otherwise"])
    for state in data.states[:2]:
        q, qd = data.position(state), data.velocity(state)
        ydd = robot.forward_dynamics(q, qd, data.independent(state["tau"]))
        assert_close(ydd, data.independent(state["fd_ydd"]), 1e-8)


def test_external_wrenches_and_payloads_reach_open_loops():
    embedded, _, drawn = mechanism_states("two_parents")
    robot = treated(embedded, TREATMENTS["by forces"])
    state, link = drawn[0], embedded.description.links[-1].name
    tau, wrench = np.ones(robot.ny), {link: np.arange(1.0, 7.0)}
    load_on = {"tool": Payload(link, 0.3, (0.01, 0.02, 0.03), (1e-3, 0, 0, 1e-3, 0, 1e-3))}
    found = robot.with_payloads(load_on).forward_dynamics(state.q, state.yd, tau, wrench)
    expected = embedded.with_payloads(load_on).forward_dynamics(state.q, state.yd, tau, wrench)
    assert np.abs(expected - embedded.forward_dynamics(state.q, state.yd, tau)).max() > 1e-3
    assert_close(found, expected, 1e-8)


@pytest.mark.parametrize("treatment", TREATMENTS)
def test_contacts_and_open_loops_are_solved_together(treatment):
    name, contacts = CONTACTS["cassie"]
    embedded = load(name)
    robot = treated(embedded, TREATMENTS[treatment])
    for state in states(embedded, 2):
        found = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, contacts)
        expected = embedded.constrained_forward_dynamics(state.q, state.yd, state.tau, contacts)
        assert_close(found.ydd, expected.ydd, 1e-8)
        assert_close(found.forces, expected.forces, 1e-7)


@pytest.mark.nightly
def test_loops_of_any_size_are_embedded_on_request():
    """A rod between the fifteenth bodies of two chains: 31 bodies in one cluster."""
    urdf = parallel_chains(15, 15, "rod")
    embedded = load_robot(urdf, {"method": "embed"})
    assert max(len(node.bodies) for node in embedded.tree.clusters) == 31
    by_forces = load_robot(urdf, {"method": "proximal"})
    yd, tau = np.random.default_rng(0).normal(size=(2, embedded.ny))
    q = embedded.tree.home
    expected = by_forces.forward_dynamics(q, yd, tau)
    assert_close(embedded.forward_dynamics(q, yd, tau), expected, 1e-9)


def test_loops_of_different_limbs_never_meet():
    """Eliminated at their ancestor, loops cost no more per limb the more limbs there are."""
    counts = []
    for n in (1, 2, 4):
        urdf, loops = limbs(PER_LIMB * n)
        robot = load_robot(urdf, loops | {"method": "proximal"}, floating_base=True)
        counts.append(robot.kernel("forward_dynamics").instructions)
    # Limbs are placed differently, which is worth a few instructions.
    assert counts[2] - counts[1] <= 1.01 * 2 * (counts[1] - counts[0])
    embedded = load_robot(urdf, loops, floating_base=True)
    state = embedded.random_state(0)
    tau = np.random.default_rng(0).normal(size=robot.ny)
    expected = embedded.forward_dynamics(state.q, state.yd, tau)
    assert robot.independent_joint_names == embedded.independent_joint_names
    assert_close(robot.forward_dynamics(state.q, state.yd, tau), expected, 1e-8)


def test_limbs_with_loops_on_the_ground_cost_as_much_each():
    """Loops and contacts at once, in O(n + m): each limb has a loop and stands on its rocker."""
    counts = []
    for n in (1, 2, 4):
        urdf, loops = limbs(PER_LIMB * n)
        robot = load_robot(urdf, loops | {"method": "proximal"}, floating_base=True)
        feet = [Contact(f"rocker_{i}_link") for i in range(n)]
        counts.append(robot.contact_kernel(feet).instructions)
    assert counts[2] - counts[1] <= 1.02 * 2 * (counts[1] - counts[0])
    embedded = load_robot(urdf, loops, floating_base=True)
    state = embedded.random_state(0)
    tau = np.random.default_rng(0).normal(size=robot.ny)
    expected = embedded.constrained_forward_dynamics(state.q, state.yd, tau, feet)
    found = robot.constrained_forward_dynamics(state.q, state.yd, tau, feet)
    assert found.converged and expected.converged
    assert_close(found.ydd, expected.ydd, 1e-7)
