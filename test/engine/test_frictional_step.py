"""Arguments of steps with friction that do not belong together; `test_friction` has the results."""

import numpy as np
import pytest

from rbda_ros.engine import core

NY, CONTACTS = 6, 2


def arguments(**changes):
    """Two rigid contacts of a body with unit inertia, at rest; some of it replaced."""
    J = np.zeros((3 * CONTACTS, NY))
    J[[0, 1, 2], [0, 1, 2]] = J[[3, 4, 5], [0, 1, 2]] = 1.0
    given = {
        "kinds": "cc", "dt": 1e-3, "recovery": 0.2, "tolerance": 1e-10, "most": 100,
        "contact": np.tile([0.5, np.inf, 0.0, 0.0], (CONTACTS, 1)),
        "parameters": np.full(CONTACTS, 0.5), "start": None,
        "yd": np.zeros(NY), "ydd": np.array([0.0, 0, -9.81, 0, 0, 0]), "gaps": np.zeros(CONTACTS),
        "axes": np.tile(np.eye(3), (CONTACTS, 1, 1)), "J": J, "X": J.T.copy(), "A": J @ J.T,
        "J_others": np.zeros((0, NY)), "b_others": np.zeros(0), "inverse": None,
    }  # fmt: skip
    return tuple((given | changes).values())


def test_a_body_on_two_contacts_stays():
    yd, _, forces, *_ = core.frictional_steps(*arguments())
    assert np.abs(yd).max() < 1e-9
    assert forces[:, 2].sum() == pytest.approx(9.81)
    by_inverse = core.frictional_steps(*arguments(X=None, A=None, inverse=np.eye(NY)))
    np.testing.assert_allclose(by_inverse[0], yd, atol=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"kinds": "c"}, {"kinds": "ccc"}, {"kinds": "cx"}, {"kinds": "c" * 300},
        {"contact": np.zeros((CONTACTS, 3))}, {"contact": None}, {"parameters": np.zeros(3)},
        {"yd": np.zeros(5)}, {"yd": np.array(0.0)}, {"yd": np.zeros(NY, dtype=np.float32)},
        {"ydd": None}, {"gaps": np.zeros(3)}, {"axes": np.zeros(3)}, {"axes": None},
        {"J": np.zeros((NY, 7))[:, :NY]}, {"X": None}, {"X": None, "A": None},
        {"start": np.zeros(5)}, {"J_others": None}, {"inverse": np.zeros(5)},
    ],
)  # fmt: skip
def test_sizes_that_do_not_belong_together_are_rejected(changes):
    with pytest.raises(ValueError):
        core.frictional_steps(*arguments(**changes))


def test_a_singular_mass_matrix_gives_no_step():
    assert core.frictional_steps(*arguments(ydd=np.full(NY, np.nan))) is None


def test_limits_need_vectors():
    none, places = np.zeros(0), np.zeros(0, dtype=np.intp)
    bounds = np.zeros((2, 0))
    with pytest.raises(ValueError):
        core.near_limits(1e-3, 0.1, np.array(0.0), none, none, None, places, places, bounds)
    q, lower_upper = np.array([0.05, 0.0]), np.array([[0.0, -1.0], [3.0, 1.0]])
    places = np.arange(2, dtype=np.intp)
    near = core.near_limits(1e-3, 0.1, q, q, q, None, places, places, lower_upper)
    assert near.tolist() == [[True, False], [False, False]]
