"""Arrays of answers that nobody has any more are taken again, and no others."""

import sys
import weakref

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states

from rbda_ros import load_robot


@pytest.fixture
def make(virtual_machine, monkeypatch):
    """Makes inverse dynamics of a robot, evaluated by the engine."""
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


@pytest.fixture
def ask_rows(virtual_machine, monkeypatch):
    """Asks for mass matrices of so many states, evaluated by the engine; and the robot."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    robot = load_robot(MECHANISMS["gear"].urdf, MECHANISMS["gear"].loops)
    q = closed_states(MECHANISMS["gear"], 1)[0]
    assert robot.kernel("mass_matrix").compile(batch=True)
    assert robot.kernel("loop_state").compile(batch=True)

    def mass_matrices(count):
        return robot.mass_matrix(np.tile(q, (count, 1)))

    robot.mass_matrix(q)
    mass_matrices(2)
    return mass_matrices


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


LARGE, MAX_BYTES, MAX_LARGE = 2**17, 2**26, 8
"""As in `engine/array_pool.c`."""


def count_of(ask_rows, size):
    """States whose mass matrices take so many bytes."""
    return -(-size // ask_rows(1).nbytes)


def test_large_results_that_nobody_has_are_taken_again(ask_rows):
    count = count_of(ask_rows, 4 * LARGE)
    expected = ask_rows(count).copy()
    assert len({address(ask_rows(count)) for _ in range(20)}) <= 2
    held = [ask_rows(count) for _ in range(3)]
    assert len({address(answer) for answer in held}) == 3
    held[0][:] = np.nan
    assert all(answer.tobytes() == expected.tobytes() for answer in (*held[1:], ask_rows(count)))


@pytest.mark.parametrize("hold", [lambda a: a[:1], memoryview, lambda a: a.T])
def test_large_results_seen_through_another_stay(ask_rows, hold):
    count = count_of(ask_rows, 4 * LARGE)
    answer = ask_rows(count)
    answer[:] = 7.0
    held = hold(answer)
    del answer
    for _ in range(3):
        ask_rows(count)
    assert (np.asarray(held) == 7.0).all()


def pooled(answers):
    """For each of a list of answers, whether somebody else has it too."""
    return [sys.getrefcount(answers[k]) > 2 for k in range(len(answers))]


def test_small_results_and_huge_ones_are_nobodys(ask_rows):
    sizes = LARGE // 2, MAX_BYTES + 8, LARGE
    assert pooled([ask_rows(count_of(ask_rows, size)) for size in sizes]) == [False, False, True]


def test_what_is_pooled_is_bounded_in_number_and_in_bytes(ask_rows):
    least, half = count_of(ask_rows, LARGE), count_of(ask_rows, MAX_BYTES // 2 - LARGE)
    held = [ask_rows(least + k) for k in range(3 * MAX_LARGE)]
    assert pooled(held) == [False] * 2 * MAX_LARGE + [True] * MAX_LARGE
    held += [ask_rows(half) for _ in range(3)]
    sizes = [answer.nbytes for answer in held]
    assert sum(np.array(sizes)[pooled(held)]) <= MAX_BYTES
    assert pooled(held)[-2:] == [True, True]


def test_large_results_that_are_watched_end(ask_rows):
    count = count_of(ask_rows, LARGE)
    answer = ask_rows(count)
    watched = weakref.ref(answer)
    del answer
    ask_rows(count)
    assert watched() is None
