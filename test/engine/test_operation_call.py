"""Methods answered by native code, against the same methods as they are written in Python."""

import gc
import inspect
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from mechanism_table import MECHANISMS, closed_states
from served_robots import Served, is_rejected, loaded, outcome, parts

from rbda_ros import InputError, Robot, load_robot
from rbda_ros.robot import calls as robot_calls
from rbda_ros.robot.operations import OPERATIONS

MORE = "slider_crank", "over_actuated", "rotors", "ball_joint_loop"


@pytest.fixture(autouse=True)
def compiled(virtual_machine, monkeypatch):
    """Here it is about machine code."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")


@pytest.fixture(
    params=["gear", "four_bar", "demo_leg"]
    + [pytest.param(name, marks=pytest.mark.nightly) for name in MORE]
)
def served(request):
    return loaded(request.param)


@pytest.mark.parametrize("method", OPERATIONS)
def test_answers_are_the_same_to_the_last_bit(served, method):
    for motion in served.motions:
        given = served.arguments(method, *motion)
        plain = [each for each in given if not isinstance(each, str)]
        native = served.native(method)(*plain)
        assert not is_rejected(native)
        expected = getattr(served.model, method)(*given)
        assert type(native) is type(expected)
        assert parts(native) == parts(expected)
        assert parts(getattr(served.robot, method)(*given)) == parts(expected)


@pytest.mark.parametrize("method", OPERATIONS)
def test_states_velocities_of_all_joints_and_keywords(served, method):
    robot = served.robot
    q, yd, x, spanning = served.motions[1]
    expected = getattr(robot, method)(*served.arguments(method, q, yd, x, spanning))
    state = robot.state(q, yd)
    qd = np.zeros(robot.nv)
    qd[list(robot.independent_coordinates)] = yd
    for position, velocity in ((state, yd), (q, qd), (state, qd)):
        given = served.arguments(method, position, velocity, x, spanning)
        assert parts(getattr(robot, method)(*given)) == parts(expected)
    names = list(inspect.signature(getattr(Robot, method)).parameters)[1 : len(given) + 1]
    keywords = dict(zip(names, given, strict=True))
    assert parts(getattr(robot, method)(**keywords)) == parts(expected)
    assert parts(getattr(robot, method)(given[0], **dict([*keywords.items()][1:]))) == parts(
        expected
    )


def test_independent_positions_are_closed_in_the_same_call(served):
    robot = served.robot
    if robot._inputs.choices.newton_positions is None:
        pytest.skip("y has no position, or quaternions in loops")
    answered = 0
    for q, yd, x, _ in served.motions:
        y = robot.independent_position(q)
        native = served.native("inverse_dynamics")(y, yd, x)
        expected = served.model.inverse_dynamics(y, yd, x)
        closed = served.model.close(y)
        from_all = served.model.close(q)
        by_guess = served.model.close(y, guess=q)
        if native is not None:  # else the kernel does not close it, and the search does
            answered += 1
            assert parts(native) == parts(expected)
        for _ in range(2):
            assert parts(robot.close(y)) == parts(closed)
            assert parts(robot.close(q)) == parts(from_all)
            assert parts(robot.close(y, q)) == parts(by_guess)
            assert parts(robot.close(y, guess=q)) == parts(by_guess)
    assert answered


def test_long_ways_are_taken_apart_and_doubted_alike(served):
    """Steps of up to a turn: in one, in parts, by a search where a branch is in doubt, or not."""
    robot, rng = served.robot, np.random.default_rng(7)
    if robot._inputs.choices.newton_positions is None:
        pytest.skip("y has no position, or quaternions in loops")
    for q in served.states[:3]:
        y = robot.independent_position(q)
        for size in (0.05, 0.3, 1.0, 3.0):
            target = y + rng.uniform(-size, size, y.size)
            if robot.floating_base:
                target[3:7] /= np.linalg.norm(target[3:7])
            expected = outcome(served.model.close, target, q)
            assert outcome(robot.close, target, q) == expected


def test_closing_by_names(served):
    robot = served.robot
    scalars = robot.coordinates.scalar_positions
    if robot.floating_base or robot._inputs.choices.newton_positions is None:
        pytest.skip("joints alone do not tell the position")
    for names in (robot.independent_joint_names, tuple(scalars)):
        for q in served.states:
            known = {name: q[scalars[name]] for name in names if name in scalars}
            expected = parts(served.model.close(known)), parts(served.model.close(known, q))
            chosen = robot._inputs.choices.positions(tuple(known))
            if chosen is not None:
                assert robot._kernels.get("closure", chosen[1]).compile()
            for _ in range(2):
                assert (parts(robot.close(known)), parts(robot.close(known, q))) == expected
            if chosen is not None:
                assert tuple(known) in robot._calls.table["close"]


BAD = {
    "not finite": lambda array: array * np.nan,
    "infinite": lambda array: np.full_like(array, -np.inf),
    "too large": lambda array: np.full_like(array, 1e60),
    "too long": lambda array: np.append(array, np.zeros(50)),
    "text": lambda array: "zero",
    "none": lambda array: None,
    "a table": lambda array: array[None, None],
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("method", OPERATIONS)
def test_what_is_refused_is_refused_in_the_same_words(served, method, bad):
    robot = served.robot
    given = served.arguments(method, *served.motions[0])
    for k, array in enumerate(given):
        if isinstance(array, str | float):
            continue
        wrong = [BAD[bad](array) if i == k else each for i, each in enumerate(given)]
        expected = outcome(getattr(served.model, method), *wrong)
        assert outcome(getattr(robot, method), *wrong) == expected
        assert expected[0] is InputError or (bad == "none" and k == 1)  # no velocity: at rest


def test_other_forms_of_arrays_are_answered_by_the_method(served):
    robot = served.robot
    q, yd, x, _ = served.motions[0]
    expected = parts(robot.inverse_dynamics(q, yd, x))
    spread = np.zeros(2 * robot.ny)
    spread[::2] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    for other in (list(x), spread[::2], x.astype(">f8"), fixed, x.view(np.memmap)):
        assert parts(robot.inverse_dynamics(q, yd, other)) == expected
    assert parts(robot.inverse_dynamics(q, yd, x, None, friction=False)) == expected
    assert parts(robot.inverse_dynamics(q, yd, x, {})) == expected
    friction = robot.inverse_dynamics(q, yd, x, friction=True) - robot.friction_force(q, yd)
    np.testing.assert_allclose(friction, robot.inverse_dynamics(q, yd, x), 1e-9, 1e-9)


def test_quaternions_are_normalized_as_in_python():
    served = loaded("four_bar")
    q, yd, x, _ = (array.copy() for array in served.motions[0])
    for length in (1.0, 1.0 + 1e-15, 1.0 - 1e-9, 1.0 + 9e-4):
        q[3:7] *= length / np.linalg.norm(q[3:7])
        expected = served.model.inverse_dynamics(q, yd, x)
        assert parts(served.native("inverse_dynamics")(q, yd, x)) == parts(expected)
    q[3:7] *= 1.01
    assert is_rejected(served.native("inverse_dynamics")(q, yd, x))
    with pytest.raises(InputError, match="give a unit quaternion"):
        served.robot.inverse_dynamics(q, yd, x)


def test_positions_off_the_loops_and_dead_points_are_refused():
    served = loaded("four_bar")
    robot = served.robot
    q, yd, x, _ = (array.copy() for array in served.motions[0])
    q[robot.joint_names.index("rocker") + robot.coordinates.base_nq] += 1e-3
    assert is_rejected(served.native("inverse_dynamics")(q, yd, x))
    with pytest.raises(InputError, match="does not satisfy the loops"):
        robot.inverse_dynamics(q, yd, x)


def test_a_state_of_another_robot_is_refused(served):
    robot = served.robot
    other = load_robot(MECHANISMS["gear"].urdf, MECHANISMS["gear"].loops)
    with pytest.raises(InputError, match="state of another robot"):
        robot.gravity_force(other.state(other.tree.home))


def test_frames_that_are_cached_are_bounded(served, monkeypatch):
    monkeypatch.setattr(robot_calls, "MAX_OPTIONS", 4)
    robot = served.robot
    calls = robot._calls.table["frame_pose"]
    for k in range(9):
        frame = served.frame, (0.1 * k, 0.0, 0.0)
        assert robot.kernel("frame_pose", frame).compile()
        expected = robot.frame_pose(served.states[0], frame)
        assert calls[frame](served.states[0]).tobytes() == expected.tobytes()
        assert len(calls) <= 4
    frame = served.frame, [0.1, 0.0, 0.0]  # which cannot be looked up
    assert robot.frame_pose(served.states[0], frame).shape == (4, 4)
    robot.frame_pose(served.states[0], served.frame)  # for other tests


def test_nothing_leaks_and_robots_are_freed():
    robot = load_robot(MECHANISMS["gear"].urdf, MECHANISMS["gear"].loops)
    served = Served(robot, closed_states(MECHANISMS["gear"], 2))
    q, yd, x, _ = served.motions[0]
    robot.inverse_dynamics(q, yd, x)
    before = [sys.getrefcount(each) for each in (q, yd, x, None, robot)]
    for _ in range(2000):
        robot.inverse_dynamics(q, yd, x)
        robot.frame_pose(q, served.frame)
        robot.close(q)
    after = [sys.getrefcount(each) for each in (q, yd, x, None, robot)]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 100
    answer = robot.inverse_dynamics(q, yd, x)
    assert answer.flags.owndata and answer.flags.writeable
    gone = weakref.ref(robot)
    gc.disable()
    try:
        del robot, served
        assert gone() is None  # by reference count: nothing in it refers back to it
    finally:
        gc.enable()


def test_threads_share_native_calls(served):
    robot, wrong = served.robot, []
    expected = [robot.inverse_dynamics(q, yd, x).tobytes() for q, yd, x, _ in served.motions]

    def work():
        for _ in range(300):
            for (q, yd, x, _), right in zip(served.motions, expected, strict=True):
                if robot.inverse_dynamics(q, yd, x).tobytes() != right:
                    wrong.append(q)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_methods_are_documented_as_they_are_written():
    method = Robot.inverse_dynamics
    assert method.__name__ == "inverse_dynamics"
    assert "constraint-embedding RNEA" in method.__doc__
    assert Robot.close.__qualname__ == "Robot.close"


def test_without_the_engine_it_says_what_to_do():
    code = """
