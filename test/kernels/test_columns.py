"""Matrices column by column: those of one straight line, of robots of any length."""

import time

import numpy as np
import pytest

from rbda_ros import InputError, load_robot
from rbda_ros.kernels import columns
from rbda_ros.kernels.columns import ColumnKernel
from rbda_ros.kernels.program import UnsupportedOperationError
from rbda_ros.kernels.trace import trace

LINK = (
    '<link name="l{0}"><inertial><origin xyz="0.02 0.01 0.1"/><mass value="1"/>'
    '<inertia ixx="0.003" iyy="0.002" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="j{0}" type="continuous"><parent link="l{1}"/><child link="l{0}"/>'
    '<origin xyz="0 0 0.2"/><axis xyz="{2}"/>{3}</joint>'
)
AXES = ("1 0 0", "0 1 0", "0 0 1")


def tree_of(links, branching=1, geared=()):
    """A tree in which body i hangs on body (i - 1) // branching; rotors by loop file."""
    parts = [LINK.format(0)]
    for i in range(1, links + 1):
        parts += [LINK.format(i), JOINT.format(i, (i - 1) // branching, AXES[i % 3], "")]
    rotors = {f"j{i}": {"ratio": 6.0, "inertia": 1e-4} for i in geared}
    loops = {"rotors": rotors} if rotors else None
    return load_robot(f'<robot name="tree">{"".join(parts)}</robot>', loops, floating_base=True)


def state_of(robot):
    rng = np.random.default_rng(3)
    step = robot.spanning_velocity(robot.tree.home, rng.normal(size=robot.ny))
    q = robot.close(robot.tree.integrate(robot.tree.home, step))
    return q, rng.normal(size=robot.ny), rng.normal(size=robot.ny)


@pytest.mark.parametrize("name", columns.MATRICES)
@pytest.mark.parametrize("options", [(9, 1), (9, 2), (5, 1, (2, 4))])
def test_columns_are_those_of_the_straight_line(monkeypatch, name, options):
    robot = tree_of(*options)
    inputs = state_of(robot)[: len(columns.MATRICES[name].inputs)]
    straight = trace(robot.tree, name)
    monkeypatch.setattr(columns, "LONGEST", 0)
    kernel = trace(robot.tree, name)
    assert isinstance(kernel, ColumnKernel)
    assert not isinstance(straight, ColumnKernel)
    expected = straight.call(*inputs)
    interpreted = kernel.call(*inputs)
    assert kernel.compile() and kernel.compiled and kernel.error is None
    bound = kernel.bind()
    for array, given in zip(bound.inputs, inputs, strict=True):
        array[:] = given
    bound()
    batch = kernel.batch(*(np.stack([given, given]) for given in inputs))
    for i, matrix in enumerate(expected):
        for other in (interpreted[i], kernel.call(*inputs)[i], bound.outputs[i], *batch[i]):
            np.testing.assert_allclose(other, matrix, rtol=0, atol=1e-12 * np.abs(matrix).max())


def test_zeros_of_branches_stay_zeros(monkeypatch):
    monkeypatch.setattr(columns, "LONGEST", 0)
    robot = tree_of(8, branching=2)
    q, _, _ = state_of(robot)
    H, L = robot.mass_matrix(q), robot.mass_matrix_factor(q)
    np.testing.assert_array_equal(H, H.T)
    np.testing.assert_allclose(L.T @ L, H, rtol=0, atol=1e-13 * np.abs(H).max())
    apart = H[6:, 6:] == 0.0  # joints on different branches
    assert apart.any()
    assert not L[6:, 6:][apart].any()


def test_a_chain_of_200_is_ready_in_seconds():
    robot = tree_of(200)
    began = time.thread_time()
    kernel = robot.kernel("mass_matrix")
    kernel.compile()
    assert time.thread_time() - began < 15.0  # the straight line took a minute
    q, _, ydd = state_of(robot)
    rest = np.zeros(robot.ny)
    expected = robot.inverse_dynamics(q, rest, ydd) - robot.gravity_force(q)
    H = robot.mass_matrix(q)
    np.testing.assert_allclose(H @ ydd, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_wrong_inputs_are_refused(monkeypatch):
    monkeypatch.setattr(columns, "LONGEST", 0)
    kernel = trace(tree_of(3).tree, "mass_matrix")
    with pytest.raises(InputError, match="takes 1 arrays"):
        kernel.call()
    with pytest.raises(InputError, match="q has shape"):
        kernel.call(np.zeros(3))
    with pytest.raises(InputError, match="q has shape"):
        kernel.batch(np.zeros(10))
    with pytest.raises(UnsupportedOperationError, match="column by column"):
        _ = kernel.program
