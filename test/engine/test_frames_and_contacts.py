"""Operational space, contacts and points on links in native code, against the methods in Python."""

import re
import sys
from dataclasses import astuple, replace

import numpy as np
import pytest
from served_robots import is_rejected, loaded, parts

from rbda_ros import Contact, InputError
from rbda_ros.robot import calls
from rbda_ros.robot.inputs import MAX_TRACED_FRAMES
from rbda_ros.robot.results import OperationalSpace

POINT = (0.1, -0.2, 0.05)


@pytest.fixture(autouse=True)
def compiled(virtual_machine, monkeypatch):
    """Here it is about machine code."""
    monkeypatch.setenv("RBDA_ROS_COMPILE", "1")


@pytest.fixture(params=["gear", "four_bar", "demo_leg"])
def served(request):
    return loaded(request.param)


def moving_links(robot):
    """Links on different bodies."""
    found = {place.body: name for name, place in robot.tree.spanning.links.items() if place.body}
    return [*found.values()]


def compile_all(robot):
    for kernel in robot.traced_kernels():
        assert kernel.compile()


def in_bits(space):
    assert space.inertia is space.inertia
    return parts((space.inertia, space.inverse_inertia, space.jacobian)), space.damping


@pytest.mark.parametrize("linear_only", [False, True])
@pytest.mark.parametrize("damping", [None, 0.0, 0.3])
@pytest.mark.parametrize("offset", [False, True])
def test_operational_space_is_the_same_to_the_last_bit(served, linear_only, damping, offset):
    robot = served.robot
    links = moving_links(robot)
    options = {"linear_only": linear_only} | ({} if damping is None else {"damping": damping})
    for frames in (links[-1], [links[-1]], links[-2:], tuple(links[-1:])):
        if offset:
            frames = [(links[-1], POINT)]
        served.model.operational_space_inertia(served.states[0], frames, **options)
        compile_all(robot)
        expected = [
            served.model.operational_space_inertia(q, frames, **options) for q in served.states
        ]
        for _ in range(2):
            for q, right in zip(served.states, expected, strict=True):
                found = robot.operational_space_inertia(q, frames, **options)
                assert in_bits(found) == in_bits(right)
                assert (found.rank, found.condition) == (right.rank, right.condition)
        key = tuple(frames) if isinstance(frames, list) else frames
        assert (key, linear_only) in robot._calls.table["operational_space_inertia"]


def test_any_object_says_whether_only_forces_count(served, tmp_path, monkeypatch):
    """Any truth value, as everywhere in Python; kernels on disk are distinguished by values."""
    monkeypatch.setenv("RBDA_ROS_CACHE", str(tmp_path / "cache"))
    robot, q, frame = served.robot, served.states[1], moving_links(served.robot)[-1]
    space = robot.operational_space_inertia(q, (frame, frame), linear_only=object())
    assert space.jacobian.shape == (6, robot.ny)


def test_operational_space_is_what_its_definition_says(served):
    robot = served.robot
    q, frame = served.states[1], moving_links(robot)[-1]
    space = robot.operational_space_inertia(q, frame, damping=0.1)
    J, H = robot.jacobian(q, frame), robot.mass_matrix(q)
    inverse = J @ np.linalg.solve(H, J.T)
    np.testing.assert_allclose(space.jacobian, J, 1e-10, 1e-10)
    np.testing.assert_allclose(space.inverse_inertia, inverse, 1e-8, 1e-8)
    np.testing.assert_allclose(space.inertia, np.linalg.inv(inverse + 0.1 * np.eye(6)), 1e-7, 1e-7)


def test_singular_operational_space_is_inverted_when_that_is_asked_for(served):
    robot = served.robot
    q, frame = served.states[0], moving_links(robot)[-1]
    robot.operational_space_inertia(q, [frame, frame])
    compile_all(robot)
    space = robot.operational_space_inertia(q, [frame, frame])
    assert space.rank < 12 and space.condition == np.inf
    call = robot._calls.table["operational_space_inertia"][(frame, frame), False]
    found = call(q)
    assert "inertia" not in vars(found)
    assert in_bits(found) == in_bits(space)
    np.testing.assert_allclose(
        space.inertia, np.linalg.pinv(space.inverse_inertia, rcond=1e-9), 1e-5, 1e-5
    )


