"""What is remembered of the stream is bounded, in time and number."""

from rbda_ros.node.stream import recent_states
from rbda_ros.node.stream.recent_states import RecentStates

SECOND = 10**9


def test_remembers_a_window_and_no_more():
    recent = RecentStates()
    recent.window = 2.0
    for k in range(10):
        recent.take(bytes([k]), k * SECOND)
    assert recent.last() == [b"\x07", b"\x08", b"\x09"]
    assert recent.last(1.0) == [b"\x08", b"\x09"]
    recent.forget()
    assert recent.last() == [] == recent.last(1.0)


def test_forgets_what_is_from_the_future():
    recent = RecentStates()
    recent.window = 5.0
    recent.take(b"late", 9 * SECOND)
    recent.take(b"early", 1 * SECOND)
    assert recent.last() == [b"early"]


def test_is_bounded_in_number(monkeypatch):
    monkeypatch.setattr(recent_states, "MOST_STATES", 3)
    recent = RecentStates()
    recent.window = 60.0
    for k in range(10):
        recent.take(bytes([k]), k)
    assert len(recent.last()) == 3