import sys
sys.modules["rbda_ros.engine.core"] = None
import rbda_ros.robot
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "rbda_ros.engine.core is not built" in ended.stderr


@pytest.mark.parametrize("friction", [False, True])
@pytest.mark.parametrize("wrenches", [0, 1, 3])
@pytest.mark.parametrize("method", [m for m in OPERATIONS if OPERATIONS[m].wrenches])
def test_wrenches_and_friction_are_the_same_to_the_last_bit(served, method, wrenches, friction):
    robot = served.robot
    rng = np.random.default_rng(4)
    links = [link.name for link in robot.description.links][-wrenches:] if wrenches else []
    for q, yd, x, _ in served.motions:
        given = {link: rng.normal(size=6) for link in links}
        expected = getattr(served.model, method)(q, yd, x, given, friction=friction)
        for position in (q, robot.state(q)):
            for _ in range(2):
                found = getattr(robot, method)(position, yd, x, given, friction=friction)
                assert parts(found) == parts(expected)
    call = robot._calls.table[method][(wrenches > 0) + 2 * friction]
    assert parts(call(q, yd, x, *([given] if links else []))) == parts(expected)
    for wrong in ({"nobody": np.zeros(6)}, {links[0]: np.full(6, np.nan)} if links else {}):
        if links:
            assert is_rejected(call(q, yd, x, wrong))
            with pytest.raises(InputError):
                getattr(robot, method)(q, yd, x, wrong, friction=friction)


@pytest.mark.parametrize("name", ["rotors", "belt_pair", "four_bar"])
def test_a_base_quaternion_must_be_a_unit(name, monkeypatch):
    """Also where the kernel that closes loops would normalize it."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "0")
    robot = MECHANISMS[name].load()
    y = robot.independent_position(robot.neutral())
    y[3:7] *= 1.08
    for given in (y, np.stack([y, y])):
        with pytest.raises(InputError, match=r"length 1\.08"):
            robot.close(given)
