"""Arrays of answers that nobody has any more are taken again, and no others."""

import sys
import weakref

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import _native, load_robot

pytestmark = pytest.mark.skipif(_native.calls is None, reason="there are no native calls")


@pytest.fixture
def make(virtual_machine, monkeypatch):
    """Makes inverse dynamics of a robot, answered by native code."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")

    def make_one():
        robot = load_robot(MECHANISMS["gear"].urdf, MECHANISMS["gear"].loops)
        q = closed_states(MECHANISMS["gear"], 1)[0]
        for kernel in ("loop_state", "inverse_dynamics"):
            assert robot.kernel(kernel).compile()

        def inverse_dynamics(x):
            return robot.inverse_dynamics(q, np.full(robot.ny, 0.5), np.full(robot.ny, x))

        for _ in range(3):
            inverse_dynamics(0.0)
        return inverse_dynamics

    return make_one


@pytest.fixture
def ask(make):
    return make()


def address(array):
    return array.ctypes.data


def test_what_is_held_stays_as_it_is(ask):
    answers = [ask(float(x)) for x in range(20)]
    assert len({address(answer) for answer in answers}) == 20
    for x, answer in enumerate(answers):
        assert np.array_equal(answer, ask(float(x)))


@pytest.mark.parametrize(
    "hold", [lambda a: a[:1], memoryview, lambda a: a.T, lambda a: a.view(np.int64)]
)
def test_so_does_what_is_seen_through_another(ask, hold):
    answer = ask(1.0)
    held, numbers = hold(answer), bytes(memoryview(hold(answer)).tobytes())
    del answer
    for x in range(10):
        ask(float(x))
    assert memoryview(held).tobytes() == numbers


def test_what_nobody_has_is_taken_again(ask):
    places = {address(ask(float(x))) for x in range(50)}
    assert len(places) <= 2


def change_shape(answer):
    answer.shape = (1, -1)


def change_type(answer):
    answer.dtype = np.int64


@pytest.mark.parametrize(
    "change", [change_shape, change_type, lambda answer: answer.setflags(write=False)]
)
def test_what_was_changed_is_not(ask, change):
    expected = ask(1.0).copy()
    for _ in range(4):
        answer = ask(2.0)
        change(answer)
        del answer
        fresh = ask(1.0)
        assert fresh.dtype == float and fresh.flags.writeable
        assert np.array_equal(fresh, expected)


def test_what_is_watched_is_not(ask):
    answer = ask(1.0)
    watched = weakref.ref(answer)
    del answer
    ask(2.0)
    assert watched() is None


def test_they_go_with_their_robot(make):
    ask = make()
    answer = ask(1.0)
    assert sys.getrefcount(answer) == 3
    del ask
    assert sys.getrefcount(answer) == 2
