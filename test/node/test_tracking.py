"""The node drives simulated robots by computed torque: the cases of the benchmark."""

import pytest
from ros_graph import own_domain

from benchmark.tracking import ROBOTS, compare


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(ROBOTS))
def test_the_feedforward_tracks_within_a_milliradian(name, monkeypatch):
    with own_domain() as domain:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        exact, open_chain = compare(name, 2.0)
    assert exact < 1e-3
    assert open_chain > 10.0 * exact
