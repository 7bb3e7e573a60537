"""Messages read and written in place against what rclpy makes of the same bytes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rbda_ros.node.stream import wire
from rbda_ros.node.stream.wire import FIELDS, EffortWriter, JointStateReader, JointStateWriter
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

NAMES = st.lists(st.text("abc_é/", max_size=9), max_size=6)
STAMPS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))


def numbers(size):
    return st.lists(st.floats(width=64), min_size=size, max_size=size)


@st.composite
def messages(draw, names=None):
    names = draw(NAMES) if names is None else names
    message = JointState(name=names)
    message.header.frame_id = draw(st.sampled_from(["", "base", "world_"]))
    message.header.stamp.sec, message.header.stamp.nanosec = draw(STAMPS)
    for field in ("position", "velocity", "effort"):
        setattr(message, field, draw(numbers(draw(st.sampled_from([0, len(names), 1])))))
    return message


def assert_read(states, message):
    stamp = message.header.stamp
    assert states.time == stamp.sec * 10**9 + stamp.nanosec
    assert list(states.names) == message.name
    assert states.position.tobytes() == np.array(message.position, float).tobytes()
    assert states.velocity.tobytes() == np.array(message.velocity, float).tobytes()


@settings(max_examples=200, deadline=None)
@given(st.lists(messages(["a", "bcd"]) | messages(), min_size=1, max_size=8))
def test_whatever_comes_is_read_as_rclpy_reads_it(stream):
    reader = JointStateReader()
    for message in stream + stream:
        assert_read(reader.read(serialize_message(message)), message)


@pytest.fixture
def message():
    message = JointState(name=["hip", "knee_1"])
    message.position, message.velocity = [0.1, 0.2], [3.0, 4.0]
    return message


def test_from_the_second_on_rclpy_is_not_asked(message, monkeypatch):
    reader = JointStateReader()
    first = reader.read(serialize_message(message))
    monkeypatch.delattr(wire, "deserialize_message")
    message.position[1], message.header.stamp.sec = 0.3, 7
    second = reader.read(serialize_message(message))
    assert_read(second, message)
    assert second.names is first.names


def test_what_pads_the_strings_may_be_anything(message, monkeypatch):
    data = bytearray(serialize_message(message))
    reader = JointStateReader()
    reader.read(bytes(data))
    monkeypatch.delattr(wire, "deserialize_message")
    pads = slice(17, 20)  # after the empty frame_id: its length, a zero, and three bytes more
    data[pads] = b"\x11\x22\x33"
    assert deserialize_message(bytes(data), JointState) == message
    assert_read(reader.read(bytes(data)), message)


def test_names_that_differ_in_one_letter_are_told_apart(message):
    reader = JointStateReader()
    for name in ("knee_1", "knee_2", "knee_1"):
        message.name = ["hip", name]
        assert_read(reader.read(serialize_message(message)), message)


@settings(max_examples=100, deadline=None)
@given(messages(), st.data())
def test_efforts_are_written_as_rclpy_writes_them(like, data):
    names = data.draw(NAMES)
    writer = EffortWriter(names)
    efforts = data.draw(numbers(len(names)))
    writer.efforts[:] = efforts
    written = writer.serialized(serialize_message(like))
    if isinstance(written, bytes):
        written = deserialize_message(written, JointState)
    else:
        assert not names
    assert written.header.stamp == like.header.stamp
    assert written.name == names
    assert written.effort.tobytes() == np.array(efforts, float).tobytes()
    assert not written.position
    assert not written.velocity


def test_another_encoding_is_left_to_rclpy(monkeypatch, message):
    """As of a machine that is not little-endian."""
    monkeypatch.setattr(wire, "LITTLE_ENDIAN", b"\x00\x00")
    reader, data = JointStateReader(), serialize_message(message)
    for _ in range(2):
        assert_read(reader.read(data), message)
    writer = EffortWriter(["a", "b"])
    writer.efforts[:] = [1.0, 2.0]
    written = writer.serialized(data)
    assert isinstance(written, JointState)
    assert written.effort.tolist() == [1.0, 2.0]
    assert written.header.stamp == message.header.stamp


SOME = [c for n in (1, 2, 3) for c in itertools.combinations(FIELDS, n)]


@pytest.mark.parametrize("fields", SOME, ids="-".join)
@pytest.mark.parametrize("names", [["a"], ["knee", "ankle_rotor", "x"], ["é", ""]])
def test_states_are_written_as_rclpy_writes_them(names, fields):
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
