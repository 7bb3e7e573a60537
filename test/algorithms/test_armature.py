"""Armature: ``H + G' A G`` and ``C + G' A g``, in every algorithm that has a mass matrix."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from mechanism_table import MECHANISMS

from rbda_ros import DescriptionError, Robot, load_robot

NAMES = ("four_bar", "geared_four_bar", "gear", "nested_loops", "ball_joint_loop", "screw")


def pair(name: str) -> tuple[Robot, Robot, np.ndarray]:
    """A mechanism without and with armature on every joint, and the armature (nv,)."""
    mechanism = MECHANISMS[name]
    loops = {} if mechanism.loops is None else yaml.safe_load(mechanism.loops.read_text())
    bare = load_robot(mechanism.urdf, loops)
    values = {joint: 0.01 * (i + 1) for i, joint in enumerate(bare.joint_names)}
    described = dict(loops.get("joints", {}))
    for joint, value in values.items():
        described[joint] = described.get(joint, {}) | {"armature": value}
    armed = load_robot(mechanism.urdf, loops | {"joints": described})
    armature = np.array([values[armed.coordinates.owners[j]] for j in range(armed.nv)])
    assert armed.joint_names == bare.joint_names
    return bare, armed, armature


@pytest.mark.parametrize("name", NAMES)
def test_armature_is_on_the_diagonal_of_the_spanning_tree(name):
    bare, armed, armature = pair(name)
    rng = np.random.default_rng(0)
    q = bare.tree.home
    yd, ydd = rng.normal(size=(2, bare.ny))
    G = np.array([bare.spanning_velocity(q, e) for e in np.eye(bare.ny)]).T
    H = bare.mass_matrix(q) + G.T @ (armature[:, None] * G)
    np.testing.assert_allclose(armed.mass_matrix(q), H, rtol=1e-10, atol=1e-12)
    qdd = bare.spanning_acceleration(q, yd, ydd)
    tau = bare.inverse_dynamics(q, yd, ydd) + G.T @ (armature * qdd)
    found = armed.inverse_dynamics(q, yd, ydd)
    np.testing.assert_allclose(found, tau, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(armed.forward_dynamics(q, yd, tau), ydd, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["four_bar", "gear"])
def test_armature_resists_at_end_effectors_too(name):
    _, armed, _ = pair(name)
    q = armed.tree.home
    frame = armed.tree.spanning.bodies[-1].name
    J = armed.jacobian(q, frame)
    expected = J @ np.linalg.solve(armed.mass_matrix(q), J.T)
    found = armed.kernel("inverse_operational_space_inertia", frame).call(q)[0]
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, atol=1e-9)


def test_armature_that_makes_no_sense_is_refused():
    urdf = MECHANISMS["gear"].urdf
    with pytest.raises(DescriptionError, match="negative"):
        load_robot(urdf, {"joints": {"swing": {"armature": -1.0}}})
