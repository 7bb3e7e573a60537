"""Derivatives of operations over batches, beside central differences of the methods."""

from __future__ import annotations

import gc
import weakref

import casadi as ca
import numpy as np
import pytest
from mechanism_table import MECHANISMS, Mechanism, closed_states

from rbda_ros import InputError, Robot, SingularityError
from rbda_ros.robot.doors.argument_layout import ArgumentLayout
from rbda_ros.robot.operations import OPERATIONS

BY_DAY = ("four_bar", "ball_joint_loop")
LONG = ("forward_dynamics_derivatives", "inverse_dynamics_derivatives")
PAIRS = [
    pytest.param(
        mechanism,
        operation,
        marks=()
        if operation == "forward_dynamics" or (mechanism in BY_DAY and operation not in LONG)
        else pytest.mark.nightly,
    )
    for mechanism in MECHANISMS
    for operation in OPERATIONS
]
STEP = 1e-4
WEIGHTS = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}  # of a central difference, to h^4


def layout_of(robot: Robot, operation: str) -> ArgumentLayout:
    frame = robot.links[-1] if OPERATIONS[operation].of_frame else None
    return ArgumentLayout(robot, operation, frame)


def states_of(mechanism: Mechanism, count: int) -> np.ndarray:
    robot = mechanism.load()
    return np.array([robot.state(q).q for q in closed_states(mechanism, count)])


@pytest.mark.parametrize(("mechanism", "operation"), PAIRS)
def test_tangents_and_gradients_are_central_differences(mechanism: str, operation: str) -> None:
    robot = MECHANISMS[mechanism].load()
    function = layout_of(robot, operation).spanning
    rng = np.random.default_rng(0)
    q = states_of(MECHANISMS[mechanism], 2)
    others = [rng.normal(size=(2, size)) for size in function.sizes[1:]]
    directions = [rng.normal(size=x.shape) for x in others]
    along = rng.normal(size=(2, robot.ny))
    spanning = robot.spanning_velocity(q, along)

    def moved(h: float) -> np.ndarray:
        steps = zip(q, spanning, strict=True)
        return np.array([robot.close(robot.integrate(a, b, h), a) for a, b in steps])

    slopes = [np.zeros((2, *shape)) for shape in function.shapes]
    for k, weight in WEIGHTS.items():
        at = [x + k * STEP * dx for x, dx in zip(others, directions, strict=True)]
        for slope, answer in zip(slopes, function.evaluate(moved(k * STEP), *at), strict=True):
            slope += weight * answer / STEP
    rates = robot.tree.position_rate
    pairs = zip(q, spanning, strict=True)
    dq = np.array([np.array(rates(ca.DM(a), ca.DM(b))).ravel() for a, b in pairs])
    tangents = function.jvp.evaluate(q, *others, dq, *directions)
    cotangents = [rng.normal(size=slope.shape) for slope in slopes]
    flat = [w.reshape(2, -1) for w in cotangents]
    gradients = function.vjp.evaluate(q, *others, *flat)
    for tangent, slope in zip(tangents, slopes, strict=True):
        scale = max(1.0, np.abs(slope).max(initial=0.0))
        np.testing.assert_allclose(tangent, slope, rtol=0, atol=1e-7 * scale)
    weighted = [w * tangent for w, tangent in zip(cotangents, tangents, strict=True)]
    expected = sum(each.reshape(2, -1).sum(axis=1) for each in weighted)
    pairs = zip(gradients, (dq, *directions), strict=True)
    found = sum((g * dx).sum(axis=1) for g, dx in pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_gradients_of_independent_positions_are_those_of_spanning_ones() -> None:
    robot = MECHANISMS["four_bar"].load()
    layout = layout_of(robot, "forward_dynamics")
    q = states_of(MECHANISMS["four_bar"], 3)
    y = np.array([robot.independent_position(each) for each in q])
    rng = np.random.default_rng(1)
    others = [rng.normal(size=(3, robot.ny)) for _ in range(3)]
    spanning = layout.spanning.vjp.evaluate(q, *others)
    independent = layout.independent.vjp.evaluate(y, *others)
    positions = list(layout.independent._positions)
    dependent = [i for i in range(robot.nq) if i not in positions]
    np.testing.assert_allclose(independent[0], spanning[0][:, positions], rtol=1e-9, atol=1e-9)
    assert not spanning[0][:, dependent].any()


def test_numbers_that_are_not_finite_are_rejected() -> None:
    robot = MECHANISMS["slider_crank"].load()
    function = layout_of(robot, "forward_dynamics").spanning
    q, zero = robot.neutral()[None], np.zeros((1, 1))
    with pytest.raises(InputError, match=r"tau\[0\] is not finite"):
        function.evaluate(q, zero, np.full((1, 1), np.inf))
    with pytest.raises(SingularityError, match="is not finite"):
        function.vjp.evaluate(q, zero, zero, np.full((1, 1), np.nan))


def test_functions_do_not_keep_robots_alive() -> None:
    robot = MECHANISMS["gear"].load().with_independent_joints(["swing", "elbow"])
    function = layout_of(robot, "forward_dynamics").spanning
    assert function.vjp.vjp.sizes == (3, 2, 2, 2, 3, 2, 2)
    gone = weakref.ref(robot)
    del robot, function
    gc.collect()
    assert gone() is None
