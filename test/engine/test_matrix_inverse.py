"""Inverses of mass matrices by the engine's factorization, beside the same in numpy."""

import ltl_oracle
import numpy as np
import pytest
from pinocchio_oracle import example_robots

from rbda_ros import SingularityError, load_robot
from rbda_ros.robot import operations


def chain(links):
    """So many links of which each carries the next; of no mass where there are none."""
    body = """<link name='l{0}'><inertial><origin xyz='.1 .02 0'/><mass value='1'/>
     <inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial></link>"""
    joint = """<joint name='j{0}' type='continuous'><parent link='l{0}'/><child link='l{1}'/>
     <origin xyz='.2 0 0'/><axis xyz='0 {2} 1'/></joint>"""
    bodies = "".join(body.format(k) for k in range(links + 1))
    joints = "".join(joint.format(k, k + 1, k % 2) for k in range(links))
    return f"<robot name='chain'>{bodies}{joints}</robot>"


# Only of robots that are loaded afterwards: others may have their calls already.
@pytest.fixture(autouse=True)
def always_by_the_engine(monkeypatch):
    monkeypatch.setattr(operations, "MAX_INVERTED", 0)


def check(robot):
    robot.prepare("mass_matrix")
    states = robot.random_state(7, 20).q
    parents = list(robot.tree.independent_parents)
    inverses = robot.mass_matrix_inverse(states)
    for k in (0, 5, 19):
        H = robot.mass_matrix(states[k])
        inverse = robot.mass_matrix_inverse(states[k])
        assert (inverse == ltl_oracle.invert(parents, H)).all()
        assert (inverse == inverse.T).all()
        assert (inverses[k] == inverse).all()
        expected = np.linalg.inv(H)
        np.testing.assert_allclose(inverse, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("links", [1, 2, 4, 15, 31, 33, 40])
def test_chains_of_any_length(links):
    check(load_robot(chain(links)))


@pytest.mark.parametrize("name", ["solo12", "talos_reduced", "g1_29dof_with_hand_rev_1_0"])
@pytest.mark.parametrize("floating", [False, True])
def test_branches(name, floating):
    check(load_robot(example_robots()[name], floating_base=floating))


def test_a_singular_matrix_is_an_error():
    massless = chain(3).replace("mass value='1'", "mass value='0'").replace("'.1' ", "'0' ")
    robot = load_robot(massless.replace("izz='.1'", "izz='0'"))
    with pytest.raises(SingularityError):
        robot.mass_matrix_inverse(np.zeros(3))
    with pytest.raises(SingularityError):
        robot.mass_matrix_inverse(np.zeros((4, 3)))
