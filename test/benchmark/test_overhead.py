"""The benchmark of overheads keeps up with the operations."""

import pytest

from benchmark.overhead import rows
from rbda_ros.robot.operations import OPERATIONS


@pytest.mark.nightly
def test_every_operation_has_a_row_with_a_time():
    found = list(rows())
    large = {row["method"] for row in found if row["robot"] == "talos_reduced"}
    assert set(OPERATIONS) - large == {"mass_matrix_inverse"}  # C inverts it, beside no kernel
    assert set(OPERATIONS) <= {row["method"] for row in found if row["robot"] == "demo_leg"}
    assert all(row["us"] > 0.0 for row in found)
