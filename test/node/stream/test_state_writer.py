"""Messages written in place are those that rclpy writes."""

import itertools

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbda_ros.node.stream.state_writer import FIELDS, JointStateWriter

SOME = [c for n in (1, 2, 3) for c in itertools.combinations(FIELDS, n)]


@pytest.mark.parametrize("fields", SOME, ids="-".join)
@pytest.mark.parametrize("names", [["a"], ["knee", "ankle_rotor", "x"], ["é", ""]])
def test_equals_rclpy(names, fields):
    stamped = JointState(name=["other"], position=[1.0])
    stamped.header.stamp.sec, stamped.header.stamp.nanosec = 12, 34
    writer = JointStateWriter(names, fields)
    wanted = JointState(name=names, header=stamped.header)
    for field in fields:
        writer.values[field][:] = values = np.random.default_rng(0).normal(size=len(names))
        setattr(wanted, field, values.tolist())
    written = writer.serialized(serialize_message(stamped))
    assert isinstance(written, bytes)
    assert deserialize_message(written, JointState) == wanted


def test_no_joints_are_left_to_rclpy():
    writer = JointStateWriter([], ("position",))
    assert writer.serialized(serialize_message(JointState())) == JointState()
