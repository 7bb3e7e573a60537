"""Methods at many states in native code, against the same methods as they are written in Python."""

import functools
import sys

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states
from served_robots import is_rejected, loaded, outcome, parts

from rbda_ros.cluster_tree.closing.tolerances import BATCH_NEAR, PRECISE
from rbda_ros.robot.operations import OPERATIONS

COUNTS = 1, 300  # less than a block of rows, and more than two


@pytest.fixture(autouse=True)
def compiled(virtual_machine, monkeypatch):
    """Here it is about machine code."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")


@pytest.fixture(params=["gear", pytest.param("four_bar", marks=pytest.mark.nightly), "demo_leg"])
def served(request):
    robots = loaded(request.param)
    robots.take_rows()
    return robots


def rows(served, count, seed=0):
    """A motion of so many states: q, y, yd, another vector, forces on all joints."""
    return [None if part is None else part.copy() for part in _rows(served, count, seed)]


@functools.cache
def _rows(served, count, seed):
    robot, rng = served.robot, np.random.default_rng(seed)
    q, step = served.states[0], 0.05 * rng.normal(size=robot.ny)
    positions = []
    for k in range(count):
        along = robot.spanning_velocity(q, np.sin(0.1 * k + np.arange(robot.ny)) * step)
        q = robot.close(robot.integrate(q, along), q)
        positions.append(q)
    q = np.array(positions)
    yd, x = rng.normal(size=(2, count, robot.ny))
    return q, served.independent(q), yd, x, rng.normal(size=(count, robot.nv))


def native_and_written(served, method, given):
    """The engine's result, which must not be None, and that of the model in Python."""
    native = served.native(method)(*(each for each in given if not isinstance(each, str)))
    return native, getattr(served.model, method)(*given)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("method", OPERATIONS)
def test_answers_are_the_same_to_the_last_bit(served, method, count):
    robot = served.robot
    q, y, yd, x, spanning = rows(served, count)
    qd = np.zeros((count, robot.nv))
    qd[:, list(robot.independent_coordinates)] = yd
    for position, velocity in ((q, yd), (robot.state(q), qd), (y, yd)):
        if position is None:
            continue
        given = served.arguments(method, position, velocity, x, spanning)
        if velocity is qd and "Force" in [a.kind for a in OPERATIONS[method].arguments]:
            given[2] = spanning
        native, expected = native_and_written(served, method, given)
        assert not is_rejected(native)
        assert parts(native) == parts(expected)
        assert parts(getattr(robot, method)(*given)) == parts(expected)


@pytest.mark.parametrize("method", [m for m in OPERATIONS if len(OPERATIONS[m].arguments) > 1])
def test_one_vector_stands_for_all_rows(served, method):
    q, _, yd, x, spanning = rows(served, 9)
    for given in (
        served.arguments(method, q[0], yd, x, spanning),
        served.arguments(method, served.robot.state(q[0]), yd, x, spanning),
        served.arguments(method, q, yd[0], x[0], spanning[0]),
    ):
        native, expected = native_and_written(served, method, given)
        assert is_rejected(native) or parts(native) == parts(expected)
        assert parts(getattr(served.robot, method)(*given)) == parts(expected)
        spanning_forces = given[-1] is spanning[0]  # which are turned into forces on y row by row
        assert not is_rejected(native) or spanning_forces


@pytest.mark.parametrize("method", [m for m in OPERATIONS if OPERATIONS[m].wrenches])
def test_wrenches_and_friction_of_rows_are_the_same(served, method):
    robot = served.robot
    q, _, yd, x, _ = rows(served, 9)
    link = robot.description.links[-1].name
    for wrenches in ({link: np.arange(6.0)}, {link: np.tile(np.arange(6.0), (9, 1))}):
        for _ in range(2):  # native code comes in once kernels are compiled
            getattr(robot, method)(q[0], yd[0], x[0], {link: np.ones(6)}, friction=True)
            getattr(robot, method)(q, yd, x, wrenches, friction=True)
            for kernel in robot.traced_kernels():
                assert kernel.compile(batch=True)
        expected = getattr(served.model, method)(q, yd, x, wrenches, friction=True)
        assert parts(getattr(robot, method)(q, yd, x, wrenches, friction=True)) == parts(expected)
    native = robot._calls.table[method][3]
    assert parts(native(q, yd, x, {link: np.arange(6.0)})) == parts(expected)
    assert is_rejected(native(q, yd, x, wrenches))  # rows of wrenches are left to Python


def test_states_and_closed_motions_are_the_same(served):
    robot = served.robot
    q, y, yd, _, _ = rows(served, 300)
    scattered = np.array([*q[::50], *q[::-60]])
    for position in (q, scattered, *(() if y is None else (y, y[::-1].copy()))):
        velocity = yd[: len(position)]
        expected = served.model.state(position, velocity)
        still = served.model.state(position)
        closed = served.model.close(position), served.model.close(position, q[0])
        found = robot.state(position, velocity)
        assert parts((found.q, found.yd)) == parts((expected.q, expected.yd))
        assert found.residual == expected.residual
        assert found.conditioning == expected.conditioning
        assert robot.state(position).yd.tobytes() == still.yd.tobytes()
        assert parts((robot.close(position), robot.close(position, q[0]))) == parts(closed)


