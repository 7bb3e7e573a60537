"""``converged`` means right to seven digits: near singularities and with contradictions alike."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from contact_oracle import FEET, ContactOracle, State, load, states
from mechanism_table import MECHANISMS, closed_states
from pinocchio_oracle import assert_close, example_robots

from rbda_ros import Contact, Robot, load_robot


class ExactOracle(ContactOracle):
    """G and g of embedded loops as the robot has them, since differences lose digits here."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.robot = robot

    def explicit(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        yd = qd[self.independent]
        G = self.robot.spanning_velocity(q, np.eye(self.robot.ny)).T
        return G, self.robot.spanning_acceleration(q, yd, np.zeros(self.robot.ny))


@dataclass(frozen=True, eq=False)
class Case:
    """A state of a robot, and its contacts."""

    state: State
    contacts: list[Contact]


@functools.cache
def robot_of(name: str) -> Robot:
    if name == "ur5":
        return load_robot(example_robots()["ur5_robot"])
    return load(name)


SINGULAR_AT_ZERO = {
    "ur5": ["elbow_joint", "wrist_2_joint"],
    "talos_full_v2": ["leg_left_4_joint", "leg_right_4_joint"],
    "mini_cheetah": [f"{leg}_hip_to_knee_j" for leg in ("FR", "FL", "HR", "HL")],
}
CONTACTS = {
    "ur5": [Contact("tool0", kind="weld")],
    "talos_full_v2": [Contact(foot, kind="weld") for foot in FEET["talos_full_v2"]],
    "mini_cheetah": [Contact(foot, (0.0, 0.0, -0.2)) for foot in FEET["mini_cheetah"]],
}
LOOPS = [name for name in MECHANISMS if name != "mimic_chain"]
"""Mechanisms with internal loops, at least 20."""


def by_forces(name: str) -> Robot:
    """A mechanism whose loops are closed by their forces, together with the contacts."""
    embedded = MECHANISMS[name].load()
    constraints = tuple(replace(c, method="proximal") for c in embedded.description.constraints)
    description = replace(embedded.description, constraints=constraints)
    robot = Robot(replace(embedded.tree, description=description))
    assert robot.loop_methods.by_forces
    return robot


def cases_of_robot(name: str, count: int) -> Iterator[Case]:
    """A third each anywhere, within 1e-6 rad of a singularity, and with a contradiction.

    Half of each are at rest, where contacts miss next to nothing although the motion is wrong.
    """
    robot, rng = robot_of(name), np.random.default_rng(7)
    for i, state in enumerate(states(robot, count, seed=3)):
        q, held = state.q, list(CONTACTS[name])
        if i % 3 == 1:
            y = robot.independent_position(q)
            joint = SINGULAR_AT_ZERO[name][i % len(SINGULAR_AT_ZERO[name])]
            names = robot.independent_joint_names
            y[names.index(joint) - len(names)] = rng.uniform(-1e-6, 1e-6)
            q = robot.close(y, guess=q)
        if i % 3 == 2:
            held.append(replace(held[0], acceleration=rng.normal(size=6)))
        yield Case(State(q, state.yd * (i % 2), state.tau), held)


def cases_of_mechanism(name: str, count: int) -> Iterator[Case]:
    """A link held at a point, welded, and along two lines that are nearly parallel."""
    mechanism, rng = MECHANISMS[name], np.random.default_rng(11)
    robot = mechanism.load()
    link = robot.tree.spanning.bodies[-1].name
    for i, q in enumerate(closed_states(mechanism, count)):
        state = State(q, rng.normal(size=robot.ny), rng.normal(size=robot.ny))
        normal, aside = rng.normal(size=(2, 3))
        line = Contact(link, (0.1, 0.2, 0.3), rows=("z",), normal=normal)
        other = replace(line, normal=normal + 1e-6 * aside, acceleration=rng.normal(size=6))
        kinds = [Contact(link, (0.1, 0.2, 0.3))], [Contact(link, kind="weld")], [line, other]
        yield Case(state, kinds[i % 3])


def check(robot: Robot, cases: Iterator[Case]) -> list[bool]:
    """Compare those that are said to be right with a dense solve; which ones they are."""
    oracle, right = ExactOracle(robot), []
    for case in cases:
        state, contacts = case.state, case.contacts
        motion = robot.constrained_forward_dynamics(state.q, state.yd, state.tau, contacts)
        assert np.isfinite(motion.ydd).all()
        right.append(motion.converged)
        G, _ = oracle.explicit(state.q, robot.spanning_velocity(state.q, state.yd))
        rows = np.vstack([oracle.jacobian_of(state.q, contact) for contact in contacts]) @ G
        sizes = np.linalg.svd(rows, compute_uv=False)
        if sizes[0] < 1e-12:  # rounding alone: the link cannot move
            continue
        if not motion.converged:
            continue
        tau = np.zeros(robot.nv)
        tau[list(robot.tree.independent)] = state.tau
        qd = robot.spanning_velocity(state.q, state.yd)
        qdd, _ = oracle.motion(state.q, qd, tau, contacts)
        ydd = qdd[list(robot.tree.independent)]
        assert_close(motion.ydd, ydd, 1e-7)
    return right


@pytest.mark.parametrize("name", CONTACTS)
def test_robots_that_converge_are_right(name):
    right = check(robot_of(name), cases_of_robot(name, 12))
    assert sum(right) >= 8  # those that are not near a singularity


@pytest.mark.parametrize("name", LOOPS)
def test_mechanisms_that_converge_are_right(name):
    assert sum(check(MECHANISMS[name].load(), cases_of_mechanism(name, 3))) >= 2


@pytest.mark.parametrize("name", LOOPS[::3])
def test_mechanisms_with_open_loops_that_converge_are_right(name):
    assert sum(check(by_forces(name), cases_of_mechanism(name, 3))) >= 2


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a busy machine takes long
@pytest.mark.parametrize("name", CONTACTS)
def test_many_states_of_robots(name):
    right = check(robot_of(name), cases_of_robot(name, 1000))
    assert sum(right) >= 660  # those that are not near a singularity


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a busy machine takes long
@pytest.mark.parametrize("name", LOOPS)
def test_many_states_of_mechanisms(name):
    right = check(MECHANISMS[name].load(), cases_of_mechanism(name, 1000))
    assert sum(right) >= 660


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a busy machine takes long
@pytest.mark.parametrize("name", LOOPS)
def test_many_states_of_mechanisms_with_open_loops(name):
    right = check(by_forces(name), cases_of_mechanism(name, 1000))
    assert sum(right) >= 660
