"""The damped inverse Delassus matrix: its product with a vector, and how its cost grows.

`test_contacts` holds the matrix itself to a dense inverse.
"""

import casadi as ca
import numpy as np
import pytest
from contact_oracle import CONTACTS, load, states
from osim_mechanisms import ALL, chain, many_legs
from pinocchio_oracle import assert_close

from rbda_ros import InputError
from rbda_ros.algorithms.caba_osim import caba_osim, caba_osim_product
from rbda_ros.algorithms.contact_rows import ContactFrame


def instructions(robot, contacts):
    """Points on the last link."""
    body = robot.tree.spanning.links[robot.description.links[-1].name].body
    frames = [ContactFrame(body, np.array([0.1 * i, 0.2, 0.3]), ALL, ()) for i in range(contacts)]
    q, axes = ca.SX.sym("q", robot.nq), ca.SX.sym("axes", 3, 3 * contacts)
    inverse = caba_osim(robot.tree, q, axes, frames, 100.0)
    return ca.Function("f", [q, axes], ca.cse([inverse])).n_instructions()


def test_cost_is_linear_in_the_links_and_contacts_do_not_multiply_it():
    few, many = ([instructions(chain(n), m) for n in (10, 20, 40)] for m in (2, 8))
    a_link = (few[1] - few[0]) / 10
    assert (few[2] - few[1]) / 20 == pytest.approx(a_link, rel=0.02)
    # Six columns pass a joint however many rows there are.
    assert (many[2] - many[1]) / 20 == pytest.approx(a_link, rel=0.02)


def test_cost_is_quadratic_in_the_rows():
    robot = chain(10)
    counts = np.array([instructions(robot, m) for m in (4, 8, 12, 16)])
    second = np.diff(counts, 2)
    assert second[0] > 0
    np.testing.assert_allclose(second, second[0], rtol=0.05)  # a cubic's would grow


@pytest.mark.parametrize("case", ["solo on three", "talos with hands", "cassie"])
def test_product_equals_the_matrix_times_a_vector(case):
    name, contacts = CONTACTS[case]
    robot = load(name)
    (state,) = states(robot, 1)
    inverse = robot.damped_delassus_inverse(state.q, contacts, 500.0)
    vector = np.random.default_rng(0).normal(size=len(inverse))
    product = robot.damped_delassus_inverse_product(state.q, contacts, 500.0, vector)
    assert_close(product, inverse @ vector, 1e-9)
    with pytest.raises(InputError, match="mu is"):
        robot.damped_delassus_inverse_product(state.q, contacts, 0.0, vector)


def test_product_is_linear_in_the_legs():
    """A floating body on more and more legs: the matrix grows with their square."""

    def counts(legs):
        robot, frames = many_legs(legs)
        q, axes = ca.SX.sym("q", robot.nq), ca.SX.sym("axes", 3, 3 * legs)
        x = ca.SX.sym("x", 3 * legs)
        product = caba_osim_product(robot.tree, q, axes, x, frames, 100.0)
        inverse = caba_osim(robot.tree, q, axes, frames, 100.0)
        return [
            ca.Function("f", [q, axes, x], ca.cse([ca.SX(result)])).n_instructions()
            for result in (product, inverse)
        ]

    product, inverse = np.array([counts(legs) for legs in (4, 6, 8, 10)]).T
    assert abs(np.diff(product, 2)).max() <= 0.01 * np.diff(product)[0]
    assert np.diff(inverse, 2).min() > 0.1 * np.diff(inverse)[0]