@pytest.mark.parametrize("size", [1, 3, 12])
def test_the_inertia_of_a_singular_space_is_numpys_inverse(size):
    A = np.random.default_rng(size).normal(size=(size, size))
    A = A @ A.T
    np.testing.assert_allclose(OperationalSpace(A, A).inertia, np.linalg.inv(A), 1e-8, 1e-8)
    A[:, 0] = A[0] = 0.0
    np.testing.assert_allclose(OperationalSpace(A, A).inertia, np.linalg.pinv(A), 1e-7, 1e-7)
    damped = np.linalg.inv(A + 1e-3 * np.eye(size))
    np.testing.assert_allclose(OperationalSpace(A, A, 1e-3).inertia, damped, 1e-7, 1e-7)


def test_bad_frames_and_damping_are_refused(served):
    robot = served.robot
    q, frame = served.states[0], moving_links(robot)[-1]
    robot.operational_space_inertia(q, frame)
    for given, words in (
        ((q, frame, -1.0), "damping is -1.0"),
        ((q, frame, np.nan), "damping is nan"),
        ((q, frame, None), "damping: None is not an array of numbers"),
        ((q, frame, [0.0]), "damping is"),
        ((q, []), "name at least one link"),
        ((q, "nobody"), "has no link 'nobody'"),
        ((q * np.nan, frame), "is not finite"),
        ((np.array([q, q]), frame), "not a batch"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            robot.operational_space_inertia(*given)
    many = [frame] * (MAX_TRACED_FRAMES + 1)
    for _ in range(2):
        assert len(robot.operational_space_inertia(q, many).jacobian) == 6 * len(many)


def test_jacobians_at_points_are_the_same_to_the_last_bit(served):
    robot = served.robot
    frame = moving_links(robot)[-1], POINT
    served.model.jacobian(served.states[0], frame)
    compile_all(robot)
    expected = [served.model.jacobian(q, frame) for q in served.states]
    for _ in range(2):
        for q, J in zip(served.states, expected, strict=True):
            assert parts(robot.jacobian(q, frame)) == parts(J)
    assert frame in robot._calls.table["jacobian"]
    assert not any(key[0] == "jacobian" and POINT in key[1] for key in robot._kernels.kernels())


CONTACTS = {
    "point": {},
    "off the origin": {"xyz": POINT},
    "weld that accelerates": {"kind": "weld", "acceleration": (0.5, 0.0, 0.1, 0.0, 0.2, 0.0)},
}


@pytest.mark.parametrize("kind", CONTACTS)
def test_motion_in_contact_is_the_same_to_the_last_bit(served, kind):
    robot = served.robot
    contacts = [Contact(moving_links(robot)[-1], **CONTACTS[kind])]
    motions = [(q, yd, x) for q, yd, x, _ in served.motions]
    served.model.constrained_forward_dynamics(*motions[0], contacts)
    compile_all(robot)
    expected = [served.model.constrained_forward_dynamics(*each, contacts) for each in motions]
    early = served.model.constrained_forward_dynamics(*motions[0], contacts, max_iterations=1)
    for _ in range(2):
        for given, right in zip(motions, expected, strict=True):
            found = robot.constrained_forward_dynamics(*given, contacts)
            assert parts((found.ydd, found.forces)) == parts((right.ydd, right.forces))
            assert astuple(found)[2:] == astuple(right)[2:]
            assert [type(each) for each in astuple(found)] == [type(e) for e in astuple(right)]
    key = id(contacts[0]), ...
    call = robot._calls.table["constrained_forward_dynamics"][key]
    # Where contacts contradict each other, iterations do not settle and the method answers.
    answered = call(*motions[0])
    assert is_rejected(answered) or parts(answered.ydd) == parts(expected[0].ydd)
    assert is_rejected(answered) == (expected[0].residual > 1e-10)
    stopped = robot.constrained_forward_dynamics(*motions[0], contacts, max_iterations=1)
    assert parts(stopped.ydd) == parts(early.ydd) and stopped.iterations == early.iterations
    equal = [replace(contacts[0])]
    assert parts(robot.constrained_forward_dynamics(*motions[0], equal).ydd) == parts(
        expected[0].ydd
    )


def test_contacts_that_may_change_or_pull_are_answered_by_the_method(served):
    robot = served.robot
    q, yd, x, _ = served.motions[0]
    link = moving_links(robot)[-1]
    wanted = np.zeros(6)
    changing = [Contact(link, POINT, acceleration=wanted)]
    pulling = [Contact(link, damping=5.0)]
    for contacts in (changing, pulling):
        robot.constrained_forward_dynamics(q, yd, x, contacts)
        compile_all(robot)
        robot.constrained_forward_dynamics(q, yd, x, contacts)
        table = robot._calls.table.get("constrained_forward_dynamics", {})
        assert (id(contacts[0]), ...) not in table
    still = robot.constrained_forward_dynamics(q, yd, x, changing)
    wanted[:3] = 1.0, 2.0, 3.0
    moved = robot.constrained_forward_dynamics(q, yd, x, changing)
    assert parts((moved.ydd, moved.forces)) != parts((still.ydd, still.forces))


def test_bad_contacts_are_refused_in_the_same_words(served):
    robot = served.robot
    q, yd, x, _ = served.motions[0]
    good = [Contact(moving_links(robot)[-1])]
    robot.constrained_forward_dynamics(q, yd, x, good)
    compile_all(robot)
    robot.constrained_forward_dynamics(q, yd, x, good)
    for given, options in (
        ((q, yd, x, []), {}),
        ((q, yd, x, [Contact("nobody")]), {}),
        ((q, yd, x, [7]), {}),
        ((q, yd, x, x), {}),
        ((q * np.nan, yd, x, good), {}),
        ((q, yd, x * np.inf, good), {}),
        ((q, yd[:-1], x, good), {}),
        ((q, yd, x, good), {"tolerance": -1.0}),
        ((q, yd, x, good), {"max_iterations": 0}),
        ((q, yd, x, good), {"route": "none"}),
    ):
        with pytest.raises(InputError) as expected:
            served.model.constrained_forward_dynamics(*given, **options)
        with pytest.raises(InputError, match=re.escape(str(expected.value))):
            robot.constrained_forward_dynamics(*given, **options)


def test_contacts_that_are_cached_are_bounded(monkeypatch):
    monkeypatch.setattr(calls, "MAX_LONG", 4)
    served = loaded("gear")
    robot, (q, yd, x, _) = served.robot, served.motions[0]
    link = moving_links(robot)[-1]
    robot.constrained_forward_dynamics(q, yd, x, [Contact(link)])
    compile_all(robot)
    for _ in range(9):  # each another contact, equal to the last
        robot.constrained_forward_dynamics(q, yd, x, [Contact(link)])
        assert 1 <= len(robot._calls.table["constrained_forward_dynamics"]) <= 4


def test_nothing_leaks(served):
    robot = served.robot
    q, yd, x, _ = served.motions[0]
    frame = moving_links(robot)[-1]
    contacts = [Contact(frame)]
    for _ in range(2):
        robot.operational_space_inertia(q, [frame])
        robot.constrained_forward_dynamics(q, yd, x, contacts)
        compile_all(robot)
    watched = q, yd, x, frame, contacts[0], robot, None, True
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(500):
        robot.operational_space_inertia(q, [frame], 0.1)
        robot.constrained_forward_dynamics(q, yd, x, contacts)
    after = [sys.getrefcount(each) for each in watched]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 50


def test_forces_on_all_joints_are_turned_into_those_on_y(served):
    robot = served.robot
    contacts = [Contact(moving_links(robot)[-1])]
    q, yd, x, _ = served.motions[0]
    robot.constrained_forward_dynamics(q, yd, x, contacts)
    compile_all(robot)  # the virtual machine rounds otherwise
    for q, yd, _, spanning in served.motions:
        on_y = served.model.generalized_force(q, spanning)
        expected = served.model.forward_dynamics(q, yd, spanning)
        assert parts(expected) == parts(served.model.forward_dynamics(q, yd, on_y))
        held = served.model.constrained_forward_dynamics(q, yd, spanning, contacts)
        assert parts(served.native("forward_dynamics")(q, yd, spanning)) == parts(expected)
        for _ in range(2):
            found = robot.constrained_forward_dynamics(q, yd, spanning, contacts)
            assert parts((found.ydd, found.forces)) == parts((held.ydd, held.forces))
