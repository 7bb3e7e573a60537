"""Work in another thread: in turn, cancelled at its next step, waited for."""

import threading
import time

import pytest

from rbda_ros.cluster_tree.cancelling import (
    CancelledWorkError,
    CancelToken,
    cancellable,
    cancelled_by,
    check_cancelled,
)
from rbda_ros.control.worker import Worker


def endless(begun):
    begun.set()
    for _ in cancellable(iter(int, 1)):
        time.sleep(0.001)


def test_does_things_in_turn():
    worker, done = Worker("turns"), []
    futures = [worker.submit(lambda k=k: done.append(k)) for k in range(5)]
    for future in futures:
        future.result(10)
    assert done == [0, 1, 2, 3, 4]
    assert worker.pending == 0
    worker.cancel()


def test_a_token_cancels_its_work_alone():
    worker, begun, token = Worker("token"), threading.Event(), CancelToken()
    running = worker.submit(lambda: endless(begun), token)
    following = worker.submit(lambda: 7)
    begun.wait(10)
    token.cancel()
    with pytest.raises(CancelledWorkError):
        running.result(10)
    assert following.result(10) == 7
    worker.cancel()


def test_the_end_cancels_everything_and_can_be_waited_for():
    worker, begun = Worker("end"), threading.Event()
    running, waiting = worker.submit(lambda: endless(begun)), worker.submit(lambda: 7)
    begun.wait(10)
    assert not worker.wait(time.monotonic() + 0.05)
    worker.cancel()
    assert worker.wait(time.monotonic() + 10)
    assert isinstance(running.exception(), CancelledWorkError)
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        worker.submit(lambda: 8)


def test_tokens_are_of_their_thread_and_nest():
    outer, inner = CancelToken(), CancelToken()
    check_cancelled()
    with cancelled_by(outer):
        with cancelled_by(inner):
            inner.cancel()
            with pytest.raises(CancelledWorkError):
                check_cancelled()
        check_cancelled()
        outer.cancel()
        other = threading.Thread(target=check_cancelled)
        other.start()
        other.join()
        with pytest.raises(CancelledWorkError):
            check_cancelled()
    check_cancelled()


def test_where_no_thread_can_be_made_it_says_so_and_is_not_ending(monkeypatch):
    def no_more_threads(*_):
        raise RuntimeError("can't start new thread")

    worker = Worker("limited")
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_more_threads)
        with pytest.raises(RuntimeError, match="new thread"):
            worker.submit(lambda: 1)
    assert not worker.ending and not worker.pending
    assert worker.submit(lambda: 2).result(20.0) == 2
    worker.cancel()
    assert worker.ending
