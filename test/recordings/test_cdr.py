"""Messages as bytes, against rosbags and against ROS itself."""

import contextlib

import numpy as np
import pytest
from bag_maker import JOINT_STATE, START, STORE, joint_state
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbda_ros.recordings.cdr import CdrCodec, CdrReader, CdrWriter, UnreadableError, stamp

NAMES = ("a", "knee", "long_name_of_a_joint", "ä")
CASES = [(4, 4, 4), (4, 0, 0), (4, 4, 0), (0, 0, 4), (4, 0, 4), (3, 5, 1)]


def numbers(*sizes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=size) for size in sizes]


@pytest.mark.parametrize("sizes", CASES)
def test_reads_what_ros_and_rosbags_write(sizes):
    position, velocity, effort = numbers(*sizes)
    message = joint_state(NAMES, position, velocity, effort, START + 7)
    ros = JointState(name=list(NAMES))
    ros.header.stamp.sec, ros.header.stamp.nanosec = divmod(START + 7, 10**9)
    ros.header.frame_id = "here"
    ros.position, ros.velocity, ros.effort = (list(x) for x in (position, velocity, effort))
    codec = CdrCodec()
    for data in (bytes(STORE.serialize_cdr(message, JOINT_STATE)), serialize_message(ros)):
        for _ in range(2):  # the second time in place
            states = codec.reader().read(data)
            assert states.names == NAMES and states.time == stamp(data) == START + 7
            np.testing.assert_array_equal(states.position, position)
            np.testing.assert_array_equal(states.velocity, velocity)
            np.testing.assert_array_equal(states.effort, effort)


@pytest.mark.parametrize("fields", [("effort",), ("position", "velocity"), ("velocity", "effort")])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_ros_reads_what_it_writes(fields, count):
    writer = CdrWriter(NAMES[:count], fields)
    for k, field in enumerate(fields):
        writer.values[field][:] = k + np.arange(count)
    like = bytes(STORE.serialize_cdr(joint_state((), (), (), (), START), JOINT_STATE))
    message = deserialize_message(writer.serialized(like), JointState)
    assert tuple(message.name) == NAMES[:count]
    assert message.header.stamp.sec == START // 10**9
    for field in ("position", "velocity", "effort"):
        expected = fields.index(field) + np.arange(count) if field in fields else []
        np.testing.assert_array_equal(getattr(message, field), expected)


def test_names_of_messages_alike_are_the_same_object():
    reader = CdrReader()
    read = []
    for sizes in CASES[:3]:
        message = joint_state(NAMES, *numbers(*sizes), START)
        read.append(reader.read(bytes(STORE.serialize_cdr(message, JOINT_STATE))))
    assert read[0].names is read[1].names is read[2].names


def test_what_is_cut_anywhere_is_unreadable():
    whole = bytes(STORE.serialize_cdr(joint_state(NAMES, *numbers(4, 4, 4), START), JOINT_STATE))
    for size in range(len(whole)):
        with pytest.raises(UnreadableError):
            CdrReader().read(whole[:size])


def test_bytes_at_random_are_read_or_unreadable():
    rng = np.random.default_rng(1)
    whole = bytes(STORE.serialize_cdr(joint_state(NAMES, *numbers(4, 4, 4), START), JOINT_STATE))
    for _ in range(2000):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(256)
        with contextlib.suppress(UnreadableError):
            CdrReader().read(bytes(data))
