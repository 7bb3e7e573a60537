"""Which threads go first: as the system has it."""

import ctypes
import logging
import os
import platform
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from lifecycle_msgs.msg import Transition
from native_talk import LEG, LOOPS, good, running

from rbda_ros.control import thread_priority
from rbda_ros.control.native import set_slice
from rbda_ros.control.thread_priority import SLICE, StreamPriority
from rbda_ros.control.worker import NICENESS, Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="niceness is per process there")


def niceness():
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_workers_lower_their_priority_and_that_of_threads_they_start():
    found = []

    def work():
        found.append(niceness())
        thread = threading.Thread(target=lambda: found.append(niceness()))
        thread.start()
        thread.join()

    before, worker = niceness(), Worker("work")
    worker.submit(work).result()
    worker.cancel()
    assert found == [min(before + NICENESS, 19)] * 2
    assert niceness() == before


def stream_threads():
    """Numbers of the threads that a state passes through, by name.

    A thread of the middleware may end between being listed and being asked for its name.
    """
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            name = (task / "comm").read_text().strip()
            if name.startswith(thread_priority.STREAM):
                found[name] = int(task.name)
    return found


def policies():
    """Scheduling policies of the threads that a state passes through, by name."""
    return {name: os.sched_getscheduler(thread) for name, thread in stream_threads().items()}


def slices():
    """How long these threads ask to run on [ns], by name."""
    return {name: slice_of(thread) for name, thread in stream_threads().items()}


def slice_of(thread):
    """As `sched_getattr` of Linux tells; Python has no word for it."""
    call = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    attributes = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(call, thread, attributes, len(attributes), 0) == 0
    return struct.unpack_from("=Q", attributes, 24)[0]


def knows_slices():
    """Whether this system has them: one that was chosen is told back."""
    before = slice_of(0)
    set_slice(threading.get_native_id(), 2 * SLICE)
    known = slice_of(0) == 2 * SLICE
    set_slice(threading.get_native_id(), before)
    return known


def test_the_threads_of_the_stream_ask_for_short_turns():
    """Also those that are there after it was closed, and opened again."""
    if not knows_slices():
        pytest.skip("Linux before 6.12")
    with running(LEG, LOOPS) as talk:
        for _ in range(2):
            talk.natively(*good(talk.robot))
            assert len(slices()) >= 3
            assert set(slices().values()) == {SLICE}
            assert slice_of(0) > SLICE
            assert talk.client.change_state(Transition.TRANSITION_DEACTIVATE)
            assert talk.client.change_state(Transition.TRANSITION_ACTIVATE)


def test_a_thread_that_is_gone_has_no_slice():
    with pytest.raises(OSError, match="No such process"):
        set_slice(2**22 + 1, SLICE)


def may_go_first():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def test_the_threads_of_the_stream_go_first_while_it_is_asked_for():
    wanted = os.SCHED_FIFO if may_go_first() else os.SCHED_OTHER
    with running(LEG, LOOPS, realtime_priority=5) as talk:
        talk.natively(*good(talk.robot))
        assert len(policies()) >= 3
        assert set(policies().values()) == {wanted}
        talk.set(realtime_priority=0)
        assert set(policies().values()) == {os.SCHED_OTHER}
        assert talk.natively(*good(talk.robot))


def wanted_policy(priority):
    return os.SCHED_FIFO if priority and may_go_first() else os.SCHED_OTHER


@pytest.mark.parametrize("own", [False, True])
def test_they_go_first_by_default_in_a_process_of_their_own(own, monkeypatch):
    monkeypatch.setattr(thread_priority, "own_process", own)
    with running(LEG, LOOPS) as talk:
        talk.natively(*good(talk.robot))
        assert set(policies().values()) == {wanted_policy(own)}


def test_they_do_not_go_first_while_they_leave_too_little_to_others(monkeypatch):
    """The test sets the limit, which is checked once a second."""
    with running(LEG, LOOPS, realtime_priority=5) as talk:

        def until(policy):
            def reached():
                talk.answer_to(*good(talk.robot))
                return set(policies().values()) == {policy}

            talk.client.until(reached)

        until(wanted_policy(5))
        monkeypatch.setattr(thread_priority, "MAX_WORK", -1.0)
        until(os.SCHED_OTHER)
        monkeypatch.setattr(thread_priority, "MAX_WORK", 100.0)
        until(wanted_policy(5))
        monkeypatch.setattr(thread_priority, "MAX_WORK", -1.0)
        until(os.SCHED_OTHER)
        talk.set(realtime_priority=6)  # by which it begins anew
        monkeypatch.setattr(thread_priority, "MAX_WORK", 100.0)
        until(wanted_policy(6))


def test_what_is_not_permitted_is_told(monkeypatch, caplog):
    def refuse(*_):
        raise PermissionError("as for a user without rtprio")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with running(LEG, LOOPS):
        StreamPriority(logging.getLogger("node")).set(5)
    assert "realtime_priority 5 is not in use" in caplog.text
    assert "raise rtprio" in caplog.text


def test_what_is_not_permitted_and_was_not_asked_for_is_no_warning(monkeypatch, caplog):
    def refuse(*_):
        raise PermissionError("as for a user without rtprio")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(thread_priority, "own_process", True)
    with running(LEG, LOOPS), caplog.at_level(logging.INFO):
        StreamPriority(logging.getLogger("node")).set(thread_priority.AUTOMATIC)
    (said,) = caplog.records
    assert said.levelno == logging.INFO
    assert "without real-time priority: the system does not permit it" in said.message
