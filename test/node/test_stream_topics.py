"""The history of joint states is bounded, in time and number."""

from rbda_ros.node import stream_topics
from rbda_ros.node.stream_topics import RecentStates

SECOND = 10**9


def test_remembers_a_window_and_no_more():
    recent = RecentStates(None)
    recent.window = 2.0
    for k in range(10):
        recent.add(bytes([k]), k * SECOND)
    assert recent.last() == [b"\x07", b"\x08", b"\x09"]
    assert recent.last(1.0) == [b"\x08", b"\x09"]


def test_forgets_what_is_from_the_future():
    recent = RecentStates(None)
    recent.window = 5.0
    recent.add(b"late", 9 * SECOND)
    recent.add(b"early", 1 * SECOND)
    assert recent.last() == [b"early"]


def test_is_bounded_in_number(monkeypatch):
    monkeypatch.setattr(stream_topics, "MAX_STATES", 3)
    recent = RecentStates(None)
    recent.window = 60.0
    for k in range(10):
        recent.add(bytes([k]), k)
    assert len(recent.last()) == 3