def test_motions_are_closed_by_native_code(served):
    q, y, _, _, _ = rows(served, 40)
    closing = served.robot._calls.table["close"][None]
    for position in (q, y):
        if position is not None:
            assert closing(position).shape == q.shape
            assert is_rejected(closing(position * np.nan))
            phi, _ = served.robot.kernel("loop_state").batch(closing(position))
            assert np.abs(phi).max(initial=0.0) <= PRECISE


def test_rows_far_from_each_other_are_closed_as_well(served):
    if (y := rows(served, 1)[1]) is None:
        pytest.skip("y is not all that is needed")
    # As far from the first as rows may be to be closed from it.
    apart = np.tile(y, (40, 1))
    apart[:, -1] += np.linspace(0.0, BATCH_NEAR, 40)
    closed = served.robot._calls.table["close"][None](apart)
    phi, _ = served.robot.kernel("loop_state").batch(closed)
    assert np.abs(phi).max(initial=0.0) <= PRECISE
    assert closed.tobytes() == served.model.close(apart).tobytes()


WRONG = {
    "not finite": (0, lambda array: np.nan),
    "too large": (2, lambda array: 1e60),
    "off the loops": (0, lambda array: array + 0.01),
    "a long quaternion": (0, lambda array: array * 1.1),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("method", OPERATIONS)
def test_one_bad_row_is_refused_in_the_same_words(served, method, wrong):
    robot = served.robot
    q, _, yd, x, spanning = rows(served, 40)
    given = served.arguments(method, q, yd, x, spanning)
    k, change = WRONG[wrong]
    if k >= len(given) or isinstance(given[k], str | float):
        pytest.skip("it has no such argument")
    given[k] = given[k].copy()
    given[k][30] = change(given[k][30])
    plain = [each for each in given if not isinstance(each, str)]
    expected = outcome(getattr(served.model, method), *given)
    assert outcome(getattr(robot, method), *given) == expected
    if isinstance(expected[0], type):
        assert is_rejected(served.native(method)(*plain))


def test_rows_that_do_not_go_together_are_refused_in_the_same_words(served):
    robot = served.robot
    q, _, yd, x, _ = rows(served, 9)
    for given in (
        (q, yd[:-1], x),
        (q[:, :-1], yd, x),
        (q[:0], yd[:0], x[:0]),
        (q[None], yd, x),
        (q, yd, x[:, :0]),
    ):
        expected = outcome(served.model.inverse_dynamics, *given)
        assert outcome(robot.inverse_dynamics, *given) == expected


def test_other_forms_of_rows_are_answered_by_the_method(served):
    robot = served.robot
    q, _, yd, x, _ = rows(served, 12)
    expected = parts(robot.inverse_dynamics(q, yd, x))
    spread = np.zeros((12, 2 * robot.ny))
    spread[:, ::2] = x
    for other in (x.tolist(), spread[:, ::2], np.asfortranarray(x), x.astype(">f8")):
        assert parts(robot.inverse_dynamics(q, yd, other)) == expected


def test_a_large_batch_is_shared_among_threads_and_stays_the_same():
    served = loaded("gear")
    served.take_rows()
    robot, count = served.robot, 60_000  # times some hundred instructions
    q, _, yd, x, _ = rows(served, 30)
    many = [np.tile(array, (count // 30, 1)) for array in (q, yd, x)]
    assert robot.kernel("inverse_dynamics").instructions * count > 4e6
    expected = np.tile(robot.inverse_dynamics(q, yd, x), (count // 30, 1))
    assert robot.inverse_dynamics(*many).tobytes() == expected.tobytes()
    many[2][-1, 0] = np.inf
    assert is_rejected(served.native("inverse_dynamics")(*many))


def test_nothing_leaks(served):
    robot = served.robot
    q, y, yd, x, _ = rows(served, 5)
    y = q if y is None else y
    state, bad = robot.state(q), q * np.nan
    watched = q, y, yd, x, state, bad, None, robot
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(500):
        robot.inverse_dynamics(q, yd, x)
        robot.inverse_dynamics(y, yd, x[0])
        robot.gravity_force(state)
        robot.close(y)
        served.native("inverse_dynamics")(bad, yd, x)
    after = [sys.getrefcount(each) for each in watched]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 50
    answer = robot.inverse_dynamics(q, yd, x)
    assert answer.flags.owndata and answer.flags.writeable and answer.flags.c_contiguous


def test_answers_of_rows_are_those_of_single_states():
    mechanism = MECHANISMS["four_bar"]
    served = loaded("four_bar")
    served.take_rows()
    q = np.array(closed_states(mechanism, 5))
    yd, x = np.random.default_rng(8).normal(size=(2, 5, served.robot.ny))
    for method in ("inverse_dynamics", "forward_dynamics"):
        call = getattr(served.robot, method)
        one_by_one = [call(*state) for state in zip(q, yd, x, strict=True)]
        np.testing.assert_allclose(call(q, yd, x), one_by_one, 1e-9, 1e-9)
