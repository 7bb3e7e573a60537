"""The competitors that papers are reproduced with compute the right numbers."""

import numpy as np
import pytest
from pinocchio_oracle import assert_close

from benchmark.papers.internals import contact_inputs, delassus_kernel, sparse_forward_dynamics
from benchmark.papers.sathya2024_systems import load, state, systems
from benchmark.parallel_chains import parallel_chains
from rbda_ros import load_robot


@pytest.mark.parametrize("kind", ["transmission", "rod"])
def test_proximal_and_sparse_equals_embedding(kind):
    urdf = parallel_chains(4, 2, kind)
    robot, sparse = load_robot(urdf), sparse_forward_dynamics(urdf)
    rng = np.random.default_rng(0)
    q = robot.close(0.3 * rng.normal(size=robot.ny))
    yd, tau = rng.normal(size=(2, robot.ny))
    found = np.asarray(sparse(q, yd, tau)).ravel()
    # Two iterations with mu = 1e6, beside inertias of 0.1 kg m^2.
    assert_close(found, robot.forward_dynamics(q, yd, tau), 1e-8)


@pytest.mark.parametrize("method", ["PV", "EFPA", "LTL"])
def test_damped_delassus_inverses_are_one_matrix(method):
    (system,) = systems("Solo - F3^2")
    robot, mu = load(system.robot), 100.0
    q, axes = state(robot)[0], contact_inputs(robot, system.contacts)[0]
    expected = delassus_kernel(robot, system.contacts, "cABA", mu).call(q, axes)[0]
    found = delassus_kernel(robot, system.contacts, method, mu).call(q)[0]
    assert_close(found, expected, 1e-9)
