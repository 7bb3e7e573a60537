"""Derivatives of operations over batches, beside central differences of the methods."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import casadi as ca
import numpy as np
import pytest
from door_samples import arguments_of, frame_of, positions_of
from mechanism_table import MECHANISMS

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
    return ArgumentLayout(robot, operation, frame_of(robot, operation))


@pytest.mark.parametrize(("mechanism", "operation"), PAIRS)
def test_tangents_and_gradients_are_central_differences(mechanism: str, operation: str) -> None:
    robot = MECHANISMS[mechanism].load()
    function = layout_of(robot, operation).spanning
    rng = np.random.default_rng(1)
    kinds = [argument.kind for argument in OPERATIONS[operation].arguments]
    given = arguments_of(mechanism, operation, 2)
    steps = [rng.normal(size=x.shape) for x in given]
    directions = list(steps)
    for i, kind in enumerate(kinds):
        if kind in ("Position", "Coordinates"):
            steps[i] = robot.spanning_velocity(given[i], rng.normal(size=(2, robot.ny)))
            directions[i] = np.array(list(map(partial(rate_of, robot), given[i], steps[i])))

    def moved(h: float) -> list[np.ndarray]:
        return [
            np.array(list(map(partial(carried, robot, h), x, dx)))
            if kind in ("Position", "Coordinates")
            else x + h * dx
            for kind, x, dx in zip(kinds, given, steps, strict=True)
        ]

    slopes = [np.zeros((2, *shape)) for shape in function.shapes]
    for k, weight in WEIGHTS.items():
        answers = function.evaluate(*moved(k * STEP))
        for slope, answer in zip(slopes, answers, strict=True):
            slope += weight * answer / STEP
    tangents = function.jvp.evaluate(*given, *directions)
    cotangents = [rng.normal(size=slope.shape) for slope in slopes]
    flat = [w.reshape(2, -1) for w in cotangents]
    gradients = function.vjp.evaluate(*given, *flat)
    for tangent, slope in zip(tangents, slopes, strict=True):
        scale = max(1.0, np.abs(slope).max(initial=0.0))
        np.testing.assert_allclose(tangent, slope, rtol=0, atol=1e-7 * scale)
    weighted = [w * tangent for w, tangent in zip(cotangents, tangents, strict=True)]
    expected = sum(each.reshape(2, -1).sum(axis=1) for each in weighted)
    pairs = zip(gradients, directions, strict=True)
    found = sum((g * dx).sum(axis=1) for g, dx in pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def carried(robot: Robot, h: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """The position that a velocity leads to, on the loops."""
    return robot.close(robot.tree.integrate(q, h * qd), q)


def rate_of(robot: Robot, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return np.array(robot.tree.position_rate(ca.DM(q), ca.DM(qd))).ravel()


def test_gradients_of_independent_positions_are_those_of_spanning_ones() -> None:
    robot = MECHANISMS["four_bar"].load()
    layout = layout_of(robot, "forward_dynamics")
    q = positions_of("four_bar", 3)
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
