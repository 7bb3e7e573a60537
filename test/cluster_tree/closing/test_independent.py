"""The choice of independent coordinates, from Jacobians alone."""

import numpy as np
import pytest

from rbda_ros.cluster_tree.closing.independent import AssemblyError, Wishes, choose_independent

NAMES = ("a", "b", "c")
WISHES = Wishes(frozenset(), frozenset(range(3)), frozenset(), listed=False)
GOOD = np.array([[0.9, 0.1, 0.4], [0.1, 0.7, 0.7]])
STRAY = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
"""At a position on another branch: no two columns are independent, whatever y is."""


def choice(jacobians):
    return choose_independent(jacobians, 1, WISHES, NAMES, constant=False)


def test_one_stray_position_of_eight_has_no_veto():
    assert choice([GOOD] * 7 + [STRAY]) == choice([GOOD] * 7)


def test_where_most_positions_are_singular_the_choice_is_refused():
    with pytest.raises(AssemblyError, match="no choice of independent joints"):
        choice([GOOD] * 3 + [STRAY] * 5)
