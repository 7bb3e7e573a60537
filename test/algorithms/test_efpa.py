"""C-EFPA against the dense J H^-1 J', and how its cost grows."""

import casadi as ca
import numpy as np
import pytest
from loop_oracle import mechanism_states
from mechanism_table import MECHANISMS
from osim_mechanisms import chain, dense, frames_of, growth_in_depth_and_rows
from pinocchio_oracle import assert_close

from rbda_ros.algorithms.efpa import efpa

SOME = [name for i, name in enumerate(MECHANISMS) if i % 4 == 0]


@pytest.mark.parametrize("name", SOME)
def test_equals_pinocchio_projected_onto_the_loops(name):
    robot, oracle, states = mechanism_states(name)
    frames = frames_of(robot, 4)
    at = [robot.body_frame(frame)[1] for frame in frames]
    for rows in (3, 6):
        q = ca.SX.sym("q", robot.nq)
        inverse = ca.Function("efpa", [q], [ca.SX(efpa(robot.tree, q, at, rows == 3))])
        for s in states:
            found = np.asarray(ca.DM(inverse(s.q)).full())
            assert_close(found, dense(oracle, s.q, s.G, frames, rows), 1e-10)


@pytest.mark.nightly  # ten seconds of tracing
def test_cost_is_linear_in_depth_and_quadratic_in_rows():
    growth_in_depth_and_rows(efpa)


def test_a_frame_far_from_the_others_costs_its_columns_at_each_joint():
    """m d: unit forces of the tip are carried to where they meet those of the first link."""

    def count(links):
        robot = chain(links)
        q = ca.SX.sym("q", robot.nq)
        at = [robot.body_frame(f"l{i}")[1] for i in (1, links)]
        return ca.Function("f", [q], ca.cse([ca.SX(efpa(robot.tree, q, at))])).n_instructions()

    counts = np.array([count(links) for links in (9, 18, 27)])
    np.testing.assert_allclose(np.diff(counts), np.diff(counts)[0], rtol=0.02)
