"""Near where branches meet: the one that the rates continue, or a ClosureError; never another."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest
from branch_oracle import destination
from mechanism_table import MECHANISMS
from random_mechanisms import closable

from rbda_ros import ClosureError, Robot, load_robot

STEP = 0.15
"""How far the fastest of y goes in a step [rad, m]."""
INERTIAL = (
    "<inertial><mass value='1'/><inertia ixx='.01' iyy='.01' izz='.01' ixy='0' ixz='0' iyz='0'/>"
    "</inertial>"
)


@functools.cache
def four_bar(crank: float, coupler: float, rocker: float, base: float) -> Robot:
    """A planar four-bar by its lengths [m], flat and stretched along x at zero."""
    text = "<robot name='bars'><link name='base'/>"
    for name, parent, x in (("a", "base", 0.0), ("b", "a", crank), ("c", "base", base)):
        text += (
            f"<link name='{name}'>{INERTIAL}</link><joint name='{name}' type='continuous'>"
            f"<parent link='{parent}'/><child link='{name}'/><origin xyz='{x} 0 0'/>"
            "<axis xyz='0 0 1'/></joint>"
        )
    pin = {"name": "pin", "type": "revolute", "axis": [0, 0, 1]}
    pin |= {"predecessor": {"link": "b", "xyz": [coupler, 0, 0]}}
    pin |= {"successor": {"link": "c", "xyz": [rocker, 0, 0]}}
    guess = {"a": 1.0, "b": -1.0, "c": 1.0}
    return load_robot(
        text + "</robot>", {"constraints": [pin], "assembly": guess, "independent_joints": ["a"]}
    )


def random_robot(seed: int) -> Robot:
    mechanism = closable(seed)
    return load_robot(mechanism.urdf, mechanism.loops)


def walk(
    robot: Robot, rng: np.random.Generator, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Position, way of y, and where it leads; a walk runs into its dead points, and stays there."""
    q = robot.tree.home
    for _ in range(steps):
        way = rng.normal(size=robot.ny)
        way *= STEP * rng.uniform(0.1, 1.0) / np.abs(way).max()
        led = destination(robot, q, way)
        yield q, way, led
        q = q if led is None else led


def answers(robot: Robot, seed: int, steps: int) -> list[bool]:
    """For each step that leads somewhere, whether it is answered, and rightly; else none may be."""
    found = []
    for q, way, led in walk(robot, np.random.default_rng(seed), steps):
        try:
            closed = robot.close(robot.independent_position(q) + way, q)
        except ClosureError:
            closed = None
        if led is None:
            assert closed is None
        else:
            found.append(closed is not None)
            if closed is not None:
                away = np.abs(closed - led)[robot.tree.curved].max(initial=0.0)
                assert away < 1e-6
    return found


@pytest.mark.parametrize(
    "seed", [0, 6, 9, 11, 14, *(pytest.param(s, marks=pytest.mark.nightly) for s in range(20, 80))]
)
def test_random_mechanisms_stay_on_their_branch(seed):
    robot = random_robot(seed)
    if robot.nq == robot.nv:
        found = answers(robot, seed, 12)
        assert sum(found) >= 0.9 * len(found)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "tie_rod", "chained_loops"])
def test_mechanisms_of_the_table_stay_on_their_branch(name):
    robot = MECHANISMS[name].load()
    if not robot.floating_base:
        assert all(answers(robot, 1, 12))


@pytest.mark.parametrize("first", [0.15, 0.1, 0.04, 0.01])
@pytest.mark.parametrize("step", [0.15, 0.07, 0.02])
def test_a_parallelogram_goes_on_through_the_flat_position(first, step):
    """Where the crossed one meets it, the rates tell them apart: the sides stay parallel."""
    robot = four_bar(0.2, 0.5, 0.2, 0.5)
    q = robot.close([first], robot.close([0.5], robot.tree.home))
    for y in np.arange(first, -0.3, -step):
        q = robot.close([y], q)
        np.testing.assert_allclose(q, [y, -y, y], atol=2e-3 if abs(y) < 1e-6 else 1e-9)


@pytest.mark.parametrize("first", [0.15, 0.1, 0.04, 0.01])
@pytest.mark.parametrize("step", [0.15, 0.07, 0.02])
def test_a_crossed_parallelogram_stays_crossed(first, step):
    """The rates at the flat position, ``c = -k a``, are those of ``tan(c/2) = -k tan(a/2)``."""
    robot = four_bar(0.2, 0.5, 0.2, 0.5)
    k = (0.5 + 0.2) / (0.5 - 0.2)
    rocker = lambda y: -2.0 * np.arctan(k * np.tan(0.5 * y))  # noqa: E731
    start = robot.close({"a": first}, [first, -first + rocker(first), rocker(first)])
    assert start[2] == pytest.approx(rocker(first))
    q = start
    for y in np.arange(first, -0.3, -step):
        if abs(y) > 1e-6:  # there both are one
            q = robot.close([y], q)
            assert q[2] == pytest.approx(rocker(y), abs=1e-9)


@pytest.mark.parametrize("beyond", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("before", [1e-6, 1e-4, 0.01, 0.1])
def test_beyond_the_dead_point_is_refused(before, beyond):
    """A crank that cannot turn round ends where coupler and rocker are in line."""
    robot = four_bar(0.3, 0.2, 0.2, 0.4)
    end = np.arccos((0.3**2 + 0.4**2 - 0.4**2) / (2 * 0.3 * 0.4))
    q = robot.close([end - before], robot.close([0.5], robot.tree.home))
    with pytest.raises(ClosureError):
        robot.close([end + beyond], q)
    back = robot.close([end - 0.1 - before], q)
    assert np.sign(np.sin(back[1])) == np.sign(np.sin(robot.tree.home[1]))


def test_the_dead_point_itself_is_reached():
    robot = four_bar(0.3, 0.2, 0.2, 0.4)
    end = np.arccos((0.3**2 + 0.4**2 - 0.4**2) / (2 * 0.3 * 0.4))
    q = robot.close([end], robot.close([0.5], robot.tree.home))
    assert np.sin(q[0] + q[1] - q[2]) == pytest.approx(0.0, abs=1e-3)
