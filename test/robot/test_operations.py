"""Records of operations: what they say, what they refuse, and what is made of them."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from mechanism_table import MECHANISMS

from rbda_ros import InputError, Robot, load_robot
from rbda_ros.kernels.quantities import QUANTITIES, shape_of
from rbda_ros.kernels.registry import robot_sizes
from rbda_ros.robot import operations
from rbda_ros.robot.operations import (
    OPERATIONS,
    Independent,
    Operation,
    OperationError,
    Position,
    Step,
    operation,
)
from rbda_ros.spatial import Matrix


@pytest.fixture
def records(monkeypatch):
    """A table of its own, so that records of a test do not stay."""
    monkeypatch.setattr(operations, "OPERATIONS", {})
    monkeypatch.setattr(operations, "METHODS", [])


def load(name):
    mechanism = MECHANISMS[name]
    return load_robot(mechanism.urdf, mechanism.loops, floating_base=mechanism.floating_base)


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_have_the_shapes_that_the_record_says(name):
    robot, record = load("gear"), OPERATIONS[name]
    zeros = {"Position": robot.neutral(), "Spanning": np.zeros(robot.nv), "Number": 0.1}
    zeros["Coordinates"] = robot.neutral()
    given = [zeros.get(argument.kind, np.zeros(robot.ny)) for argument in record.arguments]
    given += [robot.links[-1]] * record.of_frame
    answer = getattr(robot, name)(*given)
    if record.make is not None:
        answer = tuple(vars(answer).values())
    answers = answer if isinstance(answer, tuple) else (answer,)
    sizes = robot_sizes(robot.tree)
    quantities = [QUANTITIES[name] for name in record.results]
    for array, quantity in zip(answers, quantities, strict=True):
        assert np.shape(array) == shape_of(quantity.shape, np.size(array), sizes)
        assert quantity.meaning


def test_methods_have_the_signature_and_the_words_of_their_record():
    for name, record in OPERATIONS.items():
        method = getattr(Robot, name)
        assert inspect.signature(method) == inspect.signature(record.function)
        assert inspect.getdoc(method) == record.documentation


def undocumented(self, q: Position):
    pass


def other(self, x: Independent):
    """No position first."""


def unread(self, q: Position, tau: Independent):
    """Nothing reads tau."""


def strange(self, q: Position, x: Matrix):
    """An argument of no kind."""


def fine(self, q: Position):
    """A position."""


@pytest.mark.parametrize(
    ("kernels", "returns", "method", "words"),
    [
        (("nothing",), "tau", fine, "there is no kernel 'nothing'"),
        (("closure",), "tau", fine, "has no names of outputs"),
        (("gravity_force",), "tau", undocumented, "has no docstring"),
        (("gravity_force",), "tau", other, "its first argument is no Position"),
        (("gravity_force",), "tau", unread, "no kernel reads tau"),
        (("gravity_force",), "tau", strange, "is annotated with Matrix"),
        (("gravity_force",), "efforts", fine, "no kernel of it gives efforts"),
        (("bias_force",), "tau", fine, "nothing gives yd to bias_force"),
        ((Step("gravity_force", ("q",), ("work",)),), "work", fine, "work is unknown"),
    ],
)
def test_a_record_that_cannot_be_says_what_to_change(records, kernels, returns, method, words):
    with pytest.raises(OperationError, match=words):
        operation(*kernels, returns=returns)(method)


def test_a_name_is_taken_once(records):
    operation("gravity_force", returns="tau")(fine)
    assert isinstance(operations.OPERATIONS["fine"], Operation)
    with pytest.raises(OperationError, match="another operation of this name"):
        operation("gravity_force", returns="tau")(fine)


def test_prepared_operations_are_compiled(virtual_machine, monkeypatch):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    robot = load("four_bar")
    link = robot.links[-1]
    robot.prepare("inverse_dynamics", ("frame_pose", link), batch=True)
    names = ("inverse_dynamics", "inverse_dynamics_with_wrenches", "friction_force", "loop_state")
    for kernel in (*map(robot.kernel, names), robot.kernel("frame_pose", link)):
        assert kernel.native.compiled and kernel.native.batch_compiled
    assert not robot.kernel("forward_dynamics").compiled
    unready = "operational_space_inertia"
    wrong_frames = [
        "frame_pose",
        ("frame_pose", "nobody"),
        unready,
        (unready, 3),
        (unready, ["no"]),
    ]
    for wrong in ("nonsense", ("inverse_dynamics", link), *wrong_frames):
        with pytest.raises(InputError):
            robot.prepare(wrong)


@pytest.mark.parametrize("count", [2, 9])
def test_closing_and_operational_space_are_prepared_too(virtual_machine, monkeypatch, count):
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")
    robot = load("four_bar")
    frames = [robot.links[-1], *[(robot.links[-1], (0.1 * k, 0, 0)) for k in range(1, count)]]
    robot.prepare("close", ("operational_space_inertia", frames))
    prepared = robot.traced_kernels()
    q = robot.close(robot.independent_position(robot.neutral()))
    for linear_only in (False, True):
        robot.operational_space_inertia(q, frames, linear_only=linear_only)
    assert all(kernel.compiled for kernel in prepared)
    assert {id(kernel) for kernel in robot.traced_kernels()} <= set(map(id, prepared))


@pytest.mark.parametrize("name", ["gear", "four_bar", "slider_crank"])
def test_random_states_are_inside_the_limits_and_on_the_loops(name):
    robot = load(name)
    for seed in range(10):
        state = robot.random_state(seed)
        assert robot.within_limits(state.q)
        assert np.abs(robot.kernel("loop_state").call(state.q)[0]).max(initial=0.0) < 1e-6
        speed = robot.limits.velocity[list(robot.independent_coordinates)]
        assert (np.abs(state.yd) <= speed).all()
        again = robot.random_state(seed)
        assert again.q.tobytes() == state.q.tobytes() and again.yd.tobytes() == state.yd.tobytes()
    outside = np.where(np.isfinite(robot.limits.upper), robot.limits.upper + 1.0, state.q)
    bounded = np.isfinite(robot.limits.upper).any()
    assert robot.within_limits(outside) != bounded
    assert robot.within_limits(np.array([state.q, outside])).tolist() == [True, not bounded]


@pytest.mark.parametrize("name", ["gear", "four_bar"])
def test_robots_are_pickled_and_say_what_they_are(name):
    robot = load(name)
    other = pickle.loads(pickle.dumps(robot))
    assert repr(other) == repr(robot)
    assert robot.name in repr(robot) and f"{robot.ny} degree" in repr(robot)
    q, x = robot.neutral(), np.full(robot.ny, 0.3)
    np.testing.assert_array_equal(other.neutral(), q)
    np.testing.assert_allclose(other.inverse_dynamics(q, x, x), robot.inverse_dynamics(q, x, x))
