"""The damped inverse Delassus matrix: its product with a vector, and how its cost grows.

`test_contacts` holds the matrix itself to a dense inverse.
"""

import casadi as ca
import numpy as np
import pytest
from contact_oracle import CONTACTS, load, states
from pinocchio_oracle import assert_close

from rbda_ros import load_robot
from rbda_ros.algorithms.caba_osim import caba_osim, caba_osim_product
from rbda_ros.algorithms.contact_rows import ContactFrame
from rbda_ros.spatial import align_z

ALL = (0, 1, 2)


def chain(links):
    """A chain of revolute joints about changing axes."""
    parts = ['<link name="l0"/>']
    for i in range(1, links + 1):
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="0.01 0.02 0.1"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0"/></inertial>'
            f'</link><joint name="j{i}" type="continuous"><parent link="l{i - 1}"/>'
            f'<child link="l{i}"/><origin xyz="0.05 0 0.2"/><axis xyz="{axis}"/></joint>'
        )
    return load_robot(f'<robot name="chain">{"".join(parts)}</robot>')


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
    frames = []
    for contact in contacts:
        _, at = robot.body_frame((contact.link, contact.xyz))
        angular = ALL if contact.kind == "weld" else ()
        frames.append(ContactFrame(at.body, at.frame.p, ALL, angular))
    q, x = ca.SX.sym("q", robot.nq), ca.SX.sym("x", sum(frame.size for frame in frames))
    axes = ca.DM(np.hstack([align_z(np.array([0.0, 0.0, 1.0]))] * len(frames)))
    product = caba_osim_product(robot.tree, q, axes, x, frames, 500.0)
    function = ca.Function("f", [q, x], ca.cse([product]))
    (state,) = states(robot, 1)
    vector = np.random.default_rng(0).normal(size=x.rows())
    expected = robot.damped_delassus_inverse(state.q, contacts, 500.0) @ vector
    assert_close(np.asarray(function(state.q, vector)).ravel(), expected, 1e-9)
