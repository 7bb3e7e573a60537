"""Outside forces on the leg in MuJoCo."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rbda_ros.demo.contact_alarm import FORCE, false_alarms, found_force


def test_a_known_force_is_found_to_two_percent():
    np.testing.assert_allclose(found_force(), FORCE, atol=0.02 * np.linalg.norm(FORCE))


def test_the_open_chain_raises_a_false_alarm():
    with_loops, without = false_alarms()
    assert with_loops < 1.5  # [N m]
    assert without > 4.0 * with_loops
